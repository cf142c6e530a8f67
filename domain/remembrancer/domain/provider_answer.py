"""What a provider answered: validated as a whole, or unusable as a whole (design 6, step 6).

Usage that is used to lower a charge must be attributable and provable, so anything odd in an
answer makes all of it unusable: the reservation becomes unknown and nothing is cached.  The body
comes from outside and is trusted in nothing, its size included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from remembrancer.domain.errors import ImpossibleVectorError
from remembrancer.domain.strict_json import parse_strict_json
from remembrancer.domain.vector import checked_vector

if TYPE_CHECKING:
    from array import array

ANSWER_BYTES_MAX = 4_194_304
_USAGE_FIELDS = ("prompt_tokens", "total_tokens")


class AnswerFault(StrEnum):
    """Why an answer is unusable."""

    TOO_LARGE = "answer_too_large"
    NOT_JSON = "answer_not_json"
    """Not UTF-8, not JSON, NaN or Infinity, a key twice, or nested without end."""
    WRONG_SHAPE = "answer_wrong_shape"
    """JSON, but not a list of embeddings with model and usage."""
    WRONG_MODEL = "answer_wrong_model"
    WRONG_COUNT = "answer_wrong_count"
    WRONG_ORDER = "answer_wrong_order"
    """The indexes aren't each of 0 to n-1 once."""
    WRONG_DIMENSIONS = "answer_wrong_dimensions"
    IMPOSSIBLE_VECTOR = "answer_impossible_vector"
    """Zero, NaN, infinite, more than float32 holds, or not numbers."""
    USAGE_MISSING = "usage_missing"
    USAGE_INVALID = "usage_invalid"
    """Not a whole number from 1 on."""
    USAGE_OVER_BOUND = "usage_over_bound"
    """More than the texts can have been: not this request's, or not counted as agreed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerExpected:
    """What was asked for."""

    inputs: int
    dimensions: int
    model: str
    usage_tokens_max: int
    """:meth:`Pricing.tokens_bound` of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """A validated answer."""

    vectors: "tuple[array[float], ...]" = field(repr=False)
    """Float32, in the order of the inputs."""
    usage_tokens: int


@dataclass(frozen=True, slots=True)
class UnusableAnswer:
    """An answer that proves nothing; holds nothing of it."""

    fault: AnswerFault


def read_answer(body: bytes, expected: AnswerExpected) -> ProviderAnswer | UnusableAnswer:
    """Read the body of an OpenAI-compatible embeddings answer.  Never raises for what it holds."""
    try:
        answer = _parsed(body, expected.model)
        vectors = _vectors(answer.get("data"), expected)
        usage_tokens = _usage_tokens(answer.get("usage"), expected.usage_tokens_max)
    except _FaultError as unusable:
        return UnusableAnswer(unusable.fault)
    return ProviderAnswer(vectors=vectors, usage_tokens=usage_tokens)


class _FaultError(Exception):
    """Ends the reading; never leaves this module."""

    def __init__(self, fault: AnswerFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


def _parsed(body: bytes, model: str) -> Mapping[str, Any]:
    if len(body) > ANSWER_BYTES_MAX:
        raise _FaultError(AnswerFault.TOO_LARGE)
    try:
        answer = parse_strict_json(body)
    except ValueError:
        raise _FaultError(AnswerFault.NOT_JSON) from None
    if not isinstance(answer, dict):
        raise _FaultError(AnswerFault.WRONG_SHAPE)
    if answer.get("model") != model:
        raise _FaultError(AnswerFault.WRONG_MODEL)
    return answer


def _vectors(data: object, expected: AnswerExpected) -> "tuple[array[float], ...]":
    if not isinstance(data, list):
        raise _FaultError(AnswerFault.WRONG_SHAPE)
    if len(data) != expected.inputs:
        raise _FaultError(AnswerFault.WRONG_COUNT)
    by_index: dict[int, array[float]] = {}
    for item in data:
        if not isinstance(item, dict) or not isinstance(item.get("embedding"), list):
            raise _FaultError(AnswerFault.WRONG_SHAPE)
        index = item.get("index")
        if type(index) is not int or not 0 <= index < expected.inputs or index in by_index:
            raise _FaultError(AnswerFault.WRONG_ORDER)
        by_index[index] = _vector(item["embedding"], expected.dimensions)
    return tuple(by_index[index] for index in range(expected.inputs))


def _vector(numbers: list[Any], dimensions: int) -> "array[float]":
    if len(numbers) != dimensions:
        raise _FaultError(AnswerFault.WRONG_DIMENSIONS)
    # ``true`` would pass as 1.0.
    if any(type(number) is not float and type(number) is not int for number in numbers):
        raise _FaultError(AnswerFault.IMPOSSIBLE_VECTOR)
    try:
        return checked_vector(numbers, dimensions)
    except ImpossibleVectorError:
        raise _FaultError(AnswerFault.IMPOSSIBLE_VECTOR) from None


def _usage_tokens(usage: object, most: int) -> int:
    """Return the higher of what is stated; every stated number must be possible."""
    if usage is None:
        raise _FaultError(AnswerFault.USAGE_MISSING)
    if not isinstance(usage, dict):
        raise _FaultError(AnswerFault.USAGE_INVALID)
    stated: list[Any] = [usage[name] for name in _USAGE_FIELDS if name in usage]
    if not stated:
        raise _FaultError(AnswerFault.USAGE_MISSING)
    if any(type(tokens) is not int or tokens < 1 for tokens in stated):
        raise _FaultError(AnswerFault.USAGE_INVALID)
    highest: int = max(stated)
    if highest > most:
        raise _FaultError(AnswerFault.USAGE_OVER_BOUND)
    return highest
