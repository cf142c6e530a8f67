import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from remembrancer.domain.errors import MalformedRecordError
from remembrancer.domain.ledger_snapshot import ledger_from_snapshot, ledger_snapshot
from remembrancer.domain.money import utc_day
from remembrancer.domain.reservation import (
    Ceilings,
    DayTotals,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
)
from remembrancer.domain.reservation_ledger import ReservationLedger

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
TERMS = SpendTerms(
    ceilings=Ceilings(quanta_per_day=10**12, requests_per_day=10**9),
    mechanism_version="semantic-query@1",
    configuration_digest="0" * 64,
    embedding_tuple_digest="1" * 64,
    pricing_digest="2" * 64,
)


def admit(ledger: ReservationLedger, number: int, at: datetime) -> None:
    request = ReservationRequest(
        reservation_id=UUID(int=number),
        kind=ReservationKind.QUERY,
        request_digest="a" * 64,
        charge_quanta=9,
    )
    ledger.admit(request, terms=TERMS, earlier=None, at=at)


def with_a_past(reservations: int) -> ReservationLedger:
    """Return a ledger that settled so many requests yesterday and has one pending today."""
    ledger = ReservationLedger.unused("acme", "ana")
    for number in range(1, reservations + 1):
        admit(ledger, number, AT)
        ledger.settle(UUID(int=number), charged_quanta=1, usage_tokens=1, earlier=None, at=AT)
        ledger.collect_events()
    admit(ledger, reservations + 1, AT + timedelta(days=1))
    ledger.collect_events()
    return ledger


def state_bytes(ledger: ReservationLedger) -> int:
    """Return the snapshot's size, but for what counts: the version and the ids have no bounds."""
    state = json.loads(ledger_snapshot(ledger))
    return len(json.dumps(state | {"version": 0}))


@pytest.mark.parametrize("reservations", [10, 1_000])
def test_a_snapshot_is_as_large_after_many_reservations_as_after_none(reservations: int) -> None:
    assert state_bytes(with_a_past(reservations)) == state_bytes(with_a_past(0))


@pytest.mark.slow
def test_a_snapshot_is_as_large_after_a_hundred_thousand_reservations() -> None:
    assert state_bytes(with_a_past(100_000)) == state_bytes(with_a_past(0))


def test_a_day_of_a_hundred_thousand_requests_is_two_numbers() -> None:
    day = utc_day(AT)
    busy = ReservationLedger.restored(
        "acme",
        "ana",
        version=200_000,
        last_at=AT,
        days={day: DayTotals(quanta=100_000, requests=100_000)},
        pending=(),
    )

    assert len(ledger_snapshot(busy)) < 200


def test_a_ledger_comes_back_as_it_was() -> None:
    ledger = with_a_past(3)

    read = ledger_from_snapshot(ledger_snapshot(ledger), tenant="acme", owner="ana")

    assert read == ledger
    assert read.version == ledger.version == 7


def test_a_ledger_from_a_snapshot_goes_on_like_the_other() -> None:
    ledger = with_a_past(3)
    read = ledger_from_snapshot(ledger_snapshot(ledger), tenant="acme", owner="ana")

    for one in (ledger, read):
        admit(one, 99, AT + timedelta(days=1, seconds=20))

    assert read.pending_events == ledger.pending_events
    assert read == ledger


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"format":NaN}',
        b'{"format": 1}',
    ],
)
def test_what_is_no_snapshot_is_a_typed_error(data: bytes) -> None:
    with pytest.raises(MalformedRecordError):
        ledger_from_snapshot(data, tenant="acme", owner="ana")


@pytest.mark.parametrize(
    ("field", "value"),
    [("format", 2), ("version", 0), ("version", "7"), ("last_at", "yesterday"), ("more", 1)],
)
def test_a_snapshot_of_another_format_is_a_typed_error(field: str, value: object) -> None:
    state = json.loads(ledger_snapshot(with_a_past(1))) | {field: value}
    data = json.dumps(state, sort_keys=True, separators=(",", ":")).encode()

    with pytest.raises(MalformedRecordError):
        ledger_from_snapshot(data, tenant="acme", owner="ana")


def test_another_owners_snapshot_is_a_typed_error() -> None:
    data = ledger_snapshot(with_a_past(1))

    with pytest.raises(MalformedRecordError):
        ledger_from_snapshot(data, tenant="acme-corp", owner="ana")


def test_uncommitted_events_are_not_copied() -> None:
    ledger = with_a_past(1)
    ledger.expire(at=AT + timedelta(days=2))

    with pytest.raises(ValueError, match="committed"):
        ledger_snapshot(ledger)


def test_an_unused_ledger_has_nothing_to_copy() -> None:
    with pytest.raises(ValueError, match="committed"):
        ledger_snapshot(ReservationLedger.unused("acme", "ana"))
