"""What a store is to those who put a memory together: its ports."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    InstallationSecret,
    SessionVault,
    SparseIndex,
    Transactions,
    VectorIndexes,
    VectorOutbox,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from remembrancer.application.ports.archive import Archive
    from remembrancer.application.ports.audit_source import AuditSource
    from remembrancer.application.ports.ledger_repository import LedgerRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The ports of one backend; what is written through them commits together."""

    transactions: Transactions
    log: EventLog
    vault: EntryVault
    sessions: SessionVault
    sparse: SparseIndex
    indexes: VectorIndexes
    """The registry; which of them are kept elsewhere is composition's to join."""
    outbox: VectorOutbox
    ledger: "LedgerRepository"
    secret: InstallationSecret
    archive: "Archive"
    audit: "Callable[[], AbstractContextManager[AuditSource]] | None" = None
    """Opens the same store for an audit, beside what is open."""
    check_up: "Callable[[bool], Sequence[tuple[str, bool, str, str]]] | None" = None
    """Looks at the server or the file, deeply or not: what, whether it is as it should be, what
    was found, what to do."""
