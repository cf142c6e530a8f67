"""Stores as an auditor reads them, in memory and in SQLite."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.audit_source import MemoryAuditSource
from remembrancer.adapters.memory.entry_vault import MemoryEntryVault
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.session_vault import MemorySessionVault
from remembrancer.adapters.memory.sparse_index import MemorySparseIndex
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_indexes import MemoryVectorIndexes
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.entry_vault import SqliteEntryVault
from remembrancer.adapters.sqlite.ledger_repository import SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.session_vault import SqliteSessionVault
from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.contracts.audit_source import AuditedStore, AuditSourceContract
from remembrancer.contracts.clock import FixedClock


class TestMemoryAuditSource(AuditSourceContract):
    keeps_one_state = False
    keeps_copies = False

    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[AuditedStore]:
        transactions = MemoryTransactions()
        recorder = MemoryRecorder(transactions=transactions)
        log = RecordedEventLog(recorder=recorder)
        vault = MemoryEntryVault(transactions=transactions)
        sessions = MemorySessionVault(transactions=transactions)
        sparse = MemorySparseIndex(transactions=transactions)
        indexes = MemoryVectorIndexes(transactions=transactions)
        ledger = MemoryLedgerRepository(transactions=transactions, log=log, clock=clock)
        source = MemoryAuditSource(
            recorder=recorder,
            vault=vault,
            sessions=sessions,
            sparse=sparse,
            indexes=indexes,
            ledger=ledger,
        )
        yield AuditedStore(
            transactions=transactions,
            log=log,
            vault=vault,
            sessions=sessions,
            sparse=sparse,
            indexes=indexes,
            ledger=ledger,
            source=lambda: nullcontext(source),
        )


class TestSqliteAuditSource(AuditSourceContract):
    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[AuditedStore]:
        path = folder / "memory.db"
        with Database.open(path) as database:
            log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
            yield AuditedStore(
                transactions=SqliteTransactions(database=database),
                log=log,
                vault=SqliteEntryVault(database=database),
                sessions=SqliteSessionVault(database=database),
                sparse=SqliteSparseIndex(database=database),
                indexes=SqliteVectorIndexes(database=database),
                ledger=SqliteLedgerRepository(database=database, log=log, clock=clock),
                source=lambda: SqliteAuditSource.open(path, is_ours=True),
            )
