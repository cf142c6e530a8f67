"""Whether a ledger's events, as an export has them, are such as a ledger can have recorded.

Receipts follow these events, and what stores do with an amount that can't be differs: one
refuses it with an error of its driver's, another keeps it.  So it is refused here, for all.
"""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from remembrancer.application.utc_time import UtcTime
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import QUANTA_MAX, TOKENS_MAX, Quanta, utc_day
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.reservation import (
    REQUESTS_PER_DAY_MAX,
    HexDigest,
    Reservation,
    ReservationKind,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.reservation_event import (
    LedgerEvent,
    ReservationAdmitted,
    ReservationBecameUnknown,
    ReservationReconciled,
    ReservationSettled,
)
from remembrancer.domain.reservation_ledger import ReservationLedger

LEASE_S_MAX = 86_400
"""No release gave a longer lease."""

_Charge = Annotated[int, Field(ge=1, le=QUANTA_MAX)]
_Requests = Annotated[int, Field(ge=0, le=REQUESTS_PER_DAY_MAX)]


class _Fact(Parsed):
    timestamp: UtcTime
    reservation_id: UUID
    day: str


class _Admitted(_Fact):
    kind: Annotated[ReservationKind, Field(strict=False)]
    deadline: UtcTime | None
    request_digest: HexDigest
    reserved_quanta: _Charge
    lease_s: Annotated[int, Field(ge=1, le=LEASE_S_MAX)]
    day_quanta_before: Quanta
    day_requests_before: _Requests
    ceiling_quanta: Quanta
    ceiling_requests: _Requests
    mechanism_version: Name
    configuration_digest: HexDigest
    embedding_tuple_digest: HexDigest
    pricing_digest: HexDigest


class _Settled(_Fact):
    reserved_quanta: _Charge
    charged_quanta: _Charge
    usage_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)]


class _BecameUnknown(_Fact):
    charged_quanta: _Charge
    reason: Annotated[UnknownReason, Field(strict=False)]


class _Reconciled(_Fact):
    unknown_quanta: _Charge
    charged_quanta: Quanta
    stated_quanta: Quanta
    evidence_digest: HexDigest
    reconciled_by: Name


_BOUNDS: dict[type[LedgerEvent], type[_Fact]] = {
    ReservationAdmitted: _Admitted,
    ReservationSettled: _Settled,
    ReservationBecameUnknown: _BecameUnknown,
    ReservationReconciled: _Reconciled,
}


class RestoredSpend:
    """Follows the reservations of all ledgers; keeps those alone that may still change."""

    def __init__(self) -> None:
        self._open: dict[tuple[UUID, UUID], Reservation] = {}
        self._asking: dict[UUID, UUID] = {}
        """By ledger: the query that is pending, of which there is one at most."""

    def problem_of(self, fact: LedgerEvent) -> str | None:
        """Take a ledger's next event in, or say what is wrong with it."""
        bounds = _BOUNDS[type(fact)]
        try:
            bounds(**{name: getattr(fact, name) for name in bounds.model_fields})
        except InvalidInputError as error:
            return f"{error.field.removeprefix('_')} {error.problem}"
        if fact.originator_id != ReservationLedger.create_id(fact.tenant, fact.owner):
            return "the reservation is in another owner's ledger"
        key = (fact.originator_id, fact.reservation_id)
        before = self._open.pop(key, None)
        if not self._is_only_query(fact):
            return "a query is admitted while another is pending"
        if not _follows(fact, before):
            return "the reservation can't have gone on like this"
        after = fact.reservation_after(before)
        if after and after.state in {ReservationState.PENDING, ReservationState.UNKNOWN}:
            self._open[key] = after
        return None

    def _is_only_query(self, fact: LedgerEvent) -> bool:
        ledger, about = fact.originator_id, fact.reservation_id
        if isinstance(fact, ReservationAdmitted) and fact.kind == ReservationKind.QUERY:
            return self._asking.setdefault(ledger, about) == about
        if self._asking.get(ledger) == about:
            del self._asking[ledger]
        return True


def _follows(fact: LedgerEvent, before: Reservation | None) -> bool:
    """Say whether a fact is what the ledger can have decided, the amounts being such."""
    if isinstance(fact, ReservationAdmitted):
        return (
            before is None
            and fact.day == utc_day(fact.timestamp)
            and fact.day_quanta_before + fact.reserved_quanta <= fact.ceiling_quanta
            and fact.day_requests_before < fact.ceiling_requests
        )
    if before is None or fact.day != before.day:
        return False
    if isinstance(fact, ReservationReconciled):
        return (
            before.state is ReservationState.UNKNOWN
            and fact.unknown_quanta == before.reserved_quanta
            and fact.stated_quanta <= fact.charged_quanta < fact.unknown_quanta
        )
    if before.state is not ReservationState.PENDING:
        return False
    if isinstance(fact, ReservationSettled):
        return fact.charged_quanta <= fact.reserved_quanta == before.reserved_quanta
    return isinstance(fact, ReservationBecameUnknown) and (
        fact.charged_quanta == before.reserved_quanta
    )
