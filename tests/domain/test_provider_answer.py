import json
import time
from typing import Any

import pytest

from remembrancer.domain.provider_answer import (
    ANSWER_BYTES_MAX,
    AnswerExpected,
    AnswerFault,
    ProviderAnswer,
    UnusableAnswer,
    read_answer,
)

EXPECTED = AnswerExpected(inputs=4, dimensions=3, model="small@1", usage_tokens_max=100)


def item(index: Any, embedding: object = None) -> dict[str, Any]:
    vector = [float(index) + 1.0, 0.5, 0.25] if embedding is None else embedding
    return {"object": "embedding", "index": index, "embedding": vector}


def body(**changed: Any) -> bytes:
    answer = {
        "object": "list",
        "model": "small@1",
        "data": [item(index) for index in range(4)],
        "usage": {"prompt_tokens": 17, "total_tokens": 17},
    } | changed
    return json.dumps({key: value for key, value in answer.items() if value != "absent"}).encode()


def fault(data: bytes) -> AnswerFault:
    answer = read_answer(data, EXPECTED)
    assert isinstance(answer, UnusableAnswer)
    return answer.fault


def test_a_whole_answer_is_usable() -> None:
    answer = read_answer(body(), EXPECTED)

    assert isinstance(answer, ProviderAnswer)
    assert [vector[0] for vector in answer.vectors] == [1.0, 2.0, 3.0, 4.0]
    assert answer.usage_tokens == 17


def test_a_shuffled_answer_maps_by_index() -> None:
    answer = read_answer(body(data=[item(index) for index in (2, 0, 3, 1)]), EXPECTED)

    assert isinstance(answer, ProviderAnswer)
    assert [vector[0] for vector in answer.vectors] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([item(0), item(1), item(2)], AnswerFault.WRONG_COUNT),
        ([], AnswerFault.WRONG_COUNT),
        ([item(index) for index in range(5)], AnswerFault.WRONG_COUNT),
        ([item(index) for index in (0, 0, 1, 2)], AnswerFault.WRONG_ORDER),
        ([item(index) for index in (1, 2, 3, 4)], AnswerFault.WRONG_ORDER),
        ([item(index) for index in (-1, 0, 1, 2)], AnswerFault.WRONG_ORDER),
        ([item(index) for index in (True, 0, 2, 3)], AnswerFault.WRONG_ORDER),
        ([item(index) for index in (0.0, 1, 2, 3)], AnswerFault.WRONG_ORDER),
        ([item("0", [1, 1, 1]), item(1), item(2), item(3)], AnswerFault.WRONG_ORDER),
        ([{"embedding": [1, 1, 1]}, item(1), item(2), item(3)], AnswerFault.WRONG_ORDER),
        (None, AnswerFault.WRONG_SHAPE),
        ({"0": item(0)}, AnswerFault.WRONG_SHAPE),
        ([None, None, None, None], AnswerFault.WRONG_SHAPE),
        ([item(0, "AACAPwAAAD8AAIA+"), item(1), item(2), item(3)], AnswerFault.WRONG_SHAPE),
    ],
)
def test_a_batch_that_is_not_the_one_asked_for_is_refused_whole(
    data: object, expected: AnswerFault
) -> None:
    assert fault(body(data=data)) is expected


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([1.0, 2.0], AnswerFault.WRONG_DIMENSIONS),
        ([1.0, 2.0, 3.0, 4.0], AnswerFault.WRONG_DIMENSIONS),
        ([], AnswerFault.WRONG_DIMENSIONS),
        ([0.0, 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([0, -0.0, 0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([1e39, 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([1e-60, 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([10**400, 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([True, 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        (["1.0", 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([None, 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
        ([[1.0], 0.0, 0.0], AnswerFault.IMPOSSIBLE_VECTOR),
    ],
)
def test_an_impossible_vector_makes_all_of_it_unusable(
    vector: list[Any], expected: AnswerFault
) -> None:
    data = [item(0), item(1), item(2, vector), item(3)]

    assert fault(body(data=data)) is expected


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_what_json_does_not_know_is_not_json(number: bytes) -> None:
    assert fault(body().replace(b"0.25", number, 1)) is AnswerFault.NOT_JSON


def test_a_number_that_overflows_is_not_a_number() -> None:
    assert fault(body().replace(b"0.25", b"1e999", 1)) is AnswerFault.IMPOSSIBLE_VECTOR


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ("absent", AnswerFault.USAGE_MISSING),
        (None, AnswerFault.USAGE_MISSING),
        ({}, AnswerFault.USAGE_MISSING),
        ({"completion_tokens": 5}, AnswerFault.USAGE_MISSING),
        (17, AnswerFault.USAGE_INVALID),
        ({"total_tokens": None}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": 0}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": -5}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": True}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": "17"}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": 17.0}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": [17]}, AnswerFault.USAGE_INVALID),
        ({"prompt_tokens": 0, "total_tokens": 17}, AnswerFault.USAGE_INVALID),
        ({"prompt_tokens": 17, "total_tokens": None}, AnswerFault.USAGE_INVALID),
        ({"total_tokens": 101}, AnswerFault.USAGE_OVER_BOUND),
        ({"prompt_tokens": 101, "total_tokens": 17}, AnswerFault.USAGE_OVER_BOUND),
        ({"total_tokens": 10**30}, AnswerFault.USAGE_OVER_BOUND),
    ],
)
def test_bad_usage_is_never_free(usage: object, expected: AnswerFault) -> None:
    assert fault(body(usage=usage)) is expected


def test_usage_that_is_not_a_number_is_not_json() -> None:
    assert fault(body().replace(b"17", b"NaN", 1)) is AnswerFault.NOT_JSON


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"total_tokens": 1}, 1),
        ({"prompt_tokens": 100}, 100),
        ({"prompt_tokens": 5, "total_tokens": 9, "completion_tokens": 0}, 9),
    ],
)
def test_the_highest_stated_usage_counts(usage: dict[str, int], tokens: int) -> None:
    answer = read_answer(body(usage=usage), EXPECTED)

    assert isinstance(answer, ProviderAnswer)
    assert answer.usage_tokens == tokens


@pytest.mark.parametrize("model", ["absent", None, "small@2", "SMALL@1", ["small@1"]])
def test_another_models_answer_is_refused(model: object) -> None:
    assert fault(body(model=model)) is AnswerFault.WRONG_MODEL


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", AnswerFault.NOT_JSON),
        (b"<html>", AnswerFault.NOT_JSON),
        (b"\xff\xfe", AnswerFault.NOT_JSON),
        (b"{}{}", AnswerFault.NOT_JSON),
        (b"[" * 100_000, AnswerFault.NOT_JSON),
        (b'{"model":"small@1","model":"small@1"}', AnswerFault.NOT_JSON),
        (b"9" * 5_000, AnswerFault.NOT_JSON),
        (b"null", AnswerFault.WRONG_SHAPE),
        (b"[]", AnswerFault.WRONG_SHAPE),
        (b" " * (ANSWER_BYTES_MAX + 1), AnswerFault.TOO_LARGE),
    ],
)
def test_a_body_that_is_no_answer_is_unusable(data: bytes, expected: AnswerFault) -> None:
    assert fault(data) is expected


def test_usage_stated_twice_is_refused() -> None:
    twice = body().replace(b'"usage": {', b'"usage": {"total_tokens": 1, ', 1)

    assert fault(twice) is AnswerFault.NOT_JSON


def test_the_largest_body_is_read_in_little_time() -> None:
    numbers = b"[" + b"0," * (ANSWER_BYTES_MAX // 2 - 2) + b"0]"
    start = time.perf_counter()

    assert fault(numbers) is AnswerFault.WRONG_SHAPE

    assert time.perf_counter() - start < 5


def test_no_vector_shows_in_a_repr() -> None:
    assert "0.25" not in repr(read_answer(body(), EXPECTED))
