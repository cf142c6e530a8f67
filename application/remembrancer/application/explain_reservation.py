"""Use case: the life of one reservation, what it cost, and what it was for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.application.ports import Clock, EventLog, Transactions
from remembrancer.application.ports.archive import Archive, Part
from remembrancer.application.whose import acting_for_part
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import MalformedRecordError
from remembrancer.domain.parsed import parsed_name
from remembrancer.domain.reservation import Reservation, ReservationState
from remembrancer.domain.reservation_event import (
    LedgerEvent,
    ReservationAdmitted,
    ReservationReconciled,
    ReservationSettled,
    reservation_in,
)
from remembrancer.domain.spend_errors import NoSuchReservationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened to a reservation."""

    at: datetime
    state: ReservationState
    """What it was from then on."""
    charged_quanta: int
    detail: str
    """In words; ``""`` where the state says it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """Vectors that a query's request brought into a cache."""

    at: datetime
    surface: str
    generation: int
    vectors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationExplained:
    """A reservation from its admission on."""

    tenant: str
    owner: str
    reservation: Reservation
    """As it stands now."""
    is_overdue: bool
    """Pending although its lease has run out: the owner's next admission makes it unknown."""
    steps: tuple[Step, ...]
    day_quanta_before: int
    day_requests_before: int
    """What the UTC day had used when it was admitted, pending included."""
    ceiling_quanta: int
    ceiling_requests: int
    """In force at its admission."""
    mechanism_version: str
    configuration_digest: str
    embedding_tuple_digest: str
    pricing_digest: str
    fed: tuple[Fed, ...]
    """Caches that its vectors were prepared for; none for indexing, or where nothing came."""


class ExplainReservation:
    """Reads, and reads only; finds the events by the reservation's id, however long the log is."""

    def __init__(
        self, *, archive: Archive, log: EventLog, transactions: Transactions, clock: Clock
    ) -> None:
        self._archive = archive
        self._log = log
        self._transactions = transactions
        self._clock = clock

    def __call__(self, reservation_id: UUID, *, tenant: str, owner: str) -> ReservationExplained:
        """Explain a reservation of (tenant, owner).

        Raises:
            NoSuchReservationError: this owner's ledger never admitted it.
            InvalidInputError: a name breaks its bounds.
            RecordError: one of its events can't be read.
        """
        part = Part(
            tenant=parsed_name(tenant, field="tenant"),
            owner=parsed_name(owner, field="owner"),
            reservation_id=reservation_id,
        )
        with acting_for_part(self._transactions, part), self._transactions.snapshot():
            events = [
                self._log.event_of(one.stream_id, one.version, one.topic, one.state)
                for one in self._archive.events(part)
            ]
        facts = [one for one in events if isinstance(one, LedgerEvent)]
        steps = _steps(facts)
        reservation = reservation_in(facts, reservation_id)
        if reservation is None or not isinstance(facts[0], ReservationAdmitted):
            raise NoSuchReservationError(reservation_id)
        admitted = facts[0]
        overdue = reservation.state is ReservationState.PENDING and (
            reservation.expires_at <= self._clock.now()
        )
        return ReservationExplained(
            tenant=admitted.tenant,
            owner=admitted.owner,
            reservation=reservation,
            is_overdue=overdue,
            steps=steps,
            day_quanta_before=admitted.day_quanta_before,
            day_requests_before=admitted.day_requests_before,
            ceiling_quanta=admitted.ceiling_quanta,
            ceiling_requests=admitted.ceiling_requests,
            mechanism_version=admitted.mechanism_version,
            configuration_digest=admitted.configuration_digest,
            embedding_tuple_digest=admitted.embedding_tuple_digest,
            pricing_digest=admitted.pricing_digest,
            fed=tuple(_fed(events)),
        )


def _steps(facts: Sequence[LedgerEvent]) -> tuple[Step, ...]:
    steps: list[Step] = []
    known: Reservation | None = None
    for fact in facts:
        try:
            known = fact.reservation_after(known)
        except ValueError as error:  # A state or a reason that isn't in a list of ours.
            raise MalformedRecordError(
                stream_id=fact.originator_id,
                version=fact.originator_version,
                problem="no decision recorded this",
            ) from error
        if known is not None:
            steps.append(
                Step(
                    at=fact.timestamp,
                    state=known.state,
                    charged_quanta=known.charged_quanta,
                    detail=_detail(fact, known),
                )
            )
    return tuple(steps)


def _detail(fact: LedgerEvent, after: Reservation) -> str:
    if isinstance(fact, ReservationSettled):
        return f"usage of {counted(fact.usage_tokens, 'token')}"
    if isinstance(fact, ReservationReconciled):
        return f"by {fact.reconciled_by}, evidence {fact.evidence_digest}"
    if after.state is ReservationState.UNKNOWN:
        return str(after.unknown_reason)
    return f"lease until {after.expires_at.isoformat()}"


def _fed(events: Sequence[AggregateEvent]) -> list[Fed]:
    return [
        Fed(at=one.timestamp, surface=one.surface, generation=one.generation, vectors=one.vectors)
        for one in events
        if isinstance(one, CacheContext.QueryVectorsPrepared)
    ]
