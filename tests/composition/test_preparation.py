"""Prepared vectors in recall, selections and packs, with a real provider on this machine."""

from pathlib import Path

import pytest
from tests.composition.remote_world import (
    WHO,
    World,
    a_context,
    a_query,
    an_entry,
    meaning,
    open_world,
)

from remembrancer.composition import Remembrancer
from remembrancer.contracts.loopback_provider import honest, redirect, status
from remembrancer.domain import RecallKind, RecallMode, Sensitivity
from remembrancer.domain.eligibility import QueryReason, QueryStatus
from remembrancer.domain.errors import InvalidInputError

CONSTRAINT = "Ship nothing after Thursday noon."
QUESTION = "When are releases frozen?"
OTHER = "The canteen opens at eight."
MEANINGS = (("Ship", "frozen"), ("canteen", "lunch"))
"""Words that the provider takes for the same thing; constraint and question share none."""


def _ready(world: World) -> Remembrancer:
    world.admit()
    memory = world.open()
    memory.remember_many([an_entry(CONSTRAINT), an_entry(OTHER)])
    return memory


@pytest.mark.parametrize("kind", [RecallKind.AUTOMATIC, RecallKind.DELIBERATE])
def test_recall_finds_a_constraint_that_shares_no_word_with_the_question(
    kind: RecallKind, tmp_path: Path
) -> None:
    with open_world(tmp_path, meaning(*MEANINGS)) as world:
        memory, query = _ready(world), a_query(QUESTION, kind=kind, limit=1)
        before = memory.recall(query, a_context())
        assert (before.mode, before.mode_reason) == (RecallMode.SPARSE, "query_not_prepared")
        assert before.entries == ()

        report = memory.prepare([query], a_context(), **WHO)

        assert [one.status for one in report.outcomes] == [QueryStatus.PREPARED]
        found = memory.recall(query, a_context())
        assert [one.text for one in found.entries] == [CONSTRAINT]
        assert found.mode in {RecallMode.HYBRID, RecallMode.DENSE}
        assert found.embedding_tuple == world.configuration.embedding_tuple


@pytest.mark.parametrize("kind", [RecallKind.AUTOMATIC, RecallKind.DELIBERATE])
def test_corrected_or_erased_evidence_is_rejected_on_a_later_recall(
    kind: RecallKind, tmp_path: Path
) -> None:
    with open_world(tmp_path, meaning(*MEANINGS)) as world:
        memory, query = _ready(world), a_query(QUESTION, kind=kind)
        twin = memory.remember(an_entry("Ship with two signatures."))
        memory.prepare([query], a_context(), **WHO)
        [first, *_] = memory.recall(query, a_context()).entries

        memory.correct(first.entry_id, text="Nothing of that holds any more.", reason="outdated")
        memory.erase(twin if twin != first.entry_id else first.entry_id, reason="asked")

        texts = [one.text for one in memory.recall(query, a_context()).entries]
        assert first.text not in texts
        assert "Ship with two signatures." not in texts


def test_selections_and_packs_use_the_prepared_vector_and_say_so(tmp_path: Path) -> None:
    with open_world(tmp_path, meaning(*MEANINGS)) as world:
        memory, query = _ready(world), a_query(QUESTION, limit=1)
        memory.prepare([query], a_context(), **WHO)

        selection = memory.select("s1", "plan", query, a_context())
        pack = memory.build_pack("s1", "plan", query, a_context(), token_budget=500)

        assert selection.mode in {RecallMode.HYBRID, RecallMode.DENSE}
        assert selection.embedding_tuple == world.configuration.embedding_tuple
        assert CONSTRAINT in pack.text


def test_a_lookup_sends_and_reserves_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        memory = _ready(world)
        sent, spent = len(world.sent), memory.spend(**WHO)

        for _ in range(20):
            memory.recall(a_query(QUESTION), a_context())

        assert len(world.sent) == sent
        assert memory.spend(**WHO) == spent


def test_four_queries_are_one_request_of_nothing_but_texts(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()
        queries = [a_query(f"question {n}", subjects=("Ana", "Bo")[: n % 3]) for n in range(4)]

        report = memory.prepare(queries, a_context(), **WHO)

        [request] = world.server.requests
        assert request.json == {
            "model": "small",
            "encoding_format": "float",
            "input": [
                '["question 0"]', '["question 1","Ana"]', '["question 2","Ana","Bo"]',
                '["question 3"]',
            ],
        }  # fmt: skip
        [day] = memory.spend(**WHO)
        assert (day.requests, day.charged_quanta) == (1, report.charged_quanta)


def test_five_queries_are_wrong_and_nothing_is_done(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()

        with pytest.raises(InvalidInputError):
            memory.prepare([a_query(QUESTION)] * 5, a_context(), **WHO)

        assert world.server.connections == 0
        assert memory.spend(**WHO) == []


def test_again_it_is_cached_and_twice_it_is_a_duplicate(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()

        first = memory.prepare([a_query("a"), a_query("a")], a_context(), **WHO)
        again = memory.prepare([a_query("a")], a_context(), **WHO)

        assert [one.reason for one in first.outcomes] == ["prepared", "duplicate"]
        assert [one.reason for one in again.outcomes] == ["cached"]
        assert again.reservation_id is None
        assert len(world.server.requests) == 1


def test_every_outcome_that_needs_no_request_sends_none(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()
        key = "AK" + "IA" + "QWERTZUIOPASDFGH"
        asked = [
            a_query("x", owner="bo"),
            a_query("x", kind=RecallKind.CORE),
            a_query(f"what opens {key}"),
            a_query("é" * 2_045 + "abcde"),
        ]

        report = memory.prepare(asked, a_context(), **WHO)

        assert [one.reason for one in report.outcomes] == [
            "other_owner", "kind", "credential", "too_long",
        ]  # fmt: skip
        assert world.server.connections == 0
        assert memory.spend(**WHO) == []


@pytest.mark.parametrize("floor", [Sensitivity.CONFIDENTIAL, Sensitivity.RESTRICTED])
def test_a_confidential_question_stays_here(floor: Sensitivity, tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()

        report = world.open().prepare(
            [a_query(QUESTION)], a_context(sensitivity_floor=floor), **WHO
        )

        assert report.outcomes[0].reason == QueryReason.CLASSIFICATION
        assert world.server.connections == 0


@pytest.mark.parametrize("code", [408, 429, 500])
def test_an_error_is_one_request_and_the_complete_charge(code: int, tmp_path: Path) -> None:
    with open_world(tmp_path, status(code)) as world:
        world.admit()
        memory = world.open()

        report = memory.prepare([a_query(QUESTION)], a_context(), **WHO)

        assert report.outcomes[0].reason == f"status_{code}"
        assert len(world.server.requests) == 1
        [day] = memory.spend(**WHO)
        assert day.unknown_quanta == day.reserved_quanta == report.charged_quanta > 0


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with (
        open_world(tmp_path / "a") as elsewhere,
        open_world(tmp_path / "b", redirect(307, f"{elsewhere.server.url}/embeddings")) as world,
    ):
        world.admit()

        report = world.open().prepare([a_query(QUESTION)], a_context(), **WHO)

        assert report.outcomes[0].status is QueryStatus.UNKNOWN
        assert report.outcomes[0].reason == "redirect"
        assert elsewhere.server.connections == 0


def test_another_process_has_its_own_vectors_and_the_same_budget(tmp_path: Path) -> None:
    with open_world(tmp_path, honest(), ceilings={"requests_per_day": 2}) as world:
        world.admit()
        one, other = world.open(), world.open()

        one.prepare([a_query("a")], a_context(), **WHO)
        other.prepare([a_query("a")], a_context(), **WHO)
        third = one.prepare([a_query("b")], a_context(), **WHO)

        assert third.outcomes[0].reason == QueryReason.OVER_REQUEST_CEILING
        assert len(world.server.requests) == 2
