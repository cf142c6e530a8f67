"""On which day a charge counts, around midnight and when the clock steps back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.domain.ledger_desk import AT, ONE, TWO, Desk, after

from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import DayTotals, ReservationKind
from remembrancer.domain.reservation_event import ReservationSettled
from remembrancer.domain.spend_errors import OverMoneyCeilingError, QueryPendingError


@pytest.mark.parametrize("hours", [9, -8, 14], ids=["Tokyo", "Los Angeles", "Kiritimati"])
def test_settled_after_midnight_it_counts_for_the_day_of_admission(desk: Desk, hours: int) -> None:
    here = timezone(timedelta(hours=hours))
    before = datetime(2030, 1, 1, 23, 59, 59, 900_000, tzinfo=UTC).astimezone(here)
    desk.admit(ONE, quanta=100, at=before)

    settled = desk.settle(ONE, quanta=7, at=before + timedelta(seconds=0.6))

    assert settled.day == "2030-01-01"
    assert isinstance(desk.stream[-1], ReservationSettled)
    assert desk.stream[-1].day == "2030-01-01"
    assert desk.ledger.totals(UtcDay("2030-01-02")) == DayTotals()


def test_the_new_day_has_its_whole_room_while_the_old_one_is_pending(desk: Desk) -> None:
    midnight = datetime(2030, 1, 2, tzinfo=UTC)
    desk.admit(
        ONE, quanta=100, kind=ReservationKind.INDEXING, at=midnight - timedelta(seconds=0.1)
    )

    desk.admit(TWO, quanta=100, at=midnight)
    desk.settle(ONE, quanta=1, at=midnight + timedelta(seconds=0.5))

    assert desk.ledger.totals(UtcDay("2030-01-02")) == DayTotals(quanta=100, requests=1)


def test_a_pending_query_of_yesterday_still_is_the_one(desk: Desk) -> None:
    midnight = datetime(2030, 1, 2, tzinfo=UTC)
    desk.admit(ONE, at=midnight - timedelta(seconds=1))

    with pytest.raises(QueryPendingError):
        desk.admit(TWO, at=midnight + timedelta(seconds=1))


def test_a_clock_set_back_brings_no_room_and_no_lease_back(desk: Desk) -> None:
    desk.admit(ONE, quanta=100, at=AT)
    desk.mark_unknown(ONE, at=after(20))

    with pytest.raises(OverMoneyCeilingError):
        desk.admit(TWO, quanta=1, at=AT - timedelta(days=1))

    assert desk.ledger.not_before(AT) == after(20)
