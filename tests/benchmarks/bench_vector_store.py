"""Exact search in 100,000 vectors of 384 numbers of ten owners, against numpy's bare product.

Every round asks each contestant a new question.  The product is ``rows @ query`` over float32 rows
in memory; it finds nothing yet and filters nothing.  As it comes, it takes a second thread where a
core is free, and so does a scan of ours; the bounds are for that one, on a quiet machine.
The product on one thread stands beside it: how much of a core each costs.
"""

import ctypes
import json
import statistics
import tempfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from uuid import UUID

import apsw
import numpy as np
import numpy.typing as npt
from tests.benchmarks.row import Row, interleaved, seconds

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.application.ports.vector_store import Filter, VectorPoint
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId

ROWS, DIMENSIONS, OWNERS = 100_000, 384, 10
QUESTIONS = 64
ROUNDS = 10
TURN = 16
"""Questions in a row.  One by one, in turn with numpy, ours take half as long again: probably its
second thread spins on after a product, on the core of our scan's helper, and empties the caches
(adr/0007 has both figures)."""
BATCH = 2_000
SPACE = EmbeddingTuple(
    provider="bench",
    model="random",
    model_revision="1",
    dimensions=DIMENSIONS,
    input_preparation="plain@1",
)
ONE_OWNER: Filter = {"tenant": "acme", "owner": "owner3"}
AS_RECALL: Filter = {
    **ONE_OWNER,
    "scope": ("project/0", "project/1"),
    "sensitivity": ("public", "internal"),
    "state": ("current",),
}
READY_S_MAX = 1.5
PRODUCT = "numpy's bare product"
PRODUCT_ON_ONE = "numpy's bare product on one thread"
MEMORY_MAX = 0.5

Rows = npt.NDArray[np.float32]


def points(rows: Rows) -> list[VectorPoint]:
    """Return the rows with ids and labels as recall writes them."""
    chance = np.random.default_rng(2)
    return [
        VectorPoint(
            EntryId(UUID(bytes=chance.bytes(16))),
            array("f", row.tobytes()),
            {
                "tenant": "acme",
                "owner": f"owner{number % OWNERS}",
                "scope": f"project/{number % 7 % 3}",
                "kind": "note",
                "sensitivity": ("public", "internal", "restricted")[number % 11 % 3],
                "state": "current",
            },
        )
        for number, row in enumerate(rows)
    ]


def bare_table(connection: apsw.Connection) -> None:
    """Make what a plain program would: sqlite-vec as it comes, and a table of ids."""
    connection.execute(
        f"CREATE VIRTUAL TABLE bare USING vec0("
        f"id INTEGER PRIMARY KEY, embedding float[{DIMENSIONS}] distance_metric=cosine);"
        "CREATE TABLE bare_id (id INTEGER PRIMARY KEY, key BLOB UNIQUE, metadata TEXT)"
    )


def bare_batch(database: Database, some: list[VectorPoint], first: int) -> None:
    """Write and commit vectors, ids and labels, with nothing of ours around it."""
    with database.write() as connection:
        connection.executemany(
            "INSERT INTO bare (id, embedding) VALUES (?, ?)",
            ((first + number, bytes(array("f", one.vector))) for number, one in enumerate(some)),
        )
        connection.executemany(
            "INSERT INTO bare_id VALUES (?, ?, ?)",
            (
                (first + number, one.id.bytes, json.dumps(one.metadata))
                for number, one in enumerate(some)
            ),
        )


def measure_writing(
    database: Database, store: SqliteVectorStore, all_: list[VectorPoint]
) -> list[Row]:
    """Fill the store; return what a row costs beside a bare loop in the same file."""
    with database.write() as connection:
        bare_table(connection)
    ours, bare = [], []
    for start in range(0, len(all_), BATCH):
        some = all_[start : start + BATCH]
        ours.append(seconds(partial(store.upsert_many, some)))
        if start < 10 * BATCH:
            bare.append(seconds(partial(bare_batch, database, some, start)))
    with database.write() as connection:
        connection.execute("DROP TABLE bare; DROP TABLE bare_id")
        single = [
            seconds(partial(store.upsert, one.id, one.vector, one.metadata)) for one in all_[:200]
        ]
    return [
        Row(
            what="vectors: upsert_many, a row, with its commit",
            ours=statistics.median(ours) / BATCH,
            baseline=statistics.median(bare) / BATCH,
            against="a bare loop",
        ),
        Row(what="vectors: replace one in an open transaction", ours=statistics.median(single)),
    ]


def check(store: SqliteVectorStore, rows: Rows, ids: list[EntryId], asked: Rows) -> None:
    """See that the answers are those of float64, all of them."""
    unit = rows / np.linalg.norm(rows.astype(np.float64), axis=1)[:, np.newaxis]
    for query in asked[:20]:
        best = np.argsort(-(unit @ query.astype(np.float64)))[:10]
        found = [match.id for match in store.query(array("f", query.tobytes()), 10)]
        if found != [ids[at] for at in best]:
            raise SystemExit("the answers differ")


def top10(rows: Rows, query: Rows) -> object:
    """Return numpy's ten best."""
    scores = rows @ query
    best = np.argpartition(scores, ROWS - 10)[ROWS - 10 :]
    return best[np.argsort(-scores[best])]


def measure_asking(store: SqliteVectorStore, rows: Rows, asked: Rows) -> list[Row]:
    """Return medians beside numpy's bare product."""
    questions: Iterator[Rows] = cycle(asked)

    def ours(top_k: int, wanted: Filter | None) -> Callable[[], object]:
        return lambda: store.query(array("f", next(questions).tobytes()), top_k, wanted)

    contestants: dict[str, tuple[Callable[[], object], float | None]] = {
        "ten best of all": (ours(10, None), 0.5),
        "ten best of one owner (a tenth)": (ours(10, ONE_OWNER), 0.15),
        "ten best, filtered as recall does": (ours(10, AS_RECALL), 0.15),
        "hundred best of all": (ours(100, None), None),
        "hundred best, filtered as recall does": (ours(100, AS_RECALL), None),
    }
    works = [work for work, _target in contestants.values()]
    threads = _Threads()

    def product_on_one() -> object:
        with threads.one():
            return rows @ next(questions)

    product, alone, top, *taken = interleaved(
        [
            lambda: rows @ next(questions),
            product_on_one,
            lambda: top10(rows, next(questions)),
            *works,
        ],
        rounds=ROUNDS,
        turn=TURN,
    )
    return [
        Row(
            what=f"vectors: {name}",
            ours=ours_s,
            baseline=baseline,
            against=against,
            at_most=target if against == PRODUCT else None,
        )
        for (name, (_, target)), ours_s in zip(contestants.items(), taken, strict=True)
        for against, baseline in ((PRODUCT, product), (PRODUCT_ON_ONE, alone))
        if target is not None or against == PRODUCT
    ] + [
        Row(
            what="vectors: numpy's own ten best",
            ours=top,
            baseline=product,
            against=PRODUCT,
        )
    ]


class _Threads:
    """How many threads numpy's OpenBLAS takes for a product."""

    def __init__(self) -> None:
        [path] = Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*")
        library = ctypes.CDLL(str(path))
        self._set = library.scipy_openblas_set_num_threads64_
        self._usual: int = library.scipy_openblas_get_num_threads64_()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take one."""
        self._set(1)
        try:
            yield
        finally:
            self._set(self._usual)


def measure() -> list[Row]:
    """Fill a store of 100,000 vectors and ask it."""
    chance = np.random.default_rng(1)
    rows: Rows = chance.standard_normal((ROWS, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    asked: Rows = chance.standard_normal((QUESTIONS, DIMENSIONS), dtype=np.float32)
    all_ = points(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Database.open(path) as database:
            indexes = SqliteVectorIndexes(database=database)
            index = indexes.begin(SPACE)
            written = measure_writing(database, indexes.store(index), all_)
        with Database.open(path) as database:
            store = SqliteVectorIndexes(database=database).store(index)
            first = seconds(lambda: store.query(all_[0].vector, 10))
            held = store._copy()._held
            share = held.rows.bytes_a_row if held else 0.0
            check(store, rows, [one.id for one in all_], asked)
            return [
                *measure_asking(store, rows, asked),
                Row(what="vectors: first query of a process", ours=first, at_most=READY_S_MAX),
                Row(
                    what="vectors: memory of the resident copy, a row",
                    ours=share,
                    baseline=4.0 * DIMENSIONS,
                    against="of the float32 rows",
                    unit="B",
                    at_most=MEMORY_MAX,
                ),
                *written,
            ]
