"""One owner's spend: which requests were admitted, and what they cost (design 4.2).

Every request that leaves has its complete charge reserved here first, durably.  At every version,
for every UTC day::

    pending + settled + unknown + reconciled charges <= the money ceiling in force at admission
    admitted requests                                <= the request ceiling in force at admission

The state is small: the latest day's totals, those of days with a pending reservation, and the
pending reservations.  What became of older ones is in the stream; a decision about one is given
it as ``earlier``, which is what ``reservation_event.reservation_in`` says of that id (adr/0010).
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import UUID

from eventsourcing.domain import Aggregate

from remembrancer.domain.bounds import LEASE_S
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import stream_id
from remembrancer.domain.money import UtcDay, as_utc, utc_day
from remembrancer.domain.reservation import (
    DayTotals,
    ReconciliationEvidence,
    Reservation,
    ReservationAnswer,
    ReservationKind,
    ReservationRequest,
    ReservationState,
    SpendTerms,
    UnknownReason,
    require_room,
)
from remembrancer.domain.reservation_event import (
    LEDGER_TOPIC,
    LedgerEvent,
    ReservationAdmitted,
    ReservationBecameUnknown,
    ReservationReconciled,
    ReservationSettled,
    reservation_in,
)
from remembrancer.domain.spend_errors import (
    ChargeNotLoweredError,
    ReservationNotPendingError,
    ReservationNotUnknownError,
    ReservationReusedError,
    ReservationUnknownError,
)

STATE_ABSENT = "absent"
"""What errors call the state of a reservation that was never admitted."""

_BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)


class ReservationLedger(Aggregate):
    """Budget and reservations of one (tenant, owner); ``unused`` before the first admission."""

    TOPIC = LEDGER_TOPIC

    # -- Facts, in the order they may first appear -------------------------

    Event = LedgerEvent
    ReservationAdmitted = ReservationAdmitted
    ReservationSettled = ReservationSettled
    ReservationBecameUnknown = ReservationBecameUnknown
    ReservationReconciled = ReservationReconciled

    # -- Questions ---------------------------------------------------------

    @staticmethod
    def create_id(tenant: str, owner: str) -> UUID:
        """Return the stream of an owner's ledger."""
        return stream_id("reservation_ledger", tenant, owner)

    @classmethod
    def unused(cls, tenant: str, owner: str) -> Self:
        """Return the ledger of an owner for whom nothing was ever reserved: version 0."""
        return cls.restored(tenant, owner, version=0, last_at=_BEFORE_ALL, days={}, pending=())

    @classmethod
    def restored(
        cls,
        tenant: str,
        owner: str,
        *,
        version: int,
        last_at: datetime,
        days: Mapping[UtcDay, DayTotals],
        pending: Iterable[Reservation],
    ) -> Self:
        """Return the ledger as it was after its event number ``version``."""
        ledger = cls.__new__(cls)
        ledger.__base_init__(cls.create_id(tenant, owner), version, _BEFORE_ALL)
        ledger.modified_on = as_utc(last_at)
        ledger._begin(tenant, owner, days, pending)  # noqa: SLF001  # its own
        return ledger

    @property
    def days(self) -> Mapping[UtcDay, DayTotals]:
        """Totals of the latest day and of those that have a pending reservation."""
        return dict(self._days)

    @property
    def pending(self) -> tuple[Reservation, ...]:
        """Pending reservations, oldest first, expired ones included."""
        return tuple(self._pending.values())

    def totals(self, day: UtcDay) -> DayTotals:
        """Return what counts against ``day``, one of :attr:`days` or a later one."""
        return self._days.get(day, DayTotals())

    def not_before(self, at: datetime) -> datetime:
        """Return ``at`` in UTC, or the time of the last event if that is later.

        An owner's time never decreases, even if the store's clock is set back: spent room would
        come back, and dead leases to life.
        """
        return max(as_utc(at), self.modified_on)

    # -- Decisions: check every rule, then record --------------------------

    def admit(
        self,
        request: ReservationRequest,
        *,
        terms: SpendTerms,
        earlier: Reservation | None,
        at: datetime,
    ) -> ReservationAnswer:
        """Set the request's complete charge aside, if rules and ceilings let it.

        Expired reservations become unknown first, in this same decision.  That stands also when
        the request is refused: commit the pending events in either case.

        Raises:
            ReservationReusedError: the id was admitted for another request.
            QueryPendingError: for a query, while another is pending.
            OverRequestCeilingError: the day's requests are used up.
            OverMoneyCeilingError: the charge doesn't fit the day's money.
        """
        at = self.not_before(at)
        self.expire(at=at)
        known = self._known(request.reservation_id, earlier)
        if known is not None:
            if (known.kind, known.request_digest, known.reserved_quanta) != (
                request.kind,
                request.request_digest,
                request.charge_quanta,
            ):
                raise ReservationReusedError(request.reservation_id)
            return ReservationAnswer(reservation=known, repeated=True)
        day = utc_day(at)
        require_room(
            request, ceilings=terms.ceilings, day=day, used=self.totals(day), pending=self.pending
        )
        self._record_admission(request, terms, at)
        return ReservationAnswer(reservation=self._pending[request.reservation_id], repeated=False)

    def settle(
        self,
        reservation_id: UUID,
        *,
        charged_quanta: int,
        usage_tokens: int,
        earlier: Reservation | None,
        at: datetime,
    ) -> Reservation:
        """Charge what validated usage cost.  The same settlement again records nothing.

        Raises:
            ReservationUnknownError: it is unknown, or its lease has run out; nothing changes.
            ReservationNotPendingError: it was never admitted, or has ended with another charge.
            ChargeNotLoweredError: the charge is above what was reserved, or under 1.
            InvalidInputError: the usage isn't a whole number from 1 on, so it proves nothing.
        """
        at = self.not_before(at)
        known = self._known(reservation_id, earlier)
        if known is None or known.state is ReservationState.RECONCILED:
            raise _not_pending(reservation_id, known)
        if known.state is ReservationState.SETTLED:
            if (known.charged_quanta, known.usage_tokens) != (charged_quanta, usage_tokens):
                raise _not_pending(reservation_id, known)
            return known
        if known.state is ReservationState.UNKNOWN or known.expires_at <= at:
            raise ReservationUnknownError(
                reservation_id=reservation_id, charged_quanta=known.charged_quanta
            )
        _require_within(known, charged_quanta, least_quanta=1, most_quanta=known.reserved_quanta)
        if type(usage_tokens) is not int or usage_tokens < 1:
            raise InvalidInputError(field="usage_tokens", problem="must be 1 or more")
        fact = self._record(
            ReservationSettled,
            reservation_id,
            known.day,
            at,
            reserved_quanta=known.reserved_quanta,
            charged_quanta=charged_quanta,
            usage_tokens=usage_tokens,
        )
        return fact.reservation_after(known) or known

    def mark_unknown(
        self,
        reservation_id: UUID,
        *,
        reason: UnknownReason,
        earlier: Reservation | None,
        at: datetime,
    ) -> Reservation:
        """Give up proving the usage; the complete charge stays.  Again records nothing.

        Raises:
            ReservationNotPendingError: it was never admitted, or was settled or reconciled.
        """
        known = self._known(reservation_id, earlier)
        if known is not None and known.state is ReservationState.UNKNOWN:
            return known
        if known is None or known.state is not ReservationState.PENDING:
            raise _not_pending(reservation_id, known)
        self._record_unknown(known, reason, self.not_before(at))
        return self._after(known)

    def expire(self, *, at: datetime) -> tuple[Reservation, ...]:
        """Turn every pending reservation whose lease has run out into unknown; return them."""
        at = self.not_before(at)
        expired = [one for one in self._pending.values() if one.expires_at <= at]
        for one in expired:
            self._record_unknown(one, UnknownReason.EXPIRED, at)
        return tuple(self._after(one) for one in expired)

    def reconcile(
        self,
        reservation_id: UUID,
        *,
        charged_quanta: int,
        evidence: ReconciliationEvidence,
        earlier: Reservation | None,
        at: datetime,
    ) -> Reservation:
        """Lower an unknown charge, on the day of admission.  The same again records nothing.

        Expired reservations become unknown first, as in :meth:`admit`.

        Raises:
            ReservationNotUnknownError: it is absent, pending, settled, or reconciled otherwise.
            ChargeNotLoweredError: not lower than the charge, or lower than the evidence states.
        """
        at = self.not_before(at)
        self.expire(at=at)
        known = self._known(reservation_id, earlier)
        if (
            known is not None
            and known.state is ReservationState.RECONCILED
            and known.charged_quanta == charged_quanta
        ):
            return known
        if known is None or known.state is not ReservationState.UNKNOWN:
            raise ReservationNotUnknownError(
                reservation_id=reservation_id, state=known.state if known else STATE_ABSENT
            )
        _require_within(
            known,
            charged_quanta,
            least_quanta=evidence.stated_quanta,
            most_quanta=known.charged_quanta - 1,
        )
        self._record(
            ReservationReconciled,
            reservation_id,
            known.day,
            at,
            unknown_quanta=known.charged_quanta,
            charged_quanta=charged_quanta,
            stated_quanta=evidence.stated_quanta,
            evidence_digest=evidence.digest,
            reconciled_by=evidence.by,
        )
        return self._after(known)

    def _record_admission(
        self, request: ReservationRequest, terms: SpendTerms, at: datetime
    ) -> None:
        day = utc_day(at)
        used = self.totals(day)
        is_query = request.kind is ReservationKind.QUERY
        self._record(
            ReservationAdmitted,
            request.reservation_id,
            day,
            at,
            request_digest=request.request_digest,
            reserved_quanta=request.charge_quanta,
            lease_s=LEASE_S,
            day_quanta_before=used.quanta,
            day_requests_before=used.requests,
            ceiling_quanta=terms.ceilings.quanta_per_day,
            ceiling_requests=terms.ceilings.requests_per_day,
            mechanism_version=terms.mechanism_version,
            configuration_digest=terms.configuration_digest,
            embedding_tuple_digest=terms.embedding_tuple_digest,
            pricing_digest=terms.pricing_digest,
            kind=request.kind.value,
            deadline=at + timedelta(seconds=LEASE_S) if is_query else None,
        )

    def _record_unknown(self, known: Reservation, reason: UnknownReason, at: datetime) -> None:
        self._record(
            ReservationBecameUnknown,
            known.reservation_id,
            known.day,
            at,
            charged_quanta=known.charged_quanta,
            reason=reason.value,
        )

    def _record(
        self,
        fact: type[LedgerEvent],
        reservation_id: UUID,
        day: UtcDay,
        at: datetime,
        **fields: Any,
    ) -> LedgerEvent:
        # As the library's trigger_event, which looks for the topic of the class and copies more.
        fields |= {  # Of fields that the library adds type checkers know nothing.
            "originator_id": self.id,
            "originator_version": self.version + 1,
            "timestamp": at,
            "tenant": self.tenant,
            "owner": self.owner,
            "reservation_id": reservation_id,
            "day": day,
        }
        recorded = fact(**fields)
        recorded.mutate(self)
        self.pending_events.append(recorded)
        return recorded

    def _known(self, reservation_id: UUID, earlier: Reservation | None) -> Reservation | None:
        """Return the reservation as of this moment, uncommitted decisions included."""
        return self._pending.get(reservation_id) or reservation_in(
            self.pending_events, reservation_id, earlier=earlier
        )

    def _after(self, earlier: Reservation) -> Reservation:
        return self._known(earlier.reservation_id, earlier) or earlier

    # -- Evolution: no rules here, replay must never refuse ----------------

    def _begin(
        self,
        tenant: str,
        owner: str,
        days: Mapping[UtcDay, DayTotals],
        pending: Iterable[Reservation],
    ) -> None:
        self.tenant = tenant
        self.owner = owner
        self._days = dict(days)
        self._pending = {one.reservation_id: one for one in pending}

    def _evolve(self, fact: LedgerEvent) -> None:
        day, change = UtcDay(fact.day), fact.day_change()
        self._pending.pop(fact.reservation_id, None)
        if isinstance(fact, ReservationAdmitted):
            self._pending[fact.reservation_id] = fact.reservation_after(None)
            self._days.setdefault(day, DayTotals())
        if (before := self._days.get(day)) is not None:
            self._days[day] = DayTotals(
                quanta=before.quanta + change.quanta, requests=before.requests + change.requests
            )
        today = utc_day(fact.timestamp)
        if self._days.keys() != {today}:  # Else there is none to let go of.
            kept = {today} | {one.day for one in self._pending.values()}
            self._days = {day: totals for day, totals in self._days.items() if day in kept}


def _not_pending(reservation_id: UUID, known: Reservation | None) -> ReservationNotPendingError:
    return ReservationNotPendingError(
        reservation_id=reservation_id, state=known.state if known else STATE_ABSENT
    )


def _require_within(
    known: Reservation, asked_quanta: int, *, least_quanta: int, most_quanta: int
) -> None:
    # Not a number is not a charge: a bool or a float would compare, and then be stored.
    if type(asked_quanta) is not int or not least_quanta <= asked_quanta <= most_quanta:
        raise ChargeNotLoweredError(
            reservation_id=known.reservation_id,
            asked_quanta=asked_quanta,
            charged_quanta=known.charged_quanta,
            least_quanta=least_quanta,
        )
