"""One process over a real store and a real provider, as the tests of races and kills use it.

The store is a SQLite file, or the PostgreSQL database that a ``.dsn`` file names.

Wired by hand, so that a test can reach every part; composition wires the same parts.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.application.house import a_context
from tests.application.laboratory import Switch, admission_of, configuration, receipts

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.guards import LocalGuards, ResidencyRules
from remembrancer.adapters.postgres import database as postgres
from remembrancer.adapters.postgres.installation_secret import PostgresInstallationSecret
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.adapters.provider import NoSecret, OpenAICompatibleProvider
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.installation_secret import SqliteInstallationSecret
from remembrancer.adapters.sqlite.ledger_repository import SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.worker.anyio_worker import AnyioWorker
from remembrancer.application.cache_contexts import CacheContexts
from remembrancer.application.paid_request import PaidRequest
from remembrancer.application.ports import Clock, EventLog, Transactions
from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.application.prepare_queries import PreparationReport, PrepareQueries
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.destination import Destination
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.reservation import Reservation


def loopback_configuration(url: str, **changes: dict[str, Any]) -> Configuration:
    """Return a configuration for a provider on this machine; ``changes`` by part."""
    values = configuration(f"{url}/embeddings", "127.0.0.1").model_dump(mode="json")
    for name, fields in changes.items():
        values[name] |= fields
    return Configuration.parse(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealProcess:
    """The parts of one process."""

    log: EventLog
    ledger: LedgerRepository
    prepared: PreparedQueries
    use_case: PrepareQueries
    switch: Switch

    async def prepare(
        self,
        queries: Sequence[RecallQuery],
        context: RecallContext | None = None,
        *,
        tenant: str = "acme",
        owner: str = "ana",
    ) -> PreparationReport:
        """Prepare queries of Ana's."""
        return await self.use_case(queries, context or a_context(), tenant=tenant, owner=owner)

    @property
    def reservations(self) -> list[Reservation]:
        """Every reservation that was ever admitted, as it stands."""
        return receipts(self.ledger, self.log)

    @property
    def reservation(self) -> Reservation:
        """The only one."""
        [one] = self.reservations
        return one


@contextmanager
def open_process(
    path: Path,
    url: str,
    configuration: Configuration,
    *,
    clock: Clock | None = None,
    altered: Callable[[str, Any], Any] = lambda _, part: part,
) -> Generator[RealProcess]:
    """Open the store and wire the parts; ``altered`` may wrap each by its name."""
    clock = clock or SystemClock()
    origin = Destination.parse(url).origin
    randomness = SystemRandomness()
    with _in_postgres(path) if path.suffix == ".dsn" else _in_a_file(path, clock) as parts:
        log, ledger, transactions, secret = parts
        provider = altered(
            "provider", OpenAICompatibleProvider(url=url, model="small", secret=NoSecret())
        )
        switch = Switch(admission_of(configuration))
        prepared = PreparedQueries(clock=clock, secret=secret, configuration=configuration)
        worker = altered("worker", AnyioWorker())
        yield RealProcess(
            log=log,
            ledger=ledger,
            prepared=prepared,
            switch=switch,
            use_case=PrepareQueries(
                admission=switch,
                contexts=CacheContexts(
                    log=altered("log", log),
                    transactions=transactions,
                    clock=clock,
                ),
                prepared=prepared,
                guards=LocalGuards(residency=ResidencyRules(region="eu", allowed=[origin])),
                destination=provider.destination,
                paid_request=PaidRequest(
                    ledger=altered("ledger", ledger),
                    provider=provider,
                    clock=clock,
                    randomness=randomness,
                    worker=worker,
                ),
                clock=clock,
                worker=worker,
            ),
        )


_Parts = tuple[EventLog, LedgerRepository, Transactions, bytes]


@contextmanager
def _in_a_file(path: Path, clock: Clock) -> Generator[_Parts]:
    with Database.open(path) as database:
        log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        ledger = SqliteLedgerRepository(database=database, log=log, clock=clock)
        secret = SqliteInstallationSecret(database=database, randomness=SystemRandomness())
        yield log, ledger, SqliteTransactions(database=database), secret.secret()


@contextmanager
def _in_postgres(path: Path) -> Generator[_Parts]:
    """Open the database as it is in production: by the server's clock."""
    with postgres.Database.open(path.read_text()) as database:
        recorder = PostgresApplicationRecorder(database=database, tenant="acme")
        ledger = PostgresLedgerRepository(database=database, mapper=ListedMapper())
        secret = PostgresInstallationSecret(database=database, randomness=SystemRandomness())
        transactions = PostgresTransactions(database=database)
        yield RecordedEventLog(recorder=recorder), ledger, transactions, secret.secret()
