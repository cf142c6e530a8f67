import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.domain import AggregateEvent
from eventsourcing.persistence import (
    DatetimeAsISO,
    JSONTranscoder,
    Mapper,
    StoredEvent,
    UUIDAsHex,
)

from remembrancer.domain.reservation import (
    Ceilings,
    ReservationKind,
    ReservationRequest,
    ReservationState,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import ReservationAdmitted, reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
ONE = UUID(int=1)
TERMS = SpendTerms(
    ceilings=Ceilings(quanta_per_day=1000, requests_per_day=10),
    mechanism_version="semantic-query@1",
    configuration_digest="0" * 64,
    embedding_tuple_digest="1" * 64,
    pricing_digest="2" * 64,
)


@dataclass(frozen=True, kw_only=True)
class AdmittedBeforeQueries:
    """The event as a release from before `kind` and `deadline` read it: no other field known."""

    timestamp: datetime
    tenant: str
    owner: str
    reservation_id: UUID
    day: str
    request_digest: str
    reserved_quanta: int
    lease_s: int
    day_quanta_before: int
    day_requests_before: int
    ceiling_quanta: int
    ceiling_requests: int
    mechanism_version: str
    configuration_digest: str
    embedding_tuple_digest: str
    pricing_digest: str


def transcoder() -> JSONTranscoder:
    transcoder = JSONTranscoder()
    transcoder.register(UUIDAsHex())
    transcoder.register(DatetimeAsISO())
    return transcoder


def stored(event: AggregateEvent) -> StoredEvent:
    return Mapper[UUID](transcoder=transcoder()).to_stored_event(event)


def admitted(kind: ReservationKind) -> ReservationLedger:
    ledger = ReservationLedger.unused("acme", "ana")
    request = ReservationRequest(
        reservation_id=ONE, kind=kind, request_digest="3" * 64, charge_quanta=40
    )
    ledger.admit(request, terms=TERMS, earlier=None, at=AT)
    return ledger


def first_event(kind: ReservationKind) -> ReservationAdmitted:
    [event] = admitted(kind).pending_events
    assert isinstance(event, ReservationAdmitted)
    return event


def test_an_indexing_event_has_neither_kind_nor_deadline() -> None:
    state = json.loads(stored(first_event(ReservationKind.INDEXING)).state)

    assert state.keys() == AdmittedBeforeQueries.__dataclass_fields__.keys()


def test_an_older_release_reads_an_indexing_event() -> None:
    state: dict[str, Any] = transcoder().decode(
        stored(first_event(ReservationKind.INDEXING)).state
    )

    event = AdmittedBeforeQueries(**state)

    assert (event.reserved_quanta, event.day, event.lease_s) == (40, "2030-01-01", 15)


def test_a_query_event_says_so_and_when_its_lease_ends() -> None:
    state = transcoder().decode(stored(first_event(ReservationKind.QUERY)).state)

    assert (state["kind"], state["deadline"]) == ("query", AT + timedelta(seconds=15))


@pytest.mark.parametrize("kind", ReservationKind)
def test_an_event_reads_back_as_it_was(kind: ReservationKind) -> None:
    event = first_event(kind)

    read = Mapper[UUID](transcoder=transcoder()).to_domain_event(stored(event))

    assert read == event
    assert isinstance(read, ReservationAdmitted)
    assert read.kind == kind
    assert vars(read) == vars(event)


@pytest.mark.parametrize("kind", ReservationKind)
def test_an_event_states_all_that_its_decision_was_made_by(kind: ReservationKind) -> None:
    event = first_event(kind)

    assert event.day_quanta_before + event.reserved_quanta <= event.ceiling_quanta
    assert event.day_requests_before + 1 <= event.ceiling_requests
    assert (
        event.mechanism_version,
        event.configuration_digest,
        event.embedding_tuple_digest,
        event.pricing_digest,
    ) == ("semantic-query@1", "0" * 64, "1" * 64, "2" * 64)


def test_the_first_event_begins_the_ledger() -> None:
    ledger = admitted(ReservationKind.QUERY)
    [event] = ledger.collect_events()

    assert event.mutate(None) == ledger


def test_a_record_is_read_from_the_events_of_its_reservation_alone() -> None:
    ledger = admitted(ReservationKind.QUERY)
    ledger.mark_unknown(ONE, reason=UnknownReason.TIMEOUT, earlier=None, at=AT)
    events = list(ledger.pending_events)

    record = reservation_in(events, ONE)

    assert record is not None
    assert (record.state, record.unknown_reason, record.charged_quanta) == (
        ReservationState.UNKNOWN,
        UnknownReason.TIMEOUT,
        40,
    )
    assert reservation_in(events, UUID(int=2)) is None
    assert reservation_in(events[1:], ONE) is None
    assert reservation_in(events[1:], ONE, earlier=reservation_in(events[:1], ONE)) == record
