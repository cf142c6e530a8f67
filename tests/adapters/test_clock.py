import time
from datetime import UTC, datetime, timedelta

import pytest
from typing_extensions import override

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.application.ports import Clock
from remembrancer.contracts.clock import NOON, ClockContract, FixedClock


class TestSystemClock(ClockContract):
    @override
    def clock(self) -> Clock:
        return SystemClock()

    def test_shows_the_time_of_day(self) -> None:
        before = datetime.now(UTC)

        now = SystemClock().now()

        assert before <= now <= datetime.now(UTC)

    @pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux tells them apart")
    def test_time_passes_while_the_machine_sleeps(self) -> None:
        before = time.clock_gettime(time.CLOCK_BOOTTIME)

        since_boot = SystemClock().monotonic()

        assert before <= since_boot <= time.clock_gettime(time.CLOCK_BOOTTIME)


class TestFixedClock(ClockContract):
    @override
    def clock(self) -> Clock:
        return FixedClock()

    def test_advances_both_clocks(self) -> None:
        clock = FixedClock()
        before = clock.monotonic()

        clock.advance(timedelta(seconds=90))

        assert clock.now() == NOON + timedelta(seconds=90)
        assert clock.monotonic() - before == 90

    def test_may_be_set_back_while_no_time_passes(self) -> None:
        clock = FixedClock()
        before = clock.monotonic()

        clock.set(NOON - timedelta(days=1))

        assert clock.now() == NOON - timedelta(days=1)
        assert clock.monotonic() == before

    def test_time_does_not_pass_backwards(self) -> None:
        with pytest.raises(ValueError, match="backwards"):
            FixedClock().advance(timedelta(seconds=-1))
