"""A store in PostgreSQL: every port over one database, and what is to be looked at there."""

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.archive import PostgresArchive
from remembrancer.adapters.postgres.audit_source import PostgresAuditSource
from remembrancer.adapters.postgres.check_up import check_up
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.entry_vault import PostgresEntryVault
from remembrancer.adapters.postgres.installation_secret import PostgresInstallationSecret
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.session_vault import PostgresSessionVault
from remembrancer.adapters.postgres.sparse_index import PostgresSparseIndex
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.adapters.postgres.vector_indexes import PostgresVectorIndexes
from remembrancer.adapters.postgres.vector_outbox import PostgresVectorOutbox
from remembrancer.adapters.postgres.vector_store import VectorSearch
from remembrancer.application.ports import Clock, Randomness
from remembrancer.composition.settings import StoreSettings
from remembrancer.composition.settings_postgres import (
    limits_of,
    optional_connection_string,
    required_connection_string,
)
from remembrancer.composition.store_ports import Store


@contextmanager
def postgres_store(
    settings: StoreSettings, clock: Clock, randomness: Randomness
) -> Generator[Store]:
    """Open a database whose schema is in place; raises as ``Database.open``."""
    dsn = required_connection_string(settings, "dsn", os.environ)
    reader_dsn = optional_connection_string(settings, "reader_dsn", os.environ)
    with Database.open(dsn, reader_dsn=reader_dsn, limits=limits_of(settings)) as database:
        log = RecordedEventLog(recorder=PostgresApplicationRecorder(database=database))
        yield Store(
            transactions=PostgresTransactions(database=database),
            log=log,
            vault=PostgresEntryVault(database=database),
            sessions=PostgresSessionVault(database=database),
            sparse=PostgresSparseIndex(database=database),
            indexes=PostgresVectorIndexes(
                database=database, search=VectorSearch(settings.vector_search)
            ),
            outbox=PostgresVectorOutbox(database=database),
            # By the server's clock: those that spend of one budget are on several machines.
            ledger=PostgresLedgerRepository(database=database, mapper=ListedMapper()),
            secret=PostgresInstallationSecret(database=database, randomness=randomness),
            archive=PostgresArchive(database=database),
            audit=lambda: postgres_audit(settings),
            check_up=lambda _: check_up(database, now=clock.now),
        )


def postgres_audit(settings: StoreSettings) -> AbstractContextManager[PostgresAuditSource]:
    """Open a database for an audit, with the auditor's role alone.

    Raises:
        SettingsError: there is no connection string of that role.
        StoreError: it can't be opened; the error says why.
    """
    dsn = required_connection_string(settings, "reader_dsn", os.environ)
    return PostgresAuditSource.open(dsn, limits=limits_of(settings))
