"""Gate ``uncertain_responses``: doubtful answers, failing stores, cancellation, withdrawal."""

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import anyio
from typing_extensions import override

from remembrancer.application.blocking import run_blocking
from remembrancer.application.ports.embedding_provider import ProviderError, ProviderFailure
from remembrancer.application.ports.ledger_repository import HeldLedger, LedgerRepository
from remembrancer.composition.gate_checks.counting_provider import (
    CountingProvider,
    answer,
    usage_bound,
)
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.rehearsal import TENANT, Rehearsal, context, query
from remembrancer.composition.preparation import Preparation
from remembrancer.composition.store import Store
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.gate import Gate
from remembrancer.domain.recall import RecallQuery
from remembrancer.domain.reservation import ReservationState

CANCELLATIONS = 10
WITHDRAWALS = 10
OUT_WITHIN_S = 5.0
"""A request that isn't out by then was not admitted."""
_QUESTION = "Which rule binds this release?"
_Result = TypeVar("_Result")


@dataclass(slots=True)
class Tally:
    """What went wrong, over all attempts."""

    charges_lowered: int = 0
    vectors_cached: int = 0
    attempts: list[dict[str, Any]] = field(default_factory=list)

    def take(self, store: Store, preparation: Preparation, owner: str, what: str) -> None:
        """Look at what an attempt left in ledger and cache."""
        [day] = store.ledger.days(TENANT, owner)
        lowered = day.charged_quanta < day.reserved_quanta
        cached = preparation.lookup.lookup(_query(owner), context()) is not None
        self.charges_lowered += lowered
        self.vectors_cached += cached
        self.attempts.append(
            {"what": what, "lowered": lowered, "cached": cached, "unknown": day.unknown}
        )


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Let everything go wrong between sending and settling; nothing may be gained by it."""
    tally = Tally()
    with rehearsal.store("uncertainty") as store:
        faults = _faulty_answers(rehearsal, store, tally)
        faults += _failing_ledger(rehearsal, store, tally)
        run_blocking(lambda: _cancelled(rehearsal, store, tally))
        withdrawal_s = run_blocking(lambda: _withdrawn(rehearsal, store, tally))
    return {
        Gate.UNCERTAIN_RESPONSES: Measured(
            figures={
                "faults": faults,
                "cancellations": CANCELLATIONS,
                "withdrawals": len(withdrawal_s),
                "charges_lowered": tally.charges_lowered,
                "vectors_cached": tally.vectors_cached,
                "withdrawal_ms_highest": round(1_000 * max(withdrawal_s)),
            },
            raw={"attempts": tally.attempts, "withdrawal_s": withdrawal_s},
        )
    }


# -- Answers and stores --------------------------------------------------------------------------


def _faulty_answers(rehearsal: Rehearsal, store: Store, tally: Tally) -> int:
    provider = CountingProvider(rehearsal.configuration)
    preparation = rehearsal.preparation(store, provider)
    faults = _faults(rehearsal.configuration)
    for number, (what, behaviour) in enumerate(faults.items()):
        provider.behaviour = behaviour
        owner = f"fault-{number}"
        run_blocking(partial(_ask, preparation, owner))
        require(
            provider.requests == number + 1, "a request was not admitted: see ceilings and guards"
        )
        tally.take(store, preparation, owner, what)
    return len(faults)


def _faults(
    configuration: Configuration,
) -> dict[str, Callable[[Sequence[str]], Awaitable[bytes]]]:
    def failing(failure: ProviderFailure) -> Callable[[Sequence[str]], Awaitable[bytes]]:
        async def behave(_: Sequence[str]) -> bytes:
            raise ProviderError(failure, status=500)

        return behave

    async def bug(_: Sequence[str]) -> bytes:
        raise ZeroDivisionError

    faults = {failure.value: failing(failure) for failure in ProviderFailure}
    lies = {what: _lying(configuration, change) for what, change in _lies(configuration).items()}
    return {**faults, **lies, "a bug": bug}


def _lying(
    configuration: Configuration, change: Callable[[dict[str, Any]], object]
) -> Callable[[Sequence[str]], Awaitable[bytes]]:
    async def behave(texts: Sequence[str]) -> bytes:
        said = json.loads(answer(configuration, texts, 1))
        said["bound"] = usage_bound(configuration.pricing, texts)
        change(said)
        return json.dumps(said).encode()

    return behave


def _lies(configuration: Configuration) -> dict[str, Callable[[dict[str, Any]], object]]:
    width = configuration.embedding_tuple.dimensions

    def used(value: object) -> Callable[[dict[str, Any]], object]:
        return lambda said: said.update(usage={"prompt_tokens": value, "total_tokens": value})

    def vector(values: list[Any]) -> Callable[[dict[str, Any]], object]:
        return lambda said: said["data"][0].update(embedding=values)

    return {
        "no usage": lambda said: said.pop("usage"),
        "usage null": used(None),
        "usage 0": used(0),
        "usage negative": used(-5),
        "usage a text": used("7"),
        "usage true": used(True),
        "usage not a number": used(float("nan")),
        "usage a fraction": used(1.5),
        "usage over the bound": lambda said: used(said["bound"] + 1)(said),
        "another model": lambda said: said.update(model="another"),
        "no data": lambda said: said.update(data=[]),
        "a vector too many": lambda said: said["data"].append(said["data"][0]),
        "another index": lambda said: said["data"][0].update(index=1),
        "zero vector": vector([0.0] * width),
        "not a number": vector([float("nan")] * width),
        "infinite": vector([float("inf")] * width),
        "too many for float32": vector([1e39] * width),
        "another dimension": vector([1.0] * (width + 1)),
        "texts for numbers": vector(["1"] * width),
    }


class _FailingLedger(LedgerRepository):
    """Commits reservations and nothing else, as a store that goes away in between."""

    def __init__(self, ledger: LedgerRepository) -> None:
        self._ledger = ledger
        self._decided = 0

    @override
    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        self._decided += 1
        if self._decided > 1:
            raise StoreUnavailableError(store="rehearsal", problem="gone")
        return self._ledger.decide(tenant, owner, decision, about=about)

    @override
    def receipt(self, tenant: str, owner: str, reservation_id: Any) -> Any:
        return self._ledger.receipt(tenant, owner, reservation_id)

    @override
    def days(self, tenant: str, owner: Any = None, *, since: Any = None) -> Any:
        return self._ledger.days(tenant, owner, since=since)


def _failing_ledger(rehearsal: Rehearsal, store: Store, tally: Tally) -> int:
    """Answer well, and have no store to settle in: the reservation stays at its charge."""
    failing = replace(store, ledger=_FailingLedger(store.ledger))
    preparation = rehearsal.preparation(failing, CountingProvider(rehearsal.configuration))
    run_blocking(lambda: _ask(preparation, "no-store"))
    tally.take(store, preparation, "no-store", "store gone")
    return 1


# -- Ended from outside --------------------------------------------------------------------------


async def _cancelled(rehearsal: Rehearsal, store: Store, tally: Tally) -> None:
    for number in range(CANCELLATIONS):
        owner = f"cancelled-{number}"
        provider = CountingProvider(rehearsal.configuration, _for_ever)
        preparation = rehearsal.preparation(store, provider)
        async with anyio.create_task_group() as group:
            group.start_soon(_ask, preparation, owner)
            await _out(provider)
            group.cancel_scope.cancel()
        tally.take(store, preparation, owner, "cancelled")
        [day] = store.ledger.days(TENANT, owner)
        require(day.unknown == 1, f"a cancelled request is not {ReservationState.UNKNOWN}")


async def _withdrawn(rehearsal: Rehearsal, store: Store, tally: Tally) -> list[float]:
    """Return how long each request stayed out after its admission had been withdrawn."""
    took_s: list[float] = []

    async def one(number: int) -> None:
        owner = f"withdrawn-{number}"
        withdrawn_at = ended_at = 0.0

        async def hang(_: Sequence[str]) -> bytes:
            nonlocal ended_at
            try:
                return await _for_ever(_)
            finally:
                ended_at = time.monotonic()

        provider = CountingProvider(rehearsal.configuration, hang)
        preparation = rehearsal.preparation(store, provider)
        async with anyio.create_task_group() as group:
            group.start_soon(_ask, preparation, owner)
            await _out(provider)
            # At another moment between two checks each time.
            await anyio.sleep(number / WITHDRAWALS)
            withdrawn_at = time.monotonic()
            preparation.withdraw()
        took_s.append(max(0.0, ended_at - withdrawn_at))
        tally.take(store, preparation, owner, "withdrawn")

    async with anyio.create_task_group() as group:
        for number in range(WITHDRAWALS):
            group.start_soon(one, number)
    return took_s


async def _out(provider: CountingProvider) -> None:
    """Wait until a request is out."""
    out = anyio.Event()
    provider.arrived = lambda _: out.set()
    with anyio.move_on_after(OUT_WITHIN_S):
        await out.wait()
    require(provider.requests, "a request was not admitted: see ceilings and guards")


async def _for_ever(_: Sequence[str]) -> bytes:
    await anyio.sleep_forever()
    raise AssertionError


def _query(owner: str) -> RecallQuery:
    return query(owner, _QUESTION)


async def _ask(preparation: Preparation, owner: str) -> object:
    return await preparation.preparer([_query(owner)], context(), tenant=TENANT, owner=owner)
