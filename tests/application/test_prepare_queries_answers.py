"""What a real provider on this machine may answer, and that bad answers are paid for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.application.house import a_context, a_query
from tests.application.loopback_process import complete, outcome, process
from tests.application.real_process import loopback_configuration, open_process

from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.loopback_provider import Behaviour, LoopbackProvider
from remembrancer.domain.reservation import UnknownReason

# -- Answers -------------------------------------------------------------------------------------


def usage(tokens: object) -> Behaviour:
    def change(answer: dict[str, Any]) -> None:
        answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}

    return server_side.honest(change=change)


def without_usage(answer: dict[str, Any]) -> None:
    del answer["usage"]


BAD_USAGE = {
    "absent": (server_side.honest(change=without_usage), "usage_missing"),
    "null": (usage(None), "usage_invalid"),
    "zero": (usage(0), "usage_invalid"),
    "negative": (usage(-5), "usage_invalid"),
    "NaN": (usage(float("nan")), "answer_not_json"),
    "a string": (usage("7"), "usage_invalid"),
    "true": (usage(True), "usage_invalid"),
    "over the bound": (usage(14), "usage_over_bound"),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_never_free(case: str, tmp_path: Path) -> None:
    """Case 4."""
    behaviour, reason = BAD_USAGE[case]
    with process(tmp_path, behaviour) as (one, server):
        assert outcome(one) == [("unknown", reason)]
        assert len(server.requests) == 1
        assert complete(one.reservation)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (server_side.status(429), "status_429"),
        (server_side.status(500), "status_500"),
        (server_side.status(408), "status_408"),
        (server_side.reset(), "connection"),
        (server_side.cut_off(), "malformed"),
    ],
    ids=["429", "500", "408", "reset", "cut off"],
)
def test_one_attempt(behaviour: Behaviour, reason: str, tmp_path: Path) -> None:
    """Case 5."""
    with process(tmp_path, behaviour) as (one, server):
        assert outcome(one) == [("unknown", reason)]
        assert len(server.requests) == server.connections == 1
        assert complete(one.reservation)
        assert one.reservation.unknown_reason is UnknownReason.PROVIDER_ERROR


@pytest.mark.parametrize("code", [302, 307])
def test_a_redirect_is_not_followed(code: int, tmp_path: Path) -> None:
    """Case 19."""
    with (
        LoopbackProvider() as elsewhere,
        process(tmp_path, server_side.redirect(code, elsewhere.url)) as (one, server),
    ):
        assert outcome(one) == [("unknown", "redirect")]
        assert len(server.requests) == 1
        assert elsewhere.connections == 0
        assert complete(one.reservation)


def reordered(*indexes: int) -> Callable[[dict[str, Any]], None]:
    def change(answer: dict[str, Any]) -> None:
        answer["data"] = [
            answer["data"][place] | {"index": index} for place, index in enumerate(indexes)
        ]

    return change


def shuffled(answer: dict[str, Any]) -> None:
    answer["data"] = [answer["data"][index] for index in (2, 0, 3, 1)]


QUESTIONS = ("one", "two", "three", "four")


def test_a_shuffled_answer_is_mapped_by_index(tmp_path: Path) -> None:
    """Case 9."""
    with process(tmp_path, server_side.honest(change=shuffled)) as (one, server):
        outcome(one, *QUESTIONS)

        for question, text in zip(QUESTIONS, server.requests[0].texts, strict=True):
            found = one.prepared.lookup(a_query(question), a_context())
            assert found is not None
            assert list(found) == pytest.approx(server_side.vector_for(text, 8))


@pytest.mark.parametrize(
    ("indexes", "reason"),
    [((0, 1, 2), "answer_wrong_count"), ((0, 0, 1, 2), "answer_wrong_order")],
    ids=["one short", "one twice"],
)
def test_a_doubtful_answer_is_refused_as_a_whole(
    indexes: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    """Case 9."""
    with process(tmp_path, server_side.honest(change=reordered(*indexes))) as (one, _):
        assert outcome(one, *QUESTIONS) == [("unknown", reason)] * 4
        assert not any(one.prepared.lookup(a_query(each), a_context()) for each in QUESTIONS)
        assert complete(one.reservation)


@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf"), 1e39, True])
def test_impossible_vectors_are_refused(number: float, tmp_path: Path) -> None:
    """Case 10."""

    def change(answer: dict[str, Any]) -> None:
        answer["data"][0]["embedding"] = [number] * 8

    with process(tmp_path, server_side.honest(change=change)) as (one, _):
        [(status, reason)] = outcome(one)

        assert status == "unknown"
        assert reason in {"answer_impossible_vector", "answer_not_json"}
        assert complete(one.reservation)


def test_another_dimension_is_refused(tmp_path: Path) -> None:
    """Case 10."""
    with process(tmp_path, server_side.honest(dimensions=7)) as (one, _):
        assert outcome(one) == [("unknown", "answer_wrong_dimensions")]


# -- Provider away -------------------------------------------------------------------------------


def test_a_provider_that_is_down_costs_the_complete_charge_and_no_exception(
    tmp_path: Path,
) -> None:
    """Case 15."""
    with LoopbackProvider() as gone:
        url = gone.url
    with open_process(tmp_path / "memory.db", url, loopback_configuration(url)) as one:
        assert outcome(one) == [("unknown", "connection")]
        assert complete(one.reservation)


def test_a_text_that_may_not_leave_reserves_nothing(tmp_path: Path) -> None:
    """Case 15: a credential, and 4,097 bytes that end inside a character."""
    key = "AK" + "IA" + "QWERTYUIOP234567"
    with process(tmp_path) as (one, server):
        found = outcome(one, f"Where is {key} used?", "x" + "é" * 2_046)

        assert found == [("withheld", "credential"), ("withheld", "too_long")]
        assert server.connections == 0
        assert one.reservations == []
