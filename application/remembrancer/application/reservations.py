"""The ledger's part in one request: reserve, settle or mark unknown, under the owner's lock."""

from dataclasses import dataclass, field
from uuid import UUID

from remembrancer.application.ports.ledger_repository import HeldLedger, LedgerRepository
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.reservation import (
    Reservation,
    ReservationAnswer,
    ReservationKind,
    ReservationRequest,
    ReservationState,
    UnknownReason,
)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One reservation on its way: its id, its complete charge, and since when its lease runs."""

    tenant: str
    owner: str
    kind: ReservationKind
    reservation_id: UUID
    request_digest: str
    input_bytes: tuple[int, ...]
    configuration: Configuration
    lease_began_s: float
    _abandoned: bool = field(default=False, init=False)

    @property
    def complete_charge(self) -> int:
        """The most that the request can cost, in quanta."""
        return self.configuration.pricing.complete_charge(self.input_bytes)

    @property
    def is_abandoned(self) -> bool:
        """True once nobody waits for it any more."""
        return self._abandoned

    def abandon(self) -> None:
        """Keep a reservation that is still on its way to the store from being made."""
        self._abandoned = True


def reserve(ledger: LedgerRepository, attempt: Attempt) -> ReservationAnswer | None:
    """Commit the reservation of an attempt; None if its caller is gone: nobody would send.

    Raises:
        SpendRefusedError: a rule or a ceiling says no; nothing was set aside.
        StoreError: see :meth:`LedgerRepository.decide`.
    """

    def admit(held: HeldLedger) -> ReservationAnswer | None:
        if attempt.is_abandoned:
            return None
        return held.ledger.admit(
            ReservationRequest(
                reservation_id=attempt.reservation_id,
                kind=attempt.kind,
                request_digest=attempt.request_digest,
                charge_quanta=attempt.complete_charge,
            ),
            terms=attempt.configuration.spend_terms,
            earlier=held.find(attempt.reservation_id),
            at=held.now,
        )

    return ledger.decide(attempt.tenant, attempt.owner, admit, about=attempt.reservation_id)


def settle(ledger: LedgerRepository, attempt: Attempt, usage_tokens: int) -> Reservation:
    """Commit what validated usage cost.

    Raises:
        ReservationUnknownError: the lease had run out; the complete charge stays.
    """
    charge = attempt.configuration.pricing.settled_charge(usage_tokens, attempt.input_bytes)
    return ledger.decide(
        attempt.tenant,
        attempt.owner,
        lambda held: held.ledger.settle(
            attempt.reservation_id,
            charged_quanta=charge,
            usage_tokens=usage_tokens,
            earlier=held.find(attempt.reservation_id),
            at=held.now,
        ),
        about=attempt.reservation_id,
    )


def mark_unknown(
    ledger: LedgerRepository, attempt: Attempt, reason: UnknownReason
) -> Reservation | None:
    """Commit that the usage can't be proved, if the reservation is pending.

    Returns how it stands now; None where nothing was ever reserved.
    """

    def mark(held: HeldLedger) -> Reservation | None:
        known = held.find(attempt.reservation_id)
        if known is None or known.state is not ReservationState.PENDING:
            return known
        return held.ledger.mark_unknown(
            attempt.reservation_id, reason=reason, earlier=known, at=held.now
        )

    return ledger.decide(attempt.tenant, attempt.owner, mark, about=attempt.reservation_id)


def is_pending(ledger: LedgerRepository, attempt: Attempt) -> bool:
    """Read the lease again from the store."""
    known = ledger.receipt(attempt.tenant, attempt.owner, attempt.reservation_id)
    return known is not None and known.state is ReservationState.PENDING
