"""Word search over 100,000 texts of 60 words of ten owners, against bare FTS5 in the same run.

The questions are of four words, in
three bands from common to rare; bare FTS5 is ``MATCH ... ORDER BY rank LIMIT 100`` over all texts,
without any filter, on a connection set up like ours.  Inserting is compared with one batched loop
that writes the same rows.
"""

import itertools
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

import apsw
from tests.benchmarks.row import Row, seconds

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex
from remembrancer.application.ports.sparse_index import SparseDocument
from remembrancer.application.ports.vector_store import Filter
from remembrancer.domain.identity import EntryId

TEXTS = 100_000
WORDS = 60
OWNERS = 10
VOCABULARY = 30_000
ROUNDS = 9
BANDS = {"common": (30, 80), "middle": (100, 400), "rare": (400, 3_000)}
ALL_OWNERS: Filter = {"tenant": "acme"}
ONE_OWNER: Filter = {"tenant": "acme", "owner": "owner3"}
AS_RECALL: Filter = {
    **ONE_OWNER,
    "scope": ("project/0", "project/1"),
    "sensitivity": ("public", "internal"),
    "state": ("current",),
}
RATIOS_MAX = {"bare": 1.0, "all owners": 1.75, "one owner": 1.0, "as recall asks": 1.0}
"""Of a question to the bare one.

A whole recall may take 1.5 times a vector query and a bare question together; that of all words in
one owner's hands, which ``all owners`` stands for, is the dearest part of it.
"""
INSERT_RATIO_MAX = 1.6


def corpus(chance: random.Random) -> tuple[list[str], list[SparseDocument]]:
    """Return the vocabulary, commonest first, and the documents."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))
    documents = [
        SparseDocument(
            EntryId(UUID(int=chance.getrandbits(128), version=4)),
            " ".join(chance.choices(words, cum_weights=weights, k=WORDS)),
            {
                "tenant": "acme",
                "owner": f"owner{number % OWNERS}",
                "scope": f"project/{number % 7 % 3}",
                "kind": "note",
                "sensitivity": ("public", "internal", "restricted")[number % 11 % 3],
                "state": "current",
            },
        )
        for number in range(TEXTS)
    ]
    return words, documents


def bare_loop(connection: apsw.Connection, documents: list[SparseDocument]) -> None:
    """Write the rows that ours are, batched, with nothing of ours around it."""
    connection.execute(
        "CREATE TABLE bare_document (number INTEGER PRIMARY KEY, id BLOB UNIQUE, label, text);"
        "CREATE TABLE bare_text (number INTEGER PRIMARY KEY, text TEXT);"
        "CREATE VIRTUAL TABLE bare USING fts5 (text, content = '', tokenize = 'porter ascii')"
    )
    with connection:
        connection.executemany(
            "INSERT INTO bare_document VALUES (?1, ?2, 1, ?1)",
            ((number, one.id.bytes) for number, one in enumerate(documents)),
        )
        for insert in (
            "INSERT INTO bare_text VALUES (?, ?)",
            "INSERT INTO bare (rowid, text) VALUES (?, ?)",
        ):
            connection.executemany(
                insert, ((number, one.text) for number, one in enumerate(documents))
            )


def _fetched(connection: apsw.Connection, sql: str, match: str) -> object:
    return connection.execute(sql, (match,)).fetchall()


def compare(index: SqliteSparseIndex, bare: apsw.Connection, words: list[str]) -> Iterator[Row]:
    """Yield a row for each band and filter."""
    chance = random.Random(5)  # noqa: S311  # Not a secret: a workload.
    for band, (low, high) in BANDS.items():
        questions = [chance.sample(words[low:high], 4) for _ in range(5)]
        asked: dict[str, list[float]] = {}
        for question, _ in itertools.product(questions, range(ROUNDS)):
            match = " OR ".join(f'"{word}"' for word in question)
            text = " ".join(question)
            sql = "SELECT rowid, rank FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT 100"
            works: dict[str, Callable[[], object]] = {
                "bare": partial(_fetched, bare, sql, match),
                "all owners": partial(index.query, text, 100, ALL_OWNERS),
                "one owner": partial(index.query, text, 100, ONE_OWNER),
                "as recall asks": partial(index.query, text, 100, AS_RECALL),
            }
            for name, work in works.items():
                asked.setdefault(name, []).append(seconds(work))
        medians = {name: statistics.median(taken) for name, taken in asked.items()}
        for name, median in medians.items():
            if name != "bare":
                yield Row(
                    what=f"words: a question of {band} ones, {name}",
                    ours=median,
                    baseline=medians["bare"],
                    against="bare FTS5, unfiltered",
                    at_most=RATIOS_MAX[name],
                )


def measure() -> list[Row]:
    """Fill an index of 100,000 texts and ask it."""
    words, documents = corpus(random.Random(1))  # noqa: S311  # Not a secret: a workload.
    with (
        tempfile.TemporaryDirectory() as folder,
        Database.open(Path(folder) / "memory.db") as database,
        Database.open(Path(folder) / "bare.db") as beside,
    ):
        index, bare = SqliteSparseIndex(database=database), beside.connection()
        bare_s = seconds(lambda: bare_loop(bare, documents))

        def fill() -> None:
            with database.write():
                for start in range(0, TEXTS, 1_000):
                    index.upsert_many(documents[start : start + 1_000])

        ours_s = seconds(fill)
        long_text = " ".join(words[:20_000])
        long_s = statistics.median(
            seconds(partial(index.query, long_text, 100, ONE_OWNER)) for _ in range(5)
        )
        return [
            Row(
                what="words: write a text into the index",
                ours=ours_s / TEXTS,
                baseline=bare_s / TEXTS,
                against="bare FTS5 and two tables",
                at_most=INSERT_RATIO_MAX,
            ),
            *compare(index, bare, words),
            Row(what=f"words: a question of {len(long_text) // 1000} kB, one owner", ours=long_s),
        ]
