"""Owners' ledgers, one decision at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation
from remembrancer.domain.reservation_ledger import ReservationLedger

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class HeldLedger:
    """An owner's ledger while its lock is held; a decision must not keep it."""

    ledger: ReservationLedger
    now: datetime
    """The store's time, aware UTC, read once after the lock was taken, and never before the
    ledger's last event (design 4.2, rule 6)."""
    find: Callable[[UUID], Reservation | None]
    """What became of a reservation of this owner, however old, as committed before this decision:
    the ``earlier`` of decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendOfDay:
    """One owner's spend of one UTC day, as its receipts add up."""

    tenant: str
    owner: str
    day: UtcDay
    requests: int
    reserved_quanta: int
    """Complete charges of all requests of the day."""
    charged_quanta: int
    """What counts against the ceiling: settled and reconciled charges, and the complete ones of
    pending and unknown reservations."""
    pending_quanta: int
    unknown_quanta: int
    pending: int
    unknown: int
    ceiling_quanta: int
    ceiling_requests: int
    """The ceilings in force at the day's last admission."""


class LedgerRepository(Protocol):
    """Takes an owner's lock, gives the ledger and the store's time, commits durably.

    The lock holds across threads and processes.  Owners don't wait for each other longer than a
    commit takes.  Events and receipts (the projection that :meth:`receipt` and :meth:`days`
    read) are committed together.  Loading a ledger costs the same however long its stream is.
    """

    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        """Run ``decision`` under the owner's lock and commit what the ledger recorded.

        When this returns, the events survive a power cut.  A decision that raises a
        ``RefusedError`` still has its events committed first (expired reservations became
        unknown), then the refusal is raised; after any other exception nothing of it is.
        ``decision`` is quick and does no I/O but ``find``; it may run in another thread, together
        with those of other owners, and once at most.

        ``about`` names the reservation that the decision will ask ``find`` for, if there is one.
        A store that is a network away then reads its receipt together with the ledger; the answer
        is the same without it.

        If the caller is interrupted meanwhile (``KeyboardInterrupt``), no lock stays behind, and
        the decision may have been committed or not: ask for the reservation's id.

        Raises:
            OutcomeUnknownError: the commit was not confirmed; ask for the reservation's id.
            StoreError: nothing was committed.
            MalformedRecordError: the ledger's stream can't be read; nothing was committed.
            RuntimeError: a bug of the caller's: its thread is inside a transaction of this store,
                so that nothing could be durable yet when this returns.
        """
        ...

    def receipt(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        """Return what became of a reservation, or None; takes no lock."""
        ...

    def days(
        self, tenant: str, owner: str | None = None, *, since: UtcDay | None = None
    ) -> Sequence[SpendOfDay]:
        """Return the spend by owner and day, ordered by (owner, day); takes no lock."""
        ...
