"""A preparation whose every part a test can see, slow down, break or switch off.

Time is virtual: the event loop's clock jumps as soon as everybody waits, so that ten seconds
take none.  Ledger, log and guards are the real ones, in memory.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import anyio
import trio.testing
from tests.application.house import a_context, a_query
from tests.application.port_faults import (
    FaultyAdmission,
    FaultyClock,
    FaultyGuards,
    FaultyLedger,
    FaultyLog,
    FaultyProvider,
    FaultyRandomness,
    InlineWorker,
    Plan,
)
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.guards import LocalGuards, ResidencyRules
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.cache_contexts import CacheContexts
from remembrancer.application.paid_request import PaidRequest
from remembrancer.application.ports import Clock, EventLog
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.embedding_provider import EmbeddingProvider
from remembrancer.application.ports.guards import Guards
from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.application.prepare_queries import PreparationReport, PrepareQueries
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.contracts.admission_examples import evidence_of
from remembrancer.contracts.clock import NOON
from remembrancer.contracts.loopback_provider import answer_for
from remembrancer.contracts.randomness import SeededRandomness
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import Gate
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.release import AdmittedConfiguration, admit
from remembrancer.domain.reservation import Reservation, ReservationState
from remembrancer.domain.reservation_event import ReservationAdmitted

_Result = TypeVar("_Result")

SECRET = bytes(range(32))
URL = "https://eu.example.com/v1/embeddings"
DIMENSIONS = 8
MODEL = "small"
ANSWER_TAKES_S = 2.3
"""Long enough for some checks while the request is out."""


RESIDENCY = ResidencyRules(region="eu", allowed=["eu.example.com"])


def guards() -> LocalGuards:
    """Return the real guards."""
    return LocalGuards(residency=RESIDENCY)


def configuration(url: str = URL, host: str = "eu.example.com", **changes: Any) -> Configuration:
    """Return a configuration with a price at which every token shows."""
    ours = guards()
    values: dict[str, Any] = {
        "provider": {"url": url, "region": "eu"},
        "embedding_tuple": {
            "provider": "example",
            "model": MODEL,
            "model_revision": "1",
            "dimensions": DIMENSIONS,
            "input_preparation": "plain@1",
        },
        "pricing": {"usd_per_million_tokens": "100", "input_overhead_tokens": 2},
        "ceilings": {"quanta_per_day": 1_000_000, "requests_per_day": 500},
        "egress": {
            "allowed_regions": ["eu"],
            "allowed_hosts": [host],
            "guard_rule_sets": list(ours.rule_sets),
            "guards_digest": ours.digest,
        },
    }
    return Configuration.parse(values | changes)


def admission_of(one: Configuration) -> AdmittedConfiguration:
    """Admit a configuration, with evidence that a test made up."""
    evidence = [evidence_of(gate, one) for gate in Gate]
    answer = admit(one, evidence, at=NOON)
    assert isinstance(answer, AdmittedConfiguration)
    return answer


class Switch(AdmissionSource):
    """An admission that can be withdrawn, or replaced."""

    def __init__(self, admitted: AdmittedConfiguration | None) -> None:
        self.now: AdmittedConfiguration | None = admitted

    @override
    def admitted(self) -> AdmittedConfiguration:
        if self.now is None:
            raise NotAdmittedError(())
        return self.now


class VirtualClock(Clock):
    """The event loop's virtual time, going on from one run to the next."""

    def __init__(self) -> None:
        self._before_s = 0.0
        self._loop = trio.testing.MockClock(autojump_threshold=0)
        self.skew = timedelta(0)
        """By how much this machine's time of day is off."""

    def next_loop(self) -> trio.testing.MockClock:
        """Return the clock of the next run."""
        self._before_s += self._loop.current_time()
        self._loop = trio.testing.MockClock(autojump_threshold=0)
        return self._loop

    def suspend(self, seconds: float) -> None:
        """Let time pass for everybody at once, as for a process that was stopped."""
        self._loop.jump(seconds)

    @override
    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.monotonic()) + self.skew

    @override
    def monotonic(self) -> float:
        return self._before_s + self._loop.current_time()


Behaviour = Callable[[Sequence[str]], Awaitable[bytes]]


class Provider(EmbeddingProvider):
    """Answers honestly after a while, and looks whether each request was reserved."""

    def __init__(self, ledger: LedgerRepository, log: EventLog) -> None:
        self._ledger = ledger
        self._log = log
        self.requests: list[tuple[str, ...]] = []
        self.timeouts_s: list[float] = []
        self.unreserved = 0
        """Requests that came without a committed, pending reservation."""
        self.cancelled = 0
        self.behaviour: Behaviour = self.honest

    @property
    @override
    def destination(self) -> str:
        return URL

    @override
    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        pending = [
            one for one in receipts(self._ledger, self._log)
            if one.state is ReservationState.PENDING
        ]  # fmt: skip
        self.unreserved += len(pending) != 1
        self.requests.append(tuple(texts))
        self.timeouts_s.append(timeout_s)
        try:
            return await self.behaviour(texts)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise

    async def honest(self, texts: Sequence[str]) -> bytes:
        """Answer after :data:`ANSWER_TAKES_S`."""
        await anyio.sleep(ANSWER_TAKES_S)
        return json.dumps(answer_for(texts, model=MODEL, dimensions=DIMENSIONS)).encode()


def receipts(ledger: LedgerRepository, log: EventLog) -> list[Reservation]:
    """Return what the ledger says of every reservation that was ever admitted."""
    found = []
    for recorded in log.follow(after_position=0, limit=1_000_000):
        if isinstance(recorded.event, ReservationAdmitted):
            one = recorded.event
            receipt = ledger.receipt(one.tenant, one.owner, one.reservation_id)
            assert receipt is not None
            found.append(receipt)
    return found


@dataclass(kw_only=True)
class Laboratory:
    """One store, and a process that prepares over it; :meth:`another_process` begins the next."""

    plan: Plan = field(default_factory=Plan)
    admitted: AdmittedConfiguration = field(default_factory=lambda: admission_of(configuration()))
    seed: int = 0
    clock: VirtualClock = field(default_factory=VirtualClock)
    store_clock: VirtualClock | None = None
    log: EventLog | None = None
    ledger: LedgerRepository | None = None
    inner_guards: Guards = field(default_factory=guards)

    def __post_init__(self) -> None:
        transactions = MemoryTransactions()
        log = self.log or RecordedEventLog(recorder=MemoryRecorder(transactions=transactions))
        self.real_log = self.log = log
        self.real_ledger = self.ledger = self.ledger or MemoryLedgerRepository(
            transactions=transactions, log=log, clock=self.store_clock or self.clock
        )
        self.switch = Switch(self.admitted)
        self.provider = Provider(self.ledger, log)
        clock = FaultyClock(self.clock, self.plan)
        admission = FaultyAdmission(self.switch, self.plan)
        self.prepared = PreparedQueries(
            clock=clock, secret=SECRET, configuration=self.admitted.configuration
        )
        self.contexts = CacheContexts(
            log=FaultyLog(log, self.plan), transactions=transactions, clock=clock
        )
        self.worker = InlineWorker(self.plan)
        self.prepare = PrepareQueries(
            admission=admission,
            contexts=self.contexts,
            prepared=self.prepared,
            guards=FaultyGuards(self.inner_guards, self.plan),
            destination=self.provider.destination,
            paid_request=PaidRequest(
                ledger=FaultyLedger(self.ledger, self.plan),
                provider=FaultyProvider(self.provider, self.plan),
                clock=clock,
                randomness=FaultyRandomness(SeededRandomness(self.seed), self.plan),
                worker=self.worker,
            ),
            clock=clock,
            worker=self.worker,
        )

    def another_process(self) -> "Laboratory":
        """Begin anew over the same store, with nothing in memory."""
        return Laboratory(
            admitted=self.admitted,
            seed=self.seed + 1,
            clock=self.clock,
            store_clock=self.store_clock,
            log=self.real_log,
            ledger=self.real_ledger,
        )

    def run(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run async work to its end, in virtual time."""
        loop = self.clock.next_loop()
        if self.store_clock is not None:
            self.store_clock.next_loop()
            self.store_clock._loop = loop

        async def main() -> _Result:
            return await work()

        return anyio.run(main, backend="trio", backend_options={"clock": loop})

    def ask(
        self, *queries: RecallQuery, context: RecallContext | None = None, **who: str
    ) -> PreparationReport:
        """Prepare queries, and wait for the report."""
        return self.run(lambda: self.prepared_by(*queries, context=context, **who))

    async def prepared_by(
        self, *queries: RecallQuery, context: RecallContext | None = None, **who: str
    ) -> PreparationReport:
        """Prepare queries."""
        return await self.prepare(
            queries or (a_query(),),
            context or a_context(),
            **{"tenant": "acme", "owner": "ana"} | who,
        )

    @property
    def reservations(self) -> list[Reservation]:
        """Every reservation that was ever admitted, as it stands."""
        return receipts(self.real_ledger, self.real_log)

    @property
    def reservation(self) -> Reservation:
        """The only one."""
        [one] = self.reservations
        return one

    @property
    def events(self) -> list[str]:
        """Names of all events, in order."""
        return [
            type(one.event).__name__
            for one in self.real_log.follow(after_position=0, limit=1_000_000)
        ]
