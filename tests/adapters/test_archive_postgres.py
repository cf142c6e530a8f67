"""The archive of PostgreSQL."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.adapters.postgres_named import emptied
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.archive import PostgresArchive
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.entry_vault import PostgresEntryVault
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.session_vault import PostgresSessionVault
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.contracts.archive import ArchiveContract
from remembrancer.contracts.archive_examples import ArchiveStore


class TestPostgresArchive(ArchiveContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[ArchiveStore]:
        with emptied() as fresh, Database.open(fresh.app, reader_dsn=fresh.auditor) as database:
            yield ArchiveStore(
                archive=PostgresArchive(database=database),
                log=RecordedEventLog(recorder=PostgresApplicationRecorder(database=database)),
                vault=PostgresEntryVault(database=database),
                sessions=PostgresSessionVault(database=database),
                ledger=PostgresLedgerRepository(database=database, mapper=ListedMapper()),
                transactions=PostgresTransactions(database=database),
            )
