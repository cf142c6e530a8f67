"""Exact search in 100,000 vectors of 384 numbers of ten owners, against numpy's bare product.

Run with ``python tests/benchmarks/bench_vector_store.py``.  Every round asks each contestant a new
question, one after the other, so that a busy machine slows all of them; figures are medians of the
rounds, ratios are to ``rows @ query`` over float32 rows in memory, which finds nothing yet and
filters nothing.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from uuid import UUID

import apsw
import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.application.ports.vector_store import Filter, VectorPoint
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId

ROWS, DIMENSIONS, OWNERS = 100_000, 384, 10
ROUNDS = 80
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
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Settings that would slow numpy down, and so flatter us."""
MILLI, MICRO = 1e3, 1e6

Rows = npt.NDArray[np.float32]


def say(line: str) -> None:
    """Write a line of the table."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


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


def seconds(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure_writing(database: Database, store: SqliteVectorStore, all_: list[VectorPoint]) -> None:
    """Fill the store; print what a row costs beside a bare loop in the same file."""
    with database.write() as connection:
        bare_table(connection)
    ours, bare = [], []
    for start in range(0, len(all_), BATCH):
        some = all_[start : start + BATCH]
        ours.append(seconds(lambda: store.upsert_many(some)))  # noqa: B023 - called at once
        if start < 10 * BATCH:
            bare.append(seconds(lambda: bare_batch(database, some, start)))  # noqa: B023 - as above
    with database.write() as connection:
        connection.execute("DROP TABLE bare; DROP TABLE bare_id")
        single = [
            seconds(lambda: store.upsert(one.id, one.vector, one.metadata))  # noqa: B023 - as above
            for one in all_[:200]
        ]
    row, bare_row = (statistics.median(one) / BATCH * MICRO for one in (ours, bare))
    say(f"  upsert_many, a row, with its commit      {row:8.1f} us  {row / bare_row:5.2f} of bare")
    say(f"  one replaced in an open transaction      {statistics.median(single) * MICRO:8.1f} us")


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


def measure_asking(store: SqliteVectorStore, rows: Rows, asked: Rows) -> bool:
    """Print medians and ratios; return whether the targets are met."""
    questions: Iterator[Rows] = cycle(asked)

    def ours(top_k: int, wanted: Filter | None) -> Callable[[], object]:
        return lambda: store.query(array("f", next(questions).tobytes()), top_k, wanted)

    contestants: dict[str, tuple[Callable[[], object], float | None]] = {
        "numpy, the bare product": (lambda: rows @ next(questions), None),
        "numpy, its ten best": (lambda: top10(rows, next(questions)), None),
        "ten best of all": (ours(10, None), 0.5),
        "ten best of one owner (a tenth)": (ours(10, ONE_OWNER), 0.15),
        "ten best, filtered as recall does": (ours(10, AS_RECALL), 0.15),
        "hundred best of all": (ours(100, None), None),
        "hundred best, filtered as recall does": (ours(100, AS_RECALL), None),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, (work, _target) in contestants.items():
            times[name].append(seconds(work))
    met = True
    base = statistics.median(times["numpy, the bare product"])
    for name, (_work, target) in contestants.items():
        median = statistics.median(times[name])
        kept = target is None or median <= target * base
        met &= kept
        goal = "" if target is None else f"  target {target} {'kept' if kept else 'MISSED'}"
        say(f"  {name:<40} {median * MILLI:8.3f} ms  {median / base:5.2f}{goal}")
    return met


def main() -> int:
    """Print the table; exit 1 where a target is missed."""
    chance = np.random.default_rng(1)
    rows: Rows = chance.standard_normal((ROWS, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    asked: Rows = chance.standard_normal((ROUNDS, DIMENSIONS), dtype=np.float32)
    all_ = points(rows)
    say(f"{ROWS:,} vectors of {DIMENSIONS}, {OWNERS} owners")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Database.open(path) as database:
            indexes = SqliteVectorIndexes(database=database)
            index = indexes.begin(SPACE)
            measure_writing(database, indexes.store(index), all_)
        with Database.open(path) as database:
            store = SqliteVectorIndexes(database=database).store(index)
            first = seconds(lambda: store.query(all_[0].vector, 10))
            say(f"  first query of a process, numpy loaded   {first * MILLI:8.0f} ms")
            held = store._copy()._held
            share = held.rows.bytes_a_row / (4 * DIMENSIONS) if held else 0.0
            say(f"  memory of the resident copy              {share:8.2f} of the float32 rows")
            check(store, rows, [one.id for one in all_], asked)
            return 0 if measure_asking(store, rows, asked) else 1


if __name__ == "__main__":
    if any(name in os.environ for name in SLOWING):
        kept = {name: value for name, value in os.environ.items() if name not in SLOWING}
        os.execve(sys.executable, [sys.executable, *sys.argv], kept)  # noqa: S606 - ourselves
    sys.exit(main())
