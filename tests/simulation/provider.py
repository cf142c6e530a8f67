"""A provider that answers honestly, slowly, in part, wrongly or never; what it truly did is kept.

It counts a token for each word, states that as usage unless it lies, and gives each text a vector
that only depends on the text.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
from tests.simulation.ports import arrive
from tests.simulation.trouble import CURRENT
from tests.simulation.vocabulary import DIMENSIONS, MODEL, URL
from typing_extensions import override

from remembrancer.application.ports.embedding_provider import (
    EmbeddingProvider,
    ProviderError,
    ProviderFailure,
)
from remembrancer.contracts.loopback_provider import answer_for, vector_for

if TYPE_CHECKING:
    import random

    from tests.simulation.host import Host

Answer = dict[str, Any]
DELAYS_S = (0.01, 0.4, 0.9, 2.3, 2.3, 5.0, 9.4, 11.5)


@dataclass(kw_only=True, eq=False)
class Request:
    """One request as it arrived, and what became of it."""

    host: "Host"
    undertaking: str
    reservation_id: UUID | None
    texts: tuple[str, ...] = field(repr=False)
    arrived_s: float
    behaviour: str = ""
    usage_tokens: int | None = None
    """What a right answer that was given says was used; None for every other."""
    ended_s: float | None = None


def honest(answer: Answer, _: "random.Random", __: int) -> Answer:
    """Change nothing."""
    return answer


def _usage(value: Callable[[int], Any]) -> Callable[[Answer, "random.Random", int], Answer]:
    def changed(answer: Answer, _: "random.Random", bound: int) -> Answer:
        answer["usage"] = value(bound)
        return answer

    return changed


def _first_vector(values: list[Any]) -> Callable[[Answer, "random.Random", int], Answer]:
    def changed(answer: Answer, _: "random.Random", __: int) -> Answer:
        answer["data"][0]["embedding"] = values
        return answer

    return changed


def _shuffled(answer: Answer, chance: "random.Random", _: int) -> Answer:
    chance.shuffle(answer["data"])
    return answer


def _partial(answer: Answer, _: "random.Random", __: int) -> Answer:
    answer["data"].pop()
    return answer


def _doubled(answer: Answer, _: "random.Random", __: int) -> Answer:
    for item in answer["data"]:
        item["index"] = len(answer["data"]) - 1 if len(answer["data"]) > 1 else 1
    return answer


def _wrong_model(answer: Answer, _: "random.Random", __: int) -> Answer:
    answer["model"] = "large"
    return answer


def _more_fields(answer: Answer, _: "random.Random", __: int) -> Answer:
    answer["id"], answer["data"][0]["note"] = "r-1", "hello"
    return answer


RIGHT: dict[str, Callable[[Answer, "random.Random", int], Answer]] = {
    "honest": honest,
    "shuffled": _shuffled,
    "more_fields": _more_fields,
    "usage_of_the_bound": _usage(lambda bound: {"prompt_tokens": bound}),
    "usage_of_one": _usage(lambda _: {"total_tokens": 1}),
    "two_usages": _usage(lambda bound: {"prompt_tokens": 1, "total_tokens": min(7, bound)}),
}
"""Answers that prove what they cost."""

WRONG: dict[str, tuple[str, Callable[[Answer, "random.Random", int], Answer]]] = {
    "partial": ("answer_wrong_count", _partial),
    "doubled": ("answer_wrong_order", _doubled),
    "wrong_model": ("answer_wrong_model", _wrong_model),
    "zero_vector": ("answer_impossible_vector", _first_vector([0.0] * DIMENSIONS)),
    "short_vector": ("answer_wrong_dimensions", _first_vector([1.0] * (DIMENSIONS - 1))),
    "true_vector": ("answer_impossible_vector", _first_vector([True] * DIMENSIONS)),
    "overflow": ("answer_impossible_vector", _first_vector([1e39] * DIMENSIONS)),
    "no_usage": ("usage_missing", _usage(lambda _: None)),
    "zero_usage": ("usage_invalid", _usage(lambda _: {"total_tokens": 0})),
    "negative_usage": ("usage_invalid", _usage(lambda _: {"total_tokens": -3})),
    "text_usage": ("usage_invalid", _usage(lambda _: {"total_tokens": "7"})),
    "true_usage": ("usage_invalid", _usage(lambda _: {"total_tokens": True})),
    "half_usage": ("usage_invalid", _usage(lambda _: {"total_tokens": 7.5})),
    "too_much_usage": ("usage_over_bound", _usage(lambda bound: {"total_tokens": bound + 1})),
    "one_usage_too_much": (
        "usage_over_bound",
        _usage(lambda bound: {"prompt_tokens": 1, "total_tokens": bound + 1}),
    ),
}
"""Answers that prove nothing, and what must be said of them."""

BODIES: dict[str, tuple[str, bytes]] = {
    "not_json": ("answer_not_json", b"<html>busy</html>"),
    "nan": ("answer_not_json", b'{"model": "small", "data": [NaN]}'),
    "twice": ("answer_not_json", b'{"model": "small", "model": "small"}'),
    "empty": ("answer_not_json", b""),
    "list": ("answer_wrong_shape", b"[]"),
}

FAILURES: dict[str, tuple[ProviderFailure, int | None]] = {
    "status_429": (ProviderFailure.STATUS, 429),
    "status_500": (ProviderFailure.STATUS, 500),
    "connection": (ProviderFailure.CONNECTION, None),
    "redirect": (ProviderFailure.REDIRECT, None),
    "too_large": (ProviderFailure.TOO_LARGE, None),
    "malformed": (ProviderFailure.MALFORMED, None),
    "timeout": (ProviderFailure.TIMEOUT, None),
}
NEVER = "never"
ALL = (*RIGHT, *WRONG, *BODIES, *FAILURES, NEVER)


def expected_reason(behaviour: str) -> str | None:
    """Return what a report must say of a request that met this; None where it was answered."""
    if behaviour in WRONG:
        return WRONG[behaviour][0]
    if behaviour in BODIES:
        return BODIES[behaviour][0]
    if behaviour in FAILURES:
        failure, status = FAILURES[behaviour]
        return ProviderError(failure, status=status).reason
    return None


class SimulatedProvider(EmbeddingProvider):
    """What one host talks to."""

    def __init__(self, host: "Host") -> None:
        self._host = host

    @property
    @override
    def destination(self) -> str:
        return URL

    @override
    def unready(self) -> ProviderFailure | None:
        world = self._host.world
        return arrive(
            self._host,
            "provider.unready",
            lambda: ProviderFailure.NO_KEY if world.key_is_gone else None,
        )

    @override
    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        world, undertaking = self._host.world, CURRENT.get()
        assert undertaking is not None
        request = Request(
            host=self._host,
            undertaking=undertaking.name,
            reservation_id=undertaking.reservations[-1] if undertaking.reservations else None,
            texts=tuple(texts),
            arrived_s=world.time.elapsed(),
        )
        # What goes wrong from here on is the network's: the product has let it go.
        world.sent(request, timeout_s)
        try:
            return await undertaking.acall(
                "provider.request", lambda: self._answered(request, undertaking.chance)
            )
        finally:
            world.ended(request, undertaking)

    async def _answered(self, request: Request, chance: "random.Random") -> bytes:
        kind = chance.random()
        if kind < 0.62:
            request.behaviour = chance.choice(list(RIGHT))
        elif kind < 0.95:
            request.behaviour = chance.choice([*WRONG, *BODIES, *FAILURES])
        else:
            request.behaviour = NEVER
        if self._host.world.calm:
            request.behaviour = "honest"
        behaviour = request.behaviour
        delay_s = 0.1 if self._host.world.calm else chance.choice(DELAYS_S)
        self._host.world.note(f"    {request.undertaking}: provider {behaviour} in {delay_s} s")
        if behaviour == NEVER:
            await anyio.sleep_forever()
        await anyio.sleep(delay_s)
        if behaviour in FAILURES:
            failure, status = FAILURES[behaviour]
            raise ProviderError(failure, status=status)
        if behaviour in BODIES:
            return BODIES[behaviour][1]
        change = RIGHT[behaviour] if behaviour in RIGHT else WRONG[behaviour][1]
        answer = answer_for(request.texts, model=MODEL, dimensions=DIMENSIONS)
        bound = self._host.world.books.tokens_bound(request)
        answer = change(answer, chance, bound)
        if behaviour in RIGHT:
            request.usage_tokens = max(answer["usage"].values())
        return json.dumps(answer).encode()


def true_vector(text: str) -> list[float]:
    """Return the vector that the provider has for a text."""
    return vector_for(text, DIMENSIONS)
