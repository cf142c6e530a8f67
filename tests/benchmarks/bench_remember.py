"""Remembering through the facade, against a bare apsw transaction that writes the same rows.

Copies of one file grow side by side.  In the first each batch is remembered with every statement
recorded; in the second those that write are run again, bare, by apsw alone: the same rows into
the same tables, with the same triggers, indexes and durability; in the third the same entries are
remembered by the facade as a host would; in the fourth by a straight-line program.  All but the
first are timed.
"""

import shutil
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.row import Row, seconds
from tests.benchmarks.straight_line import StraightLine

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.composition import Remembrancer, embedded
from remembrancer.domain import NewEntry

SEEDED = 2_000
SINGLE_ROUNDS, SINGLE_RUN = 900, 30
BATCH, BATCH_ROUNDS = 500, 24
SINGLE_MAX = 1.5
BATCH_LEAST = 0.6
WRITING = ("INSERT", "UPDATE", "DELETE")
_HELD = (
    "SELECT (SELECT count(*) FROM stored_events), (SELECT sum(length(text)) FROM original),"
    " (SELECT count(*) FROM sparse_words), (SELECT sum(length(text)) FROM sparse_text),"
    " (SELECT sum(length(metadata)) FROM vector_row_1), (SELECT count(*) FROM sparse_metadata),"
    " (SELECT embedding FROM vector_1 WHERE id = (SELECT max(id) FROM vector_row_1))"
)

Statement = tuple[str, Any]


def measure() -> list[Row]:
    """Return how one entry, and how a batch, compare with bare writing."""
    entries = Corpus(1).entries(SEEDED + SINGLE_ROUNDS + BATCH * BATCH_ROUNDS, owners=10)
    with tempfile.TemporaryDirectory() as folder:
        recorded, bare, ours, straight = (
            Path(folder) / f"{name}.db" for name in ("recorded", "bare", "ours", "straight")
        )
        with embedded(recorded) as memory:
            memory.remember_many(list(islice(entries, SEEDED)))
        for other in (bare, ours, straight):
            shutil.copy(recorded, other)
        with (
            embedded(recorded) as memory,
            Database.open(bare) as database,
            embedded(ours) as facade,
            Database.open(straight) as straight_line,
        ):
            contest = _Contest(memory, database.connection(), facade)
            contest.warm_up(list(islice(entries, BATCH)), straight_line.connection())
            singles = contest.singles(list(islice(entries, SINGLE_ROUNDS)))
            batches = contest.batches(iter(lambda: list(islice(entries, BATCH)), []))
            contest.check()
    return [*singles, batches]


class _Contest:
    """The memories."""

    def __init__(self, recorded: Remembrancer, bare: apsw.Connection, ours: Remembrancer) -> None:
        self._recorded, self._bare, self._ours = recorded, bare, ours
        self._embedder = WordLlamaEmbedder(model=StaticModel())

    def warm_up(self, entries: Sequence[NewEntry], straight: apsw.Connection) -> None:
        """Let every side load its model and compile its statements."""
        for some in ([entries[0]], entries[1:]):
            statements = self._record(some)
            self._write(statements, [one.text for one in some])
            self._ours.remember_many(some)
        self._straight = StraightLine(straight, list(dict.fromkeys(sql for sql, _ in statements)))
        for entry in entries:
            self._straight.remember(entry)

    def singles(self, entries: Sequence[NewEntry]) -> list[Row]:
        """Compare entry by entry, each durable before the next, in runs that take turns."""
        bare: list[float] = []
        ours: list[float] = []
        straight: list[float] = []
        for start in range(0, len(entries), SINGLE_RUN):
            run = entries[start : start + SINGLE_RUN]
            recorded = [self._record([entry]) for entry in run]
            ours += [seconds(partial(self._ours.remember, entry)) for entry in run]
            bare += [seconds(partial(self._write, statements, [])) for statements in recorded]
            straight += [seconds(partial(self._straight.remember, entry)) for entry in run]
        _require_same(self._bare, self._straight.connection)
        what, took = "remember one entry, durable", statistics.median(ours)
        return [
            Row(
                what=what,
                ours=took,
                baseline=statistics.median(bare),
                against="the same rows by bare apsw",
                at_most=SINGLE_MAX,
            ),
            Row(
                what=what,
                ours=took,
                baseline=statistics.median(straight),
                against="a straight-line program that embeds and digests too",
            ),
        ]

    def batches(self, batches: Iterable[Sequence[NewEntry]]) -> Row:
        """Compare batch by batch; both sides embed."""
        bare, ours = [], []
        for number, some in enumerate(batches):
            statements = self._record(some)
            texts = [one.text for one in some]
            bare_work = partial(self._write, statements, texts)
            our_work = partial(self._ours.remember_many, some)
            if number % 2:
                bare.append(seconds(bare_work))
                ours.append(seconds(our_work))
            else:
                ours.append(seconds(our_work))
                bare.append(seconds(bare_work))
        return Row(
            what=f"remember_many, entries a second, in batches of {BATCH}",
            ours=BATCH / statistics.median(ours),
            baseline=BATCH / statistics.median(bare),
            against="bare loop that embeds too",
            unit="/s",
            at_least=BATCH_LEAST,
        )

    def check(self) -> None:
        """See that the bare side wrote what ours did."""
        _require_same(self._bare, _connection(self._ours))

    def _record(self, some: Sequence[NewEntry]) -> list[Statement]:
        """Remember ``some`` and return the statements that wrote, with their values."""
        statements: list[Statement] = []

        def trace(_: apsw.Cursor, sql: str, values: Any) -> bool:
            if sql.startswith(WRITING):
                statements.append((sql, values))
            return True

        connection = _connection(self._recorded)
        connection.exec_trace = trace
        self._recorded.remember_many(some)
        connection.exec_trace = None
        return statements

    def _write(self, statements: Sequence[Statement], texts: Sequence[str]) -> None:
        """Run ``statements`` in one durable transaction, after embedding ``texts``."""
        self._embedder.embed_documents(texts)
        connection = self._bare
        connection.execute("BEGIN IMMEDIATE")
        for sql, group in groupby(statements, key=itemgetter(0)):
            connection.executemany(sql, (values for _, values in group))
        connection.execute("COMMIT")


def _require_same(*connections: apsw.Connection) -> None:
    """See that two files hold as much, and the same newest vector."""
    held = [connection.execute(_HELD).get for connection in connections]
    if held[0] != held[1]:
        raise SystemExit("the two files differ")


def _connection(memory: Remembrancer) -> apsw.Connection:
    store: Any = memory._container.store()
    connection: apsw.Connection = store.transactions._database.connection()
    return connection
