"""What every clock promises, and one for tests that stands still.

Enrol an adapter by subclassing :class:`ClockContract`::

    class TestMyClock(ClockContract):
        def clock(self) -> Clock:
            return MyClock()
"""

from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta

from typing_extensions import override

from remembrancer.application.ports.clock import Clock

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class ClockContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the clock."""

    @abstractmethod
    def clock(self) -> Clock:
        """Make a clock."""

    def test_now_is_aware_utc(self) -> None:
        now = self.clock().now()

        assert now.tzinfo is UTC
        assert now.utcoffset() == timedelta(0)

    def test_monotonic_never_goes_back(self) -> None:
        clock = self.clock()

        readings = [clock.monotonic() for _ in range(1_000)]

        assert readings == sorted(readings)


class FixedClock(Clock):
    """For tests: shows what it was set to, until it is told otherwise."""

    def __init__(self, at: datetime = NOON) -> None:
        self._now = at
        self._monotonic_s = 0.0

    @override
    def now(self) -> datetime:
        return self._now

    @override
    def monotonic(self) -> float:
        return self._monotonic_s

    def set(self, at: datetime) -> None:
        """Show another time, earlier ones too, as a machine's clock may; no time passes."""
        self._now = at.astimezone(UTC)

    def advance(self, by: timedelta) -> None:
        """Let time pass on both clocks."""
        if by < timedelta(0):
            raise ValueError("time doesn't pass backwards; use set()")
        self._now += by
        self._monotonic_s += by.total_seconds()
