"""A process of its own that prepares, for tests that kill it or race it against others.

``python -m tests.application.preparing_process PATH URL REQUESTS_PER_DAY THREADS [STEP]``: wires
the parts, says ``ready``, waits for a line, prepares one question in each thread at a barrier,
and prints the reasons as JSON.  At STEP it kills itself, as abruptly as the machine could.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import anyio
from eventsourcing.domain import AggregateEvent
from tests.application.house import a_query
from tests.application.real_process import loopback_configuration, open_process
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.provider import NoSecret, OpenAICompatibleProvider
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation

_Result = TypeVar("_Result")

STEPS = (
    "before reserving",
    "reserving, before the commit",
    "after the reservation",
    "before sending",
    "in flight",
    "after the answer",
    "settling, before the commit",
    "after the settlement",
    "before the cache",
)
BARRIER_S = 30.0


def kill_me() -> NoReturn:
    """End this process here and now."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class KillingLedger(LedgerRepository):
    """Kills at a step of reserving or of settling."""

    def __init__(self, inner: LedgerRepository, step: str) -> None:
        self._inner = inner
        self._step = step
        self._decisions = 0

    @override
    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        self._decisions += 1
        before, within, after = (
            ("before reserving", "reserving, before the commit", "after the reservation"),
            ("", "settling, before the commit", "after the settlement"),
        )[self._decisions - 1]

        def decided(held: HeldLedger) -> _Result:
            result = decision(held)
            if self._step == within:
                kill_me()
            return result

        if self._step == before:
            kill_me()
        result = self._inner.decide(tenant, owner, decided, about=about)
        if self._step == after:
            kill_me()
        return result

    @override
    def receipt(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        return self._inner.receipt(tenant, owner, reservation_id)

    @override
    def days(
        self, tenant: str, owner: str | None = None, *, since: UtcDay | None = None
    ) -> Sequence[SpendOfDay]:
        return self._inner.days(tenant, owner, since=since)


class KillingProvider(OpenAICompatibleProvider):
    """Kills before sending, or when the answer is there."""

    def __init__(self, url: str, step: str) -> None:
        super().__init__(url=url, model="small", secret=NoSecret())
        self._step = step

    @override
    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        if self._step == "before sending":
            kill_me()
        body = await super().request(texts, timeout_s=timeout_s)
        if self._step == "after the answer":
            kill_me()
        return body


class KillingLog(RecordedEventLog):
    """Kills once it is on record that the vectors may enter the cache."""

    @override
    def append(self, events: Sequence[AggregateEvent]) -> None:
        super().append(events)
        if any(isinstance(one, CacheContext.QueryVectorsPrepared) for one in events):
            kill_me()


def main(path: str, url: str, requests_per_day: str, threads: str, step: str = "") -> None:
    """Prepare, once told to."""

    def altered(name: str, part: Any) -> Any:
        if step and name == "ledger":
            return KillingLedger(part, step)
        if step and name == "provider":
            return KillingProvider(url, step)
        if step == "before the cache" and name == "log":
            return KillingLog(recorder=part._recorder)
        return part

    ceilings = {"requests_per_day": int(requests_per_day), "quanta_per_day": 1_000_000}
    configuration = loopback_configuration(url, ceilings=ceilings)
    barrier = threading.Barrier(int(threads))
    with open_process(Path(path), url, configuration, altered=altered) as one:

        def prepare(number: int) -> str:
            barrier.wait(BARRIER_S)
            question = a_query(f"question {os.getpid()} {number}")
            report = anyio.run(one.prepare, [question])
            return report.outcomes[0].reason

        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        with ThreadPoolExecutor(int(threads)) as pool:
            reasons = list(pool.map(prepare, range(int(threads))))
    sys.stdout.write(json.dumps(reasons) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
