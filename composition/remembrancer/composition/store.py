"""Opening a store: every port of one backend, sharing its transactions."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from remembrancer.application.ports import Clock, Randomness, Transactions
from remembrancer.composition.settings import StoreSettings
from remembrancer.composition.store_ports import Store
from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from types import ModuleType

    from remembrancer.application.ports.audit_source import AuditSource

__all__ = ["Store", "open_audit_source", "open_store"]


@contextmanager
def open_store(
    settings: StoreSettings, *, clock: Clock, randomness: Randomness
) -> Generator[Store]:
    """Open the backend that the settings name; close it on the way out.

    Raises:
        StoreError: it can't be opened; the error says why and what to do.
    """
    match settings.backend:
        case "memory":
            yield _memory_store(clock, randomness)
        case "sqlite":
            with _sqlite_store(settings, clock, randomness) as store:
                yield store
        case "postgres":
            # Here, since it needs packages that other backends do without.
            postgres = _postgres()
            with postgres.postgres_store(settings, clock, randomness) as store:
                yield store


def _postgres() -> "ModuleType":
    try:
        from remembrancer.composition import postgres_store  # noqa: PLC0415  # as it says above
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("remembrancer"):
            raise
        raise SettingsError(
            setting="store.backend",
            problem=f"postgres needs the package {error.name}; install remembrancer[postgres]",
        ) from None
    return postgres_store


def _memory_store(clock: Clock, randomness: Randomness) -> Store:
    # Adapters are imported where they are chosen, so that a host loads only its backend's.
    from remembrancer.adapters.eventlog.event_log import RecordedEventLog  # noqa: PLC0415
    from remembrancer.adapters.memory.archive import MemoryArchive  # noqa: PLC0415
    from remembrancer.adapters.memory.audit_source import MemoryAuditSource  # noqa: PLC0415
    from remembrancer.adapters.memory.entry_vault import MemoryEntryVault  # noqa: PLC0415
    from remembrancer.adapters.memory.event_log import MemoryRecorder  # noqa: PLC0415
    from remembrancer.adapters.memory.installation_secret import (  # noqa: PLC0415
        MemoryInstallationSecret,
    )
    from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository  # noqa: PLC0415
    from remembrancer.adapters.memory.session_vault import MemorySessionVault  # noqa: PLC0415
    from remembrancer.adapters.memory.sparse_index import MemorySparseIndex  # noqa: PLC0415
    from remembrancer.adapters.memory.transactions import MemoryTransactions  # noqa: PLC0415
    from remembrancer.adapters.memory.vector_indexes import MemoryVectorIndexes  # noqa: PLC0415
    from remembrancer.adapters.memory.vector_outbox import MemoryVectorOutbox  # noqa: PLC0415

    transactions = MemoryTransactions()
    recorder = MemoryRecorder(transactions=transactions)
    log = RecordedEventLog(recorder=recorder)
    vault = MemoryEntryVault(transactions=transactions)
    sessions = MemorySessionVault(transactions=transactions)
    ledger = MemoryLedgerRepository(transactions=transactions, log=log, clock=clock)
    sparse = MemorySparseIndex(transactions=transactions)
    indexes = MemoryVectorIndexes(transactions=transactions)
    source = MemoryAuditSource(
        recorder=recorder,
        vault=vault,
        sessions=sessions,
        sparse=sparse,
        indexes=indexes,
        ledger=ledger,
    )
    return Store(
        transactions=transactions,
        log=log,
        vault=vault,
        sessions=sessions,
        sparse=sparse,
        indexes=indexes,
        outbox=MemoryVectorOutbox(transactions=transactions, clock=clock),
        ledger=ledger,
        secret=MemoryInstallationSecret(randomness=randomness),
        archive=MemoryArchive(
            transactions=transactions,
            recorder=recorder,
            vault=vault,
            sessions=sessions,
            ledger=ledger,
        ),
        audit=lambda: _unchanging(transactions, source),
    )


@contextmanager
def _unchanging(transactions: Transactions, source: "AuditSource") -> "Generator[AuditSource]":
    with transactions.snapshot():
        yield source


@contextmanager
def _sqlite_store(
    settings: StoreSettings, clock: Clock, randomness: Randomness
) -> Generator[Store]:
    # As above.
    from remembrancer.adapters.eventlog.event_log import RecordedEventLog  # noqa: PLC0415
    from remembrancer.adapters.sqlite.archive import SqliteArchive  # noqa: PLC0415
    from remembrancer.adapters.sqlite.check_up import check_up  # noqa: PLC0415
    from remembrancer.adapters.sqlite.database import Database  # noqa: PLC0415
    from remembrancer.adapters.sqlite.entry_vault import SqliteEntryVault  # noqa: PLC0415
    from remembrancer.adapters.sqlite.installation_secret import (  # noqa: PLC0415
        SqliteInstallationSecret,
    )
    from remembrancer.adapters.sqlite.ledger_repository import SqliteLedgerRepository  # noqa: PLC0415
    from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder  # noqa: PLC0415
    from remembrancer.adapters.sqlite.session_vault import SqliteSessionVault  # noqa: PLC0415
    from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex  # noqa: PLC0415
    from remembrancer.adapters.sqlite.transactions import SqliteTransactions  # noqa: PLC0415
    from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes  # noqa: PLC0415
    from remembrancer.adapters.sqlite.vector_outbox import SqliteVectorOutbox  # noqa: PLC0415

    with Database.open(
        settings.path, busy_timeout_s=settings.busy_timeout_s, read_only=settings.read_only
    ) as database:
        log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        yield Store(
            transactions=SqliteTransactions(database=database),
            log=log,
            vault=SqliteEntryVault(database=database),
            sessions=SqliteSessionVault(database=database),
            sparse=SqliteSparseIndex(database=database),
            indexes=SqliteVectorIndexes(database=database),
            outbox=SqliteVectorOutbox(database=database, clock=clock),
            ledger=SqliteLedgerRepository(database=database, log=log, clock=clock),
            secret=SqliteInstallationSecret(database=database, randomness=randomness),
            archive=SqliteArchive(database=database),
            audit=lambda: _sqlite_audit(settings, is_ours=True),
            check_up=lambda deep: check_up(database, deep=deep),
        )


@contextmanager
def open_audit_source(settings: StoreSettings) -> "Generator[AuditSource]":
    """Open what the settings name for an audit alone: nothing is made, written or locked out.

    Raises:
        SettingsError: there is nothing that could be opened.
        StoreError: it can't be opened; the error says why.
    """
    opened: AbstractContextManager[AuditSource]
    match settings.backend:
        case "memory":
            problem = "memory can't be audited from outside of its process"
            raise SettingsError(setting="store.backend", problem=problem)
        case "sqlite":
            opened = _sqlite_audit(settings, is_ours=False)
        case "postgres":
            opened = _postgres().postgres_audit(settings)
    with opened as source:
        yield source


def _sqlite_audit(
    settings: StoreSettings, *, is_ours: bool
) -> "AbstractContextManager[AuditSource]":
    # As above.
    from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource  # noqa: PLC0415

    return SqliteAuditSource.open(
        settings.path, busy_timeout_s=settings.busy_timeout_s, is_ours=is_ours
    )
