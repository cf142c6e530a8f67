"""Recall over 100,000 entries of sixty words, against what it can't do without.

That is the sum of the same vector query through the port, and of one bare FTS5 question
(``MATCH ... ORDER BY rank LIMIT``) to a plain FTS5 table of the same texts, on a connection set up
like ours.  Asked is once by one of ten owners, and once by a principal that may read all of them.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import apsw
from tests.benchmarks.corpus import Corpus, a_context, a_query
from tests.benchmarks.row import Row, interleaved, seconds
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.ports.access_policy import Access, AccessPolicy
from remembrancer.application.recall import CANDIDATES_MIN, Recall
from remembrancer.composition import Remembrancer, embedded
from remembrancer.domain import RecallQuery
from remembrancer.domain.entry import EntryHeader
from remembrancer.domain.scope import covered_by_any

ENTRIES = 100_000
OWNERS = 10
BATCH = 2_000
QUESTIONS = 25
ROUNDS = 100
RATIO_MAX = 1.5
READY_S_MAX = 1.5
_BARE = "SELECT rowid, rank FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT ?"


class WholeTenant(AccessPolicy):
    """Lets every principal read what any owner of its tenant has."""

    @override
    def owners(self, access: Access) -> tuple[str, ...] | None:
        return None

    @override
    def permits(self, access: Access, entry: EntryHeader) -> bool:
        return covered_by_any(access.scopes, entry.scope) and (
            entry.sensitivity <= access.read_ceiling
        )


def measure() -> list[Row]:
    """Build the memory, and compare recalls with their parts."""
    corpus = Corpus(2)
    with tempfile.TemporaryDirectory() as folder:
        path, beside = Path(folder) / "memory.db", Path(folder) / "bare.db"
        texts: list[str] = []
        built_s = seconds(lambda: _build(path, corpus, texts))
        with _bare_index(beside, texts) as bare:
            questions = [corpus.question() for _ in range(QUESTIONS)]
            rows = [
                Row(what="remember_many of 100,000 entries", ours=ENTRIES / built_s, unit="/s")
            ]
            with embedded(path) as memory:
                rows += _compared("one of ten owners", memory, bare, questions)
            with embedded(path, policy=WholeTenant()) as memory:
                rows += _compared("all owners", memory, bare, questions)
    return rows


def _build(path: Path, corpus: Corpus, texts: list[str]) -> None:
    entries = corpus.entries(ENTRIES, owners=OWNERS)
    with embedded(path) as memory:
        while some := list(islice(entries, BATCH)):
            memory.remember_many(some)
            texts += (one.text for one in some)


@contextmanager
def _bare_index(path: Path, texts: list[str]) -> Iterator[apsw.Connection]:
    with Database.open(path) as database:
        connection = database.connection()
        connection.execute(
            "CREATE VIRTUAL TABLE bare USING fts5 (text, tokenize = 'porter unicode61')"
        )
        with connection:
            connection.executemany("INSERT INTO bare (text) VALUES (?)", ((one,) for one in texts))
        yield connection


def _compared(
    who: str, memory: Remembrancer, bare: apsw.Connection, questions: list[str]
) -> list[Row]:
    first_s = seconds(lambda: memory.recall(a_query(questions[0]), a_context()))
    parts = _Parts(memory, bare)
    asked = cycle(questions)
    current = a_query(questions[0])

    def recalled() -> Any:
        nonlocal current
        current = a_query(next(asked))
        return memory.recall(current, a_context())

    def prepare() -> None:
        parts.take(current)

    prepare()
    times = interleaved([recalled, prepare, parts.by_vector, parts.by_words], rounds=2 * ROUNDS)
    ours, _, vector_s, words_s = times
    return [
        Row(
            what=f"recall over 100,000 entries, {who}",
            ours=ours,
            baseline=vector_s + words_s,
            against="vector query + bare FTS5",
            at_most=RATIO_MAX,
        ),
        Row(what=f"the first recall after opening, {who}", ours=first_s, at_most=READY_S_MAX),
    ]


class _Parts:
    """The two parts of a recall, for the question that is taken."""

    def __init__(self, memory: Remembrancer, bare: apsw.Connection) -> None:
        parts: Any = memory._container
        indexes = parts.store().indexes
        index = indexes.active()
        self._recall: Recall = parts.recall()
        self._store = indexes.store(index)
        self._embedder = parts.embedders().of(index.embedding_tuple)
        self._bare = bare

    def take(self, query: RecallQuery) -> None:
        """Embed the question and find out its filter, untimed."""
        self._vector = self._embedder.embed_query(query.question)
        [self._filter] = self._recall.filters(query)
        self._match = " OR ".join(f'"{word}"' for word in query.question.split())

    def by_vector(self) -> Any:
        """Ask the port."""
        return self._store.query(self._vector, CANDIDATES_MIN, self._filter)

    def by_words(self) -> Any:
        """Ask FTS5."""
        return self._bare.execute(_BARE, (self._match, CANDIDATES_MIN)).fetchall()
