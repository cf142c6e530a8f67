"""One fault at one port call: every port of a preparation, wrapped so that each call is counted.

A run without a fault says which calls there are; then each of them meets each fault in turn.
"Threads" run inline: a call that hangs is waited for as long as its caller waits, and may then
still come to its end, as an abandoned thread does.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

import anyio
import anyio.lowlevel
from eventsourcing.domain import AggregateEvent
from typing_extensions import override

from remembrancer.application.ports import (
    Clock,
    EventLog,
    Randomness,
    Recorded,
)
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.embedding_provider import EmbeddingProvider, ProviderFailure
from remembrancer.application.ports.guards import Guards, GuardVerdict
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.application.ports.worker import Worker
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.money import UtcDay
from remembrancer.domain.release import AdmittedConfiguration
from remembrancer.domain.reservation import Reservation
from remembrancer.domain.sensitivity import Sensitivity

_Result = TypeVar("_Result")

NEVER_HANG = {"clock.monotonic", "randomness.uuid", "provider.destination"}
"""Made in the event loop itself: nothing could interrupt a hanging one."""


class Fault(StrEnum):
    """What happens at the call."""

    STORE_ERROR = "raises StoreUnavailableError, nothing done"
    BUG = "raises RuntimeError, nothing done"
    ANSWER_LOST = "is done, then raises StoreUnavailableError"
    HANG = "hangs for ever, nothing done"
    HANG_AFTER = "is done, then hangs for ever"
    LATE = "hangs until its caller gives up, then is done at once"
    VERY_LATE = "hangs until its caller gives up, and is done after the report"
    CANCEL = "the caller is cancelled before it"
    CANCEL_AFTER = "the caller is cancelled after it"
    CANCEL_WAITING = "hangs until its caller is cancelled, then is done at once"
    CRASH = "the process is killed before it"
    CRASH_AFTER = "the process is killed after it"
    STORE_GONE = "raises StoreUnavailableError, as every call to the store from then on"
    STORE_HANGS = "hangs for ever, as every call to the store from then on"


CANCELS = {Fault.CANCEL, Fault.CANCEL_AFTER, Fault.CANCEL_WAITING}
CRASHES = {Fault.CRASH, Fault.CRASH_AFTER}
LASTING = {Fault.STORE_GONE, Fault.STORE_HANGS}
_HANGING = {
    Fault.HANG,
    Fault.HANG_AFTER,
    Fault.LATE,
    Fault.VERY_LATE,
    Fault.CANCEL_WAITING,
    Fault.STORE_HANGS,
}
_DONE_FIRST = {Fault.ANSWER_LOST, Fault.HANG_AFTER, Fault.CANCEL_AFTER, Fault.CRASH_AFTER}


class KilledError(BaseException):
    """The process is gone: nothing of it runs any more."""


class _HangError(BaseException):
    """Ends an inline call where a thread would hang; caught by the worker alone."""


@dataclass(kw_only=True)
class Plan:
    """Counts port calls, and lets a fault happen at one of them."""

    at: int | None = None
    fault: Fault | None = None
    cancel: Callable[[], object] = lambda: None
    calls: list[str] = field(default_factory=list)
    killed: bool = False
    over: bool = False
    """True once the fault has happened: what comes now meets none."""
    afterwards: Callable[[str], object] | None = None
    """Called with the name of each blocking call that was made."""
    ghosts: list[Callable[[], object]] = field(default_factory=list)
    """Calls of abandoned threads that come to their end only after the report."""

    def applies(self, number: int, fault: Fault, calls: Sequence[str]) -> bool:
        """Say whether a fault can happen at this call of a good run."""
        return not (calls[number] in NEVER_HANG and fault in _HANGING)

    def _arrived(self, name: str) -> Fault | None:
        if self.killed:
            raise KilledError
        self.calls.append(name)
        if self.over:
            lasts = self.fault in LASTING and name.startswith(("ledger.", "log."))
            return self.fault if lasts else None
        if len(self.calls) - 1 != self.at:
            return None
        self.over = True
        return self.fault

    def call(self, name: str, call: Callable[[], _Result]) -> _Result:
        """Make a blocking call."""
        result = self._call(name, call)
        if self.afterwards is not None:
            self.afterwards(name)
        return result

    def _call(self, name: str, call: Callable[[], _Result]) -> _Result:
        fault = self._arrived(name)
        if fault in CANCELS and fault not in _DONE_FIRST:
            self.cancel()
        if fault is None or fault is Fault.CANCEL:
            return call()
        if fault in _DONE_FIRST:
            result = call()
            if fault is Fault.CANCEL_AFTER:
                self.cancel()
                return result
        self._happen(fault)
        raise AssertionError

    async def acall(self, name: str, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Make an asynchronous call."""
        fault = self._arrived(name)
        if fault is Fault.CANCEL:
            self.cancel()
        if fault is None or fault is Fault.CANCEL:
            return await call()
        if fault in _DONE_FIRST:
            result = await call()
            if fault is Fault.CANCEL_AFTER:
                self.cancel()
                return result
        if fault in _HANGING:
            await self.wait_in_vain()
        self._happen(fault)
        raise AssertionError

    async def wait_in_vain(self) -> None:
        """Wait until the caller gives up, or is made to."""
        if self.fault is Fault.CANCEL_WAITING:
            self.cancel()
        await anyio.sleep_forever()

    def _happen(self, fault: Fault) -> None:
        if fault in _HANGING:
            raise _HangError
        if fault in CRASHES:
            self.killed = True
            raise KilledError
        if fault is Fault.BUG:
            raise RuntimeError("canarybird")
        raise StoreUnavailableError(store="canarybird", problem="a test says so")


class InlineWorker(Worker):
    """Runs calls in the event loop, and knows what an abandoned thread would do."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.delay_s = 0.0
        """How long each call waits for a thread."""

    @override
    async def run(self, call: Callable[[], _Result]) -> _Result:
        async def handed_over() -> _Result:
            await anyio.lowlevel.checkpoint()  # As the real one: a cancelled caller begins none.
            if self.delay_s:
                await anyio.sleep(self.delay_s)
            try:
                return call()
            except _HangError:
                await self._hang(call)
                raise AssertionError from None

        return await self._plan.acall("worker.run", handed_over)

    async def _hang(self, call: Callable[[], object]) -> None:
        try:
            await self._plan.wait_in_vain()
        except BaseException:
            if self._plan.fault in {Fault.LATE, Fault.CANCEL_WAITING}:
                _ghost(call)
            elif self._plan.fault is Fault.VERY_LATE:
                self._plan.ghosts.append(lambda: _ghost(call))
            raise


def _ghost(call: Callable[[], object]) -> None:
    # Nobody hears of what an abandoned thread returns or raises.
    try:
        call()
    except Exception:  # noqa: BLE001  # as said
        return


class FaultyAdmission(AdmissionSource):
    def __init__(self, inner: AdmissionSource, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @override
    def admitted(self) -> AdmittedConfiguration:
        return self._plan.call("admission.admitted", self._inner.admitted)


class FaultyGuards(Guards):
    def __init__(self, inner: Guards, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @property
    @override
    def rule_sets(self) -> tuple[str, ...]:
        return self._inner.rule_sets

    @property
    @override
    def digest(self) -> str:
        return self._inner.digest

    @override
    def check(self, text: str, *, declared: Sensitivity | None, destination: str) -> GuardVerdict:
        return self._plan.call(
            "guards.check",
            lambda: self._inner.check(text, declared=declared, destination=destination),
        )


class FaultyLog(EventLog):
    def __init__(self, inner: EventLog, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @override
    def append(self, events: Sequence[AggregateEvent]) -> None:
        self._plan.call("log.append", lambda: self._inner.append(events))

    @override
    def read(self, stream_id: UUID, *, after_version: int = 0) -> Iterator[AggregateEvent]:
        return iter(
            self._plan.call(
                "log.read", lambda: list(self._inner.read(stream_id, after_version=after_version))
            )
        )

    @override
    def follow(self, *, after_position: int, limit: int) -> list[Recorded]:
        return self._inner.follow(after_position=after_position, limit=limit)

    @override
    def event_of(self, stream_id: UUID, version: int, topic: str, state: bytes) -> AggregateEvent:
        return self._inner.event_of(stream_id, version, topic, state)

    @override
    def position(self) -> int:
        return self._inner.position()


class FaultyLedger(LedgerRepository):
    def __init__(self, inner: LedgerRepository, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @override
    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        def decided(held: HeldLedger) -> _Result:
            # A fault after the decision comes before its commit.
            return self._plan.call("ledger.decision", lambda: decision(held))

        return self._plan.call(
            "ledger.decide", lambda: self._inner.decide(tenant, owner, decided, about=about)
        )

    @override
    def receipt(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        return self._plan.call(
            "ledger.receipt", lambda: self._inner.receipt(tenant, owner, reservation_id)
        )

    @override
    def days(
        self, tenant: str, owner: str | None = None, *, since: UtcDay | None = None
    ) -> Sequence[SpendOfDay]:
        return self._inner.days(tenant, owner, since=since)


class FaultyProvider(EmbeddingProvider):
    def __init__(self, inner: EmbeddingProvider, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @property
    @override
    def destination(self) -> str:
        return self._plan.call("provider.destination", lambda: self._inner.destination)

    @override
    def unready(self) -> ProviderFailure | None:
        return self._plan.call("provider.unready", self._inner.unready)

    @override
    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        return await self._plan.acall(
            "provider.request", lambda: self._inner.request(texts, timeout_s=timeout_s)
        )


class FaultyClock(Clock):
    def __init__(self, inner: Clock, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @override
    def now(self) -> datetime:
        return self._plan.call("clock.now", self._inner.now)

    @override
    def monotonic(self) -> float:
        return self._plan.call("clock.monotonic", self._inner.monotonic)


class FaultyRandomness(Randomness):
    def __init__(self, inner: Randomness, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    @override
    def bytes(self, count: int) -> bytes:
        return self._inner.bytes(count)

    @override
    def uuid(self) -> UUID:
        return self._plan.call("randomness.uuid", self._inner.uuid)


@contextmanager
def faultless(plan: Plan) -> Iterator[None]:
    """Let no fault happen meanwhile: a test looks at what is there."""
    at, over, fault, killed = plan.at, plan.over, plan.fault, plan.killed
    plan.at, plan.over, plan.fault, plan.killed = None, True, None, False
    try:
        yield
    finally:
        plan.at, plan.over, plan.fault, plan.killed = at, over, fault, killed
