"""Time of a simulated world: one clock that everybody waits on, and what each machine shows.

Nothing here reads a real clock.  The event loop's time jumps as soon as everybody waits, in an
order that the seed decides.
"""

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import trio._core._run as trio_run
import trio.testing
from typing_extensions import override

from remembrancer.application.ports import Clock

BEGINNING = datetime(2030, 1, 1, 23, 58, tzinfo=UTC)
"""Two minutes before midnight, so that every run meets one."""


@contextmanager
def seeded_scheduler(seed: int) -> Generator[None]:
    """Let trio choose the next task by ``seed``, as Hypothesis makes it do.

    trio shuffles the tasks that can run on purpose; sorted by their age first, and shuffled with a
    seed, they come in the same order in every process.
    """
    module: Any = trio_run
    before, state = module._ALLOW_DETERMINISTIC_SCHEDULING, module._r.getstate()
    module._ALLOW_DETERMINISTIC_SCHEDULING = True
    module._r.seed(seed)
    try:
        yield
    finally:
        module._ALLOW_DETERMINISTIC_SCHEDULING = before
        module._r.setstate(state)


class Time:
    """Seconds since the world began.  Loops may run inside each other; each waits in its own."""

    def __init__(self) -> None:
        self._loops = [trio.testing.MockClock(autojump_threshold=0)]

    @property
    def loop(self) -> trio.testing.MockClock:
        """The clock for the outermost event loop."""
        return self._loops[0]

    def elapsed(self) -> float:
        """Return how long the world has existed."""
        return sum(loop.current_time() for loop in self._loops)

    def stop_all(self, seconds: float) -> None:
        """Let time pass while nobody runs: the machine was suspended."""
        self._loops[-1].jump(seconds)

    @contextmanager
    def inner_loop(self) -> Generator[trio.testing.MockClock]:
        """Give a clock for a loop that runs while the outer one stands still."""
        inner = trio.testing.MockClock(autojump_threshold=0)
        self._loops.append(inner)
        try:
            yield inner
        finally:
            self._loops.pop()
            self._loops[-1].jump(inner.current_time())


class MachineClock(Clock):
    """What one machine shows: its time of day may be off, and may be set."""

    def __init__(self, time: Time, *, booted_s: float = 0.0) -> None:
        self._time = time
        self._booted_s = booted_s
        self.off = timedelta(0)
        """By how much the time of day is wrong."""

    @override
    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self._time.elapsed()) + self.off

    @override
    def monotonic(self) -> float:
        return self._booted_s + self._time.elapsed()


class WatchedClock(Clock):
    """A clock whose readings are port calls."""

    def __init__(self, inner: Clock, watch: Callable[[], None]) -> None:
        self._inner = inner
        self._watch = watch

    @override
    def now(self) -> datetime:
        self._watch()
        return self._inner.now()

    @override
    def monotonic(self) -> float:
        self._watch()
        return self._inner.monotonic()


def chance_of(*names: object) -> random.Random:
    """Return a source of chance for a purpose: the same names, the same numbers."""
    # A string is hashed with SHA-512: the process's own hash seed has no part in it.
    return random.Random("/".join(map(str, names)))  # noqa: S311  # repeatable on purpose
