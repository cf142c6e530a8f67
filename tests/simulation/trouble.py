"""What can go wrong at a port call, and how it is made to.

Every call that a host makes to a port passes :meth:`Undertaking.call` (or its async twin), in one
thread, in an order that the seed decides.  "Threads" run inline: a call that hangs is waited for
as long as its caller waits, and may come to its end later, as an abandoned thread does.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
from typing_extensions import override

from remembrancer.application.ports.worker import Worker
from remembrancer.domain.errors import (
    OutcomeUnknownError,
    StoreFullError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from uuid import UUID

    from tests.simulation.host import Host

    from remembrancer.application.prepare_queries import PreparationReport
    from remembrancer.domain.recall import RecallContext, RecallQuery

_Result = TypeVar("_Result")


class Fault(StrEnum):
    """What happens at the call."""

    LOCKED = "the store stays locked: nothing is done"
    FULL = "the disk is full: nothing is done"
    LOST = "it is done, and the connection is lost before the answer"
    BUG = "an unexpected error, nothing done"
    HANG = "hangs for ever, nothing done"
    HANG_AFTER = "is done, then hangs for ever"
    LATE = "hangs until its caller gives up, then is done at once"
    VERY_LATE = "hangs until its caller gives up, and is done long after"
    SLOW = "takes some seconds"
    CANCEL = "the caller is cancelled before it"
    CANCEL_AFTER = "the caller is cancelled after it"
    CRASH = "the process is killed before it"
    CRASH_AFTER = "the process is killed after it"
    SUSPEND = "the machine is suspended before it"
    SUSPEND_AFTER = "the machine is suspended after it"
    FREEZE = "this process alone is stopped for a while"
    CLOCK = "the store's time of day is set, before it"
    MEANWHILE = "another process does something, before it"


HANGING = {Fault.HANG, Fault.HANG_AFTER, Fault.LATE, Fault.VERY_LATE}
_ASYNC_ONLY = {*HANGING, Fault.SLOW, Fault.CANCEL, Fault.CANCEL_AFTER, Fault.FREEZE}
_DONE_FIRST = {
    Fault.LOST,
    Fault.HANG_AFTER,
    Fault.CANCEL_AFTER,
    Fault.CRASH_AFTER,
    Fault.SUSPEND_AFTER,
}
_INSTEAD = {
    Fault.HANG: Fault.LOCKED,
    Fault.HANG_AFTER: Fault.LOST,
    Fault.LATE: Fault.SUSPEND,
    Fault.VERY_LATE: Fault.CRASH,
    Fault.SLOW: Fault.SUSPEND,
    Fault.CANCEL: Fault.BUG,
    Fault.CANCEL_AFTER: Fault.SUSPEND_AFTER,
    Fault.FREEZE: Fault.SUSPEND,
}
"""For calls that nobody waits for beside an event loop."""
CALLS_MAX = 40
"""Faults come at one of the first so many calls of an undertaking."""
AIMED = 0.4
"""The part of the faults that come at a decisive call."""
DECISIVE = (
    "ledger.decide",
    "ledger.decide",
    "ledger.decision",
    "log.append",
    "provider.request",
    "transactions.begin",
    "transactions.before_commit",
    "transactions.committed",
)
AIMED_FAULTS = (*Fault, *[Fault.VERY_LATE] * 6)
"""What an abandoned thread does after its time is told best where it decides."""

CURRENT: ContextVar["Undertaking | None"] = ContextVar("undertaking", default=None)


class KilledError(BaseException):
    """The process is gone: nothing of it runs any more."""


class _HangError(BaseException):
    """Ends an inline call where a thread would hang; caught by the worker alone."""


@dataclass(kw_only=True, eq=False)
class Undertaking:
    """One call of a host's to the library, what goes wrong in it, and what came of it."""

    name: str
    host: "Host"
    chance: random.Random
    faults: dict[int, Fault] = field(default_factory=dict)
    """By the number of the call."""
    aimed: dict[tuple[str, int], Fault] = field(default_factory=dict)
    """By the call's name, and how often it came."""
    calls: int = 0
    by_name: Counter[str] = field(default_factory=Counter)
    suffered: Counter[Fault] = field(default_factory=Counter)
    touched: bool = False
    """Whether anything but its own faults may have disturbed it."""
    reservations: "list[UUID]" = field(default_factory=list)
    queries: "tuple[RecallQuery, ...]" = ()
    context: "RecallContext | None" = None
    report: "PreparationReport | None" = None
    began_s: float = 0.0
    withdrawals: int = 0
    """How many admissions had ended when it began."""
    cancel: Callable[[], object] | None = None
    meanwhile: Callable[[], object] | None = None
    in_worker: int = 0
    in_transaction: int = 0

    @property
    def undisturbed(self) -> bool:
        """True where nothing went wrong, so that nothing may have failed."""
        return not self.suffered and not self.touched

    def draw_faults(self) -> None:
        """Choose what will go wrong, and at which calls: any, or those that decide something."""
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            if self.chance.random() < AIMED:
                fault = self.chance.choice(AIMED_FAULTS)
                self.aimed[self.chance.choice(DECISIVE), self.chance.choice((1, 2, 2, 3))] = fault
            else:
                fault = self.chance.choice(list(Fault))
                # Early calls are more often there at all.
                at = min(self.chance.randrange(CALLS_MAX), self.chance.randrange(CALLS_MAX))
                self.faults[at] = fault

    def call(self, name: str, call: Callable[[], _Result]) -> _Result:
        """Make a blocking call."""
        fault = self._arrived(name, waiting=bool(self.in_worker))
        if fault is None:
            return call()
        self._before(fault)
        if fault in _DONE_FIRST:
            result = call()
            if fault is Fault.SUSPEND_AFTER:
                self._suspend()
                return result
            if fault is Fault.CANCEL_AFTER:
                self._cancel()
                return result
        elif fault in {Fault.SUSPEND, Fault.CLOCK, Fault.MEANWHILE, Fault.CANCEL, Fault.FREEZE}:
            return call()
        self._fail(fault)
        raise AssertionError

    async def acall(self, name: str, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Make an asynchronous call."""
        await self.host.running()
        fault = self._arrived(name, waiting=True)
        if fault is None:
            return await call()
        self._before(fault)
        await self.host.running()
        if fault is Fault.SLOW:
            await anyio.sleep(self.chance.choice((0.3, 0.9, 1.4, 4.0, 9.5)))
        if fault in _DONE_FIRST:
            result = await call()
            if fault is Fault.SUSPEND_AFTER:
                self._suspend()
                return result
            if fault is Fault.CANCEL_AFTER:
                self._cancel()
                return result
        elif fault not in {*HANGING, *_FAILING}:
            return await call()
        if fault in HANGING:
            await anyio.sleep_forever()
        self._fail(fault)
        raise AssertionError

    def _arrived(self, name: str, *, waiting: bool) -> Fault | None:
        if self.host.dead:
            raise KilledError
        number, self.calls = self.calls, self.calls + 1
        self.by_name[name] += 1
        fault = self.faults.pop(number, None) or self.aimed.pop((name, self.by_name[name]), None)
        if fault is None:
            return None
        if fault in _ASYNC_ONLY and not waiting:
            fault = _INSTEAD[fault]
        if fault in {Fault.SLOW, Fault.FREEZE} and self.in_worker:
            fault = Fault.SUSPEND  # Inside a thread: all that can be told from outside.
        if fault is Fault.MEANWHILE and (self.in_transaction or self.meanwhile is None):
            fault = Fault.CLOCK
        self.suffered[fault] += 1
        self.host.world.note(f"    {self.name}: {fault.name} at {name}")
        return fault

    def _before(self, fault: Fault) -> None:
        if fault is Fault.SUSPEND:
            self._suspend()
        elif fault is Fault.CLOCK:
            self.host.world.set_store_clock(self.chance)
        elif fault is Fault.CANCEL:
            self._cancel()
        elif fault is Fault.FREEZE:
            self.host.freeze(self.chance.choice((0.7, 3.0, 8.0, 16.0, 40.0)))
        elif fault is Fault.MEANWHILE and self.meanwhile is not None:
            token = CURRENT.set(None)
            try:
                self.meanwhile()
            finally:
                CURRENT.reset(token)

    def _suspend(self) -> None:
        self.host.world.suspend(self.chance.choice((0.6, 2.0, 6.0, 11.0, 16.0, 45.0)))

    def _cancel(self) -> None:
        if self.cancel is not None:
            self.cancel()

    def _fail(self, fault: Fault) -> None:
        if fault in HANGING:
            raise _HangError
        if fault in {Fault.CRASH, Fault.CRASH_AFTER}:
            self.host.kill()
            raise KilledError
        if fault is Fault.BUG:
            raise RuntimeError("the simulation says so")
        if fault is Fault.FULL:
            raise StoreFullError(store="simulated")
        if fault is Fault.LOST:
            raise OutcomeUnknownError(store="simulated")
        raise StoreUnavailableError(store="simulated", problem="the simulation says so")


_FAILING = {
    Fault.LOCKED,
    Fault.FULL,
    Fault.LOST,
    Fault.BUG,
    Fault.CRASH,
    Fault.CRASH_AFTER,
}


class InlineWorker(Worker):
    """Runs calls in the event loop, and knows what an abandoned thread would do."""

    def __init__(self, host: "Host") -> None:
        self._host = host

    @override
    async def run(self, call: Callable[[], _Result]) -> _Result:
        undertaking = CURRENT.get()

        async def handed_over() -> _Result:
            await anyio.lowlevel.checkpoint()  # As the real one: a cancelled caller begins none.
            # What came meanwhile goes first; a process that is stopped begins nothing.
            await self._host.running()
            if self._host.dead:
                raise KilledError
            if undertaking is None:
                return call()
            undertaking.in_worker += 1
            try:
                return call()
            except _HangError:
                await self._hang(undertaking, call)
                raise AssertionError from None
            finally:
                undertaking.in_worker -= 1

        if undertaking is None:
            return await handed_over()
        return await undertaking.acall("worker.run", handed_over)

    async def _hang(self, undertaking: Undertaking, call: Callable[[], Any]) -> None:
        # The call was left in the middle; whatever it had done was undone, as by a rollback.
        undertaking.in_worker -= 1
        try:
            await anyio.sleep_forever()
        finally:
            undertaking.in_worker += 1
            if undertaking.suffered[Fault.LATE]:
                self.ghost(undertaking, call)
            elif undertaking.suffered[Fault.VERY_LATE]:
                at_s = self._host.world.time.elapsed() + undertaking.chance.choice((0, 1, 3, 30))
                self._host.ghosts.append((at_s, lambda: self.ghost(undertaking, call)))

    def ghost(self, undertaking: Undertaking, call: Callable[[], Any]) -> None:
        """Let an abandoned thread come to its end; nobody hears of what it returns or raises."""
        if self._host.dead:
            return
        self._host.world.note(f"    {undertaking.name}: an abandoned thread ends")
        token = CURRENT.set(undertaking)
        try:
            call()
        except (Exception, KilledError, _HangError):  # noqa: BLE001  # as said
            return
        finally:
            CURRENT.reset(token)
