"""What the suites of the ledger spend: requests, terms, and decisions with a fixed shape."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.clock import FixedClock
from remembrancer.domain.bounds import LEASE_S
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    Reservation,
    ReservationAnswer,
    ReservationKind,
    ReservationRequest,
    ReservationState,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted, reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger

MORNING = datetime(2030, 1, 1, 8, tzinfo=UTC)
LEASE = timedelta(seconds=LEASE_S)
SECOND = timedelta(seconds=1)
FIRST_ID, SECOND_ID, THIRD_ID = UUID(int=1), UUID(int=2), UUID(int=3)
QUERY, INDEXING = ReservationKind.QUERY, ReservationKind.INDEXING


@dataclass(frozen=True, slots=True)
class LedgerStore:
    """A repository under test, and what lies beside it in the same store."""

    ledgers: LedgerRepository
    log: EventLog
    transactions: Transactions
    clock: FixedClock
    """What the store tells as its time."""


def terms(*, quanta: int = 1_000, requests: int = 100) -> SpendTerms:
    """Return terms with these ceilings a day."""
    return SpendTerms(
        ceilings=Ceilings(quanta_per_day=quanta, requests_per_day=requests),
        mechanism_version="semantic-query@1",
        configuration_digest="0" * 64,
        embedding_tuple_digest="1" * 64,
        pricing_digest="2" * 64,
    )


def admission(
    reservation_id: UUID,
    *,
    kind: ReservationKind = INDEXING,
    charge: int = 10,
    digest: str = "a" * 64,
    under: SpendTerms | None = None,
) -> Callable[[HeldLedger], ReservationAnswer]:
    """Return the decision to reserve ``charge`` quanta."""
    request = ReservationRequest(
        reservation_id=reservation_id, kind=kind, request_digest=digest, charge_quanta=charge
    )
    in_force = under or terms()
    return lambda held: held.ledger.admit(
        request, terms=in_force, earlier=held.find(reservation_id), at=held.now
    )


@dataclass(frozen=True, slots=True)
class Spender:
    """One owner's decisions."""

    ledgers: LedgerRepository
    owner: str = "ana"
    tenant: str = "acme"

    def admit(
        self,
        reservation_id: UUID,
        *,
        kind: ReservationKind = INDEXING,
        charge: int = 10,
        digest: str = "a" * 64,
        under: SpendTerms | None = None,
    ) -> ReservationAnswer:
        """Reserve ``charge`` quanta."""
        decision = admission(reservation_id, kind=kind, charge=charge, digest=digest, under=under)
        return self.ledgers.decide(self.tenant, self.owner, decision, about=reservation_id)

    def settle(self, reservation_id: UUID, *, charge: int = 3, usage: int = 7) -> Reservation:
        """Charge what was used."""
        return self.ledgers.decide(
            self.tenant,
            self.owner,
            lambda held: held.ledger.settle(
                reservation_id,
                charged_quanta=charge,
                usage_tokens=usage,
                earlier=held.find(reservation_id),
                at=held.now,
            ),
            about=reservation_id,
        )

    def lose(
        self, reservation_id: UUID, *, reason: UnknownReason = UnknownReason.TIMEOUT
    ) -> Reservation:
        """Give up proving the usage."""
        return self.ledgers.decide(
            self.tenant,
            self.owner,
            lambda held: held.ledger.mark_unknown(
                reservation_id, reason=reason, earlier=held.find(reservation_id), at=held.now
            ),
            about=reservation_id,
        )

    def reconcile(self, reservation_id: UUID, *, charge: int, stated: int = 0) -> Reservation:
        """Lower an unknown charge with evidence."""
        evidence = ReconciliationEvidence(digest="e" * 64, stated_quanta=stated, by="operator")
        return self.ledgers.decide(
            self.tenant,
            self.owner,
            lambda held: held.ledger.reconcile(
                reservation_id,
                charged_quanta=charge,
                evidence=evidence,
                earlier=held.find(reservation_id),
                at=held.now,
            ),
            about=reservation_id,
        )

    def receipt(self, reservation_id: UUID) -> Reservation | None:
        """Return what became of a reservation."""
        return self.ledgers.receipt(self.tenant, self.owner, reservation_id)

    def state(self, reservation_id: UUID) -> ReservationState | None:
        """Return where a reservation stands."""
        receipt = self.receipt(reservation_id)
        return receipt.state if receipt else None

    def days(self) -> list[SpendOfDay]:
        """Return the owner's spend."""
        return list(self.ledgers.days(self.tenant, self.owner))


def recorded(log: EventLog, *, tenant: str = "acme", owner: str = "ana") -> list[AggregateEvent]:
    """Return what an owner's ledger has recorded."""
    return list(log.read(ReservationLedger.create_id(tenant, owner)))


def receipts_of(events: Iterable[AggregateEvent]) -> dict[UUID, Reservation | None]:
    """Return the fold of a ledger's events: each reservation as they tell it."""
    facts = [fact for fact in events if isinstance(fact, LedgerEvent)]
    return {
        fact.reservation_id: reservation_in(facts, fact.reservation_id)
        for fact in facts
        if isinstance(fact, ReservationAdmitted)
    }


def days_of(events: Iterable[AggregateEvent]) -> list[SpendOfDay]:
    """Return the spend by day of one ledger, as its events tell it."""
    facts = list(events)
    by_day: dict[str, list[Reservation]] = defaultdict(list)
    for one in receipts_of(facts).values():
        if one is not None:
            by_day[one.day].append(one)
    latest = {fact.day: fact for fact in facts if isinstance(fact, ReservationAdmitted)}
    return [
        SpendOfDay(
            tenant=latest[day].tenant,
            owner=latest[day].owner,
            day=of_day[0].day,
            requests=len(of_day),
            reserved_quanta=sum(one.reserved_quanta for one in of_day),
            charged_quanta=sum(one.charged_quanta for one in of_day),
            pending_quanta=_charged(of_day, ReservationState.PENDING),
            unknown_quanta=_charged(of_day, ReservationState.UNKNOWN),
            pending=sum(one.state is ReservationState.PENDING for one in of_day),
            unknown=sum(one.state is ReservationState.UNKNOWN for one in of_day),
            ceiling_quanta=latest[day].ceiling_quanta,
            ceiling_requests=latest[day].ceiling_requests,
        )
        for day, of_day in sorted(by_day.items())
    ]


def require_within_ceilings(events: Iterable[AggregateEvent]) -> None:
    """See that no day is above the ceilings in force, at every position of a ledger's stream."""
    quanta: dict[str, int] = defaultdict(int)
    requests: dict[str, int] = defaultdict(int)
    for fact in events:
        assert isinstance(fact, LedgerEvent)
        quanta[fact.day] += fact.day_change().quanta
        requests[fact.day] += fact.day_change().requests
        if isinstance(fact, ReservationAdmitted):
            assert quanta[fact.day] <= fact.ceiling_quanta
            assert requests[fact.day] <= fact.ceiling_requests


def _charged(of_day: Iterable[Reservation], state: ReservationState) -> int:
    return sum(one.charged_quanta for one in of_day if one.state is state)
