"""Rules of one owner's ledger (seed BSQ; design 4.2), and what it says of receipts."""

from array import array
from collections import Counter
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from remembrancer.application.audit.facts import BOUGHT_MAX, Facts, microseconds
from remembrancer.application.audit.finding import Place
from remembrancer.application.audit.natural_key import stream_key
from remembrancer.application.audit.reading import State
from remembrancer.application.audit.spending import (
    BEGINNING,
    CEILINGS,
    EXPIRY_FIRST,
    LEASE,
    ONE_PENDING,
    RECONCILED,
    SETTLEMENT,
    TOTALS,
    UNKNOWN,
)
from remembrancer.domain.bounds import LEASE_S, MECHANISM_VERSION, PENDING_QUERIES_MAX
from remembrancer.domain.money import QUANTA_MAX, UtcDay
from remembrancer.domain.reservation import (
    Reservation,
    ReservationKind,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.reservation_ledger import ReservationLedger

ADMITTED: Final = ReservationLedger.ReservationAdmitted.TOPIC
SETTLED: Final = ReservationLedger.ReservationSettled.TOPIC
BECAME_UNKNOWN: Final = ReservationLedger.ReservationBecameUnknown.TOPIC
RECONCILIATION: Final = ReservationLedger.ReservationReconciled.TOPIC

_INDEXING, _QUERY = ReservationKind.INDEXING.value, ReservationKind.QUERY.value
_PENDING, _SETTLED = ReservationState.PENDING.value, ReservationState.SETTLED.value
_REASONS = frozenset(reason.value for reason in UnknownReason)
_SECOND_US = 1_000_000
_EXPIRED = UnknownReason.EXPIRED.value


class Pending(NamedTuple):
    """A pending reservation."""

    kind: str
    day: str
    reserved_quanta: int
    expires_at: datetime
    position: int
    configuration_digest: str
    embedding_tuple_digest: str
    request_digest: str
    admitted_at: datetime


class LedgerRules:
    """Folds one ledger.

    Its memory is what is pending, and eight bytes each for ids and unknown charges of its past.
    """

    __slots__ = (
        *("_place", "_facts", "_who", "_day", "_days", "pending", "_leases", "_queries"),
        *("_admitted", "_unknown", "_reconciled", "_copied"),
    )

    def __init__(self, place: Place, facts: Facts) -> None:
        self._place = place
        self._facts = facts
        self._who = ""
        self._day = ""
        self._days: dict[str, list[int]] = {}
        """Of the latest day and of days with a pending reservation: quanta, requests, pending."""
        self.pending: dict[str, Pending] = {}
        self._leases: dict[str, datetime] = {}
        """When those of :attr:`pending` expire, in the order of their admission."""
        self._queries = 0
        """How many of :attr:`pending` are queries."""
        self._admitted = array("q")
        """A hash and the version of each admission."""
        self._unknown = array("q")
        """Hashes of what became unknown."""
        self._reconciled = array("q")
        """A hash and the version of each reconciliation."""
        self._copied = 0
        """At which version the store's copy of the ledger was made; 0 where there is none."""

    def begin(self, topic: str, state: State) -> bytes | None:
        """Take in the first event; return the id its stream must have, None if it begins none."""
        place = self._place
        place.tenant, place.owner = state.tenant, state.owner
        self._who = f"{place.tenant}\x1f{place.owner}"
        if topic != ADMITTED:
            place.report(BEGINNING, "the stream begins with ReservationAdmitted", topic)
        if self._facts.snapshots is not None:
            self._copied = self._facts.snapshots.version_of(state.tenant, state.owner)
        self.take(topic, state)
        return stream_key("reservation_ledger", state.tenant, state.owner)

    def take(self, topic: str, state: State) -> None:
        """Take in an event."""
        place = self._place
        if state.tenant != place.tenant or state.owner != place.owner:
            place.report(BEGINNING, "an event of this tenant and owner", "another's")
        if topic == ADMITTED:
            self._admit(state)
        elif topic == SETTLED:
            self._settle(state)
        elif topic == BECAME_UNKNOWN:
            self._give_up(state)
        elif topic == RECONCILIATION:
            self._reconcile(state)
        else:
            place.report(BEGINNING, "an event of a ledger", topic)
        if place.version == self._copied:
            self._compare_copy(state.timestamp)

    def finish(self) -> None:
        """The stream has ended."""
        place = self._place
        if self._facts.snapshots is not None and self._copied > place.version:
            self._facts.snapshots.report_ahead(place, self._copied)
        ids, versions = self._admitted[0::2], self._admitted[1::2]
        if len(set(ids)) != len(ids):
            seen: set[int] = set()
            for number, version in zip(ids, versions, strict=True):
                if number in seen:
                    place.report(BEGINNING, "an id of its own", "used before", version=version)
                seen.add(number)
        if not self._reconciled:
            return
        left = Counter(self._unknown)
        for number, version in zip(self._reconciled[0::2], self._reconciled[1::2], strict=True):
            if not left[number]:
                place.report(
                    RECONCILED,
                    "an unknown reservation of this day and charge, not reconciled before",
                    "none",
                    version=version,
                )
            left[number] -= 1

    # -- One event each ----------------------------------------------------

    def _admit(self, state: State) -> None:
        place, at = self._place, state.timestamp
        day, kind = state.day, state.kind or _INDEXING
        self._check_expired(at)
        self._check_terms(state, at, kind)
        if kind == _QUERY and self._queries >= PENDING_QUERIES_MAX:
            place.report(ONE_PENDING, "no other pending query", f"{self._queries} pending")
        reserved, reservation = state.reserved_quanta, state.reservation_id
        used = self._days.get(day)
        if used is None:
            used = self._days[day] = [0, 0, 0]
        self._check_room(state, used)
        if reservation in self.pending:
            place.report(BEGINNING, "an id of its own", "one that is pending")
        expires_at = at + timedelta(seconds=state.lease_s)
        self.pending[reservation] = Pending(
            kind,
            day,
            reserved,
            expires_at,
            place.position,
            state.configuration_digest,
            state.embedding_tuple_digest,
            state.request_digest,
            at,
        )
        if len(self._facts.bought) < BOUGHT_MAX:
            self._facts.bought.add(state.embedding_tuple_digest)
        self._leases[reservation] = expires_at
        self._queries += kind == _QUERY
        used[0] += reserved
        used[1] += 1
        used[2] += 1
        self._admitted.extend((hash(reservation), place.version))
        if day > self._day:
            self._day, before = day, self._day
            self._forget(before)
        who = f"{self._who}\x1f{reservation}"
        admitted_us = microseconds(at)
        expires_us = admitted_us + state.lease_s * _SECOND_US
        self._facts.admissions.expect(
            f"{who}\x1f{kind}\x1f{state.request_digest}\x1f{day}\x1f{admitted_us}"
            f"\x1f{expires_us}\x1f{reserved}\x1f{place.version}"
            f"\x1f{state.ceiling_quanta}\x1f{state.ceiling_requests}"
        )
        self._facts.outcomes.expect(f"{who}\x1f{_PENDING}\x1f{reserved}\x1fNone")

    def _settle(self, state: State) -> None:
        place, at = self._place, state.timestamp
        reservation, charged = state.reservation_id, state.charged_quanta
        reserved = state.reserved_quanta
        known = self._ended(reservation)
        if known is None:
            place.report(SETTLEMENT, "a pending reservation", "none of this id")
        else:
            if state.day != known.day:
                place.report(LEASE, f"the day of admission, {known.day}", state.day)
            if reserved != known.reserved_quanta:
                place.report(SETTLEMENT, f"{known.reserved_quanta} were reserved", str(reserved))
            if at >= known.expires_at:
                place.report(
                    SETTLEMENT,
                    f"before the lease ran out at {known.expires_at.isoformat()}",
                    at.isoformat(),
                )
            self._offer(state, known)
        most = reserved if known is None else known.reserved_quanta
        if not 1 <= charged <= most:
            place.report(SETTLEMENT, f"a charge of 1 to {most}", str(charged))
        if state.usage_tokens < 1:
            place.report(SETTLEMENT, "a usage of 1 or more", str(state.usage_tokens))
        self._change(state.day, charged - reserved)
        who = f"{self._who}\x1f{reservation}"
        outcomes = self._facts.outcomes
        outcomes.find(f"{who}\x1f{_PENDING}\x1f{reserved}\x1fNone")
        outcomes.expect(f"{who}\x1f{_SETTLED}\x1f{charged}\x1f{state.usage_tokens}")

    def _give_up(self, state: State) -> None:
        place, at = self._place, state.timestamp
        reservation, charged, reason = (
            state.reservation_id,
            state.charged_quanta,
            state.reason,
        )
        known = self._ended(reservation)
        if known is None:
            place.report(UNKNOWN, "a pending reservation", "none of this id")
        else:
            if state.day != known.day:
                place.report(LEASE, f"the day of admission, {known.day}", state.day)
            if charged != known.reserved_quanta:
                place.report(
                    UNKNOWN, f"the complete charge of {known.reserved_quanta}", str(charged)
                )
            if reason == _EXPIRED and at < known.expires_at:
                place.report(
                    UNKNOWN,
                    f"expired at {known.expires_at.isoformat()} or later",
                    at.isoformat(),
                )
        if reason not in _REASONS:
            place.report(UNKNOWN, "a known reason", "another")
        self._unknown.append(hash((reservation, state.day, charged)))
        who = f"{self._who}\x1f{reservation}"
        facts = self._facts
        facts.outcomes.find(f"{who}\x1f{_PENDING}\x1f{charged}\x1fNone")
        facts.outcomes.expect(f"{who}\x1f{ReservationState.UNKNOWN.value}\x1f{charged}\x1fNone")
        facts.reasons.expect(f"{who}\x1f{reason}")

    def _reconcile(self, state: State) -> None:
        place = self._place
        reservation, charged = state.reservation_id, state.charged_quanta
        unknown = state.unknown_quanta
        self._check_expired(state.timestamp)
        if reservation in self.pending:
            place.report(RECONCILED, "an unknown reservation", "one that is pending")
        if not 0 <= state.stated_quanta <= charged < unknown:
            place.report(
                RECONCILED, f"a charge of {state.stated_quanta} to {unknown - 1}", str(charged)
            )
        self._reconciled.extend((hash((reservation, state.day, unknown)), place.version))
        self._change(state.day, charged - unknown)
        who = f"{self._who}\x1f{reservation}"
        outcomes = self._facts.outcomes
        outcomes.find(f"{who}\x1f{ReservationState.UNKNOWN.value}\x1f{unknown}\x1fNone")
        outcomes.expect(f"{who}\x1f{ReservationState.RECONCILED.value}\x1f{charged}\x1fNone")

    # -- Rules and totals --------------------------------------------------

    def _check_expired(self, at: datetime) -> None:
        # Leases are of one length and times don't go back: the first to end stands first.
        while self._leases:
            reservation, expires_at = next(iter(self._leases.items()))
            if expires_at > at:
                return
            del self._leases[reservation]
            self._place.report(
                EXPIRY_FIRST,
                "what had expired is unknown by now",
                f"{UUID(reservation)}, expired at {expires_at.isoformat()}, is pending",
            )

    def _check_terms(self, state: State, at: datetime, kind: str) -> None:
        place, lease_s = self._place, state.lease_s
        if state.day != at.date().isoformat():
            place.report(LEASE, f"the day {at.date().isoformat()}", state.day)
        if state.mechanism_version == MECHANISM_VERSION and lease_s != LEASE_S:
            place.report(LEASE, f"a lease of {LEASE_S} s", f"{lease_s} s")
        if kind == _QUERY:
            if state.deadline != at + timedelta(seconds=lease_s):
                place.report(LEASE, "a deadline at the end of the lease", "another, or none")
        elif state.kind is not None or state.deadline is not None:
            place.report(LEASE, "neither kind nor deadline", "one of them")

    def _check_room(self, state: State, used: list[int]) -> None:
        place, reserved = self._place, state.reserved_quanta
        quanta, requests, _ = used
        if (state.day_quanta_before, state.day_requests_before) != (quanta, requests):
            place.report(
                TOTALS,
                f"{quanta} quanta and {requests} requests before it",
                f"{state.day_quanta_before} and {state.day_requests_before}",
            )
        if not 1 <= reserved <= QUANTA_MAX:
            place.report(CEILINGS, f"a charge of 1 to {QUANTA_MAX}", str(reserved))
        if quanta + reserved > state.ceiling_quanta:
            place.report(
                CEILINGS,
                f"at most {state.ceiling_quanta} quanta on {state.day}",
                str(quanta + reserved),
            )
        if requests + 1 > state.ceiling_requests:
            place.report(
                CEILINGS,
                f"at most {state.ceiling_requests} requests on {state.day}",
                str(requests + 1),
            )

    def _change(self, day: str, quanta: int) -> None:
        used = self._days.get(day)
        if used is not None:
            used[0] += quanta

    def _ended(self, reservation: str) -> Pending | None:
        """Take a reservation out of what is pending."""
        known = self.pending.pop(reservation, None)
        if known is not None:
            self._leases.pop(reservation, None)
            self._queries -= known.kind == _QUERY
            self._days[known.day][2] -= 1
            self._forget(known.day)
        return known

    def _forget(self, day: str) -> None:
        """Forget a day's totals once no admission can fall on it and nothing of it is pending."""
        used = self._days.get(day)
        if day < self._day and used is not None and used[2] <= 0:
            del self._days[day]

    def _compare_copy(self, at: datetime) -> None:
        if self._facts.snapshots is None:
            return
        today = at.date().isoformat()
        self._facts.snapshots.compare(
            self._place,
            at,
            {
                day: (quanta, requests)
                for day, (quanta, requests, pending) in self._days.items()
                if day == today or pending > 0
            },
            [
                Reservation(
                    reservation_id=UUID(reservation),
                    kind=ReservationKind(one.kind),
                    request_digest=one.request_digest,
                    state=ReservationState.PENDING,
                    day=UtcDay(one.day),
                    admitted_at=one.admitted_at,
                    expires_at=one.expires_at,
                    reserved_quanta=one.reserved_quanta,
                    charged_quanta=one.reserved_quanta,
                )
                for reservation, one in self.pending.items()
            ],
        )

    def _offer(self, state: State, known: Pending) -> None:
        """Let a settled query's vectors be prepared, and a settled batch's be indexed."""
        place = self._place
        if known.kind == _QUERY:
            self._facts.preparations.offer(
                (
                    *(state.tenant, state.owner, state.reservation_id),
                    known.configuration_digest,
                ),
                known.position,
                place.position,
            )
        else:
            self._facts.batches.offer(
                (state.tenant, state.owner, known.embedding_tuple_digest),
                known.position,
                place.position,
            )
