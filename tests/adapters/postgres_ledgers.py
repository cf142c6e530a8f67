"""A ledger repository on a database of its own, and what tests do around it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from eventsourcing.persistence import StoredEvent
from tests.adapters.cutting_relay import CuttingRelay, relay_before
from tests.adapters.postgres_server import FreshDatabase, server
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import MORNING, Spender

LIMITS = Limits(outcome_wait_s=3.0, connections=3)


class CountingMapper(ListedMapper):
    """Counts the events that are read."""

    read_events = 0

    @override
    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        self.read_events += 1
        return super().to_domain_event(stored_event)


@dataclass(slots=True)
class LedgerBench:
    """Ledgers of tenant ``acme`` in one database, with the relay that leads there."""

    fresh: FreshDatabase
    database: Database
    relay: CuttingRelay
    clock: FixedClock
    mapper: CountingMapper
    ledgers: PostgresLedgerRepository

    @property
    def ana(self) -> Spender:
        """One owner's decisions."""
        return Spender(self.ledgers)

    @property
    def log(self) -> RecordedEventLog:
        """The log as this tenant sees it."""
        recorder = PostgresApplicationRecorder(database=self.database, tenant="acme")
        return RecordedEventLog(recorder=recorder)

    def afresh(self) -> None:
        """Remember nothing, as a process that has just been started."""
        self.mapper = CountingMapper()
        self.ledgers = PostgresLedgerRepository(
            database=self.database, mapper=self.mapper, clock=self.clock
        )

    def by_the_server(self) -> Spender:
        """Return an owner's decisions by the server's clock."""
        return Spender(PostgresLedgerRepository(database=self.database, mapper=ListedMapper()))

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement as superuser."""
        return execute(self.fresh.superuser, statement, *values)


def execute(dsn: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement and commit; return its rows."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SET search_path = remembrancer")
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def ledger_bench(
    fresh: FreshDatabase | None = None, *, limits: Limits = LIMITS
) -> Generator[LedgerBench]:
    """Open a bench, on a new database unless one is given."""
    made = fresh or server().fresh_database()
    try:
        with (
            relay_before(made.app) as relay,
            Database.open(relay.through(made.app), limits=limits) as database,
        ):
            clock, mapper = FixedClock(MORNING), CountingMapper()
            ledgers = PostgresLedgerRepository(database=database, mapper=mapper, clock=clock)
            yield LedgerBench(made, database, relay, clock, mapper, ledgers)
    finally:
        if fresh is None:
            server().drop(made)
