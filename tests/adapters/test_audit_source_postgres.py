"""PostgreSQL as an auditor's role reads it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.adapters.postgres_named import emptied
from tests.adapters.postgres_server import FreshDatabase
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.audit_source import PostgresAuditSource
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.entry_vault import PostgresEntryVault
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.session_vault import PostgresSessionVault
from remembrancer.adapters.postgres.sparse_index import PostgresSparseIndex
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.adapters.postgres.vector_indexes import PostgresVectorIndexes
from remembrancer.contracts.audit_source import AuditedStore, AuditSourceContract
from remembrancer.contracts.clock import FixedClock


@contextmanager
def _opened(fresh: FreshDatabase, clock: FixedClock) -> Generator[AuditedStore]:
    with Database.open(fresh.app) as database:
        yield AuditedStore(
            transactions=PostgresTransactions(database=database),
            log=RecordedEventLog(recorder=PostgresApplicationRecorder(database=database)),
            vault=PostgresEntryVault(database=database),
            sessions=PostgresSessionVault(database=database),
            sparse=PostgresSparseIndex(database=database),
            indexes=PostgresVectorIndexes(database=database),
            ledger=PostgresLedgerRepository(database=database, mapper=ListedMapper(), clock=clock),
            source=lambda: PostgresAuditSource.open(fresh.auditor),
        )


class TestPostgresAuditSource(AuditSourceContract):
    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[AuditedStore]:
        with emptied() as fresh, _opened(fresh, clock) as store:
            yield store
