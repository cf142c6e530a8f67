import json
from datetime import UTC, datetime
from typing import Any

import pytest

from remembrancer.domain.eligibility import (
    QueryOutcome,
    QueryReason,
    QueryStatus,
    canonical_query_text,
    effective_sensitivity,
    ineligibility,
    may_leave,
)
from remembrancer.domain.recall import RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

QUERY: dict[str, Any] = {
    "tenant": "acme",
    "owner": "ana",
    "principal": "ana",
    "scopes": ("project/alpha",),
    "read_ceiling": Sensitivity.RESTRICTED,
    "question": "What did we agree?",
}
HISTORICAL = {"kind": "historical", "as_of": datetime(2030, 1, 1, tzinfo=UTC)}


def query(**changed: Any) -> RecallQuery:
    return RecallQuery(**QUERY | changed)


def outcome(**changed: Any) -> QueryOutcome | None:
    return ineligibility(query(**changed), tenant="acme", owner="ana")


def question_of(canonical_bytes: int, end: str = "") -> str:
    """Return a question whose canonical text has so many bytes."""
    return "x" * (canonical_bytes - len('[""]') - len(end.encode())) + end


@pytest.mark.parametrize("kind", ["automatic", "deliberate"])
def test_ranked_recall_is_eligible(kind: str) -> None:
    assert outcome(kind=kind) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"owner": "bea"}, QueryReason.OTHER_OWNER),
        ({"tenant": "acme-corp"}, QueryReason.OTHER_OWNER),
        ({"kind": "core"}, QueryReason.KIND),
        (HISTORICAL, QueryReason.KIND),
        ({"kind": "people", "subjects": ["Ana"]}, QueryReason.KIND),
        ({"candidate_selection": "legacy"}, QueryReason.LEGACY_CANDIDATE_SELECTION),
        ({"question": ""}, QueryReason.EMPTY_QUESTION),
        ({"question": " \n\u3000"}, QueryReason.EMPTY_QUESTION),
        ({"question": "\u200b \u2060\ufeff\u202e"}, QueryReason.EMPTY_QUESTION),
        ({"question": "\x00\x1b"}, QueryReason.EMPTY_QUESTION),
        ({"question": "", "subjects": ["Ana"]}, QueryReason.EMPTY_QUESTION),
    ],
    ids=str,
)
def test_queries_of_other_sorts_are_not(change: dict[str, Any], reason: QueryReason) -> None:
    assert outcome(**change) == QueryOutcome(status=QueryStatus.INELIGIBLE, reason=reason)


def test_the_first_rule_that_says_no_decides() -> None:
    wrong: dict[str, Any] = {
        "owner": "bea",
        "kind": "core",
        "candidate_selection": "legacy",
        "question": "",
        "subjects": [f"{number:03}" * 80 for number in range(20)],
    }
    right = {"owner": "ana", "kind": "deliberate", "candidate_selection": "hybrid"}

    reasons = []
    for field in ("owner", "kind", "candidate_selection", "question", "subjects"):
        found = outcome(**wrong)
        reasons.append(found.reason if found else None)
        wrong[field] = right.get(field, "x" if field == "question" else [])

    assert reasons == [
        "other_owner",
        "kind",
        "legacy_candidate_selection",
        "empty_question",
        "too_long",
    ]


def test_canonical_text_is_the_question_then_the_subjects() -> None:
    text = canonical_query_text(query(question='Who "owns" it?\n', subjects=["Åsa", "importer"]))

    assert text == '["Who \\"owns\\" it?\\n","Åsa","importer"]'
    assert json.loads(text) == ['Who "owns" it?\n', "Åsa", "importer"]


@pytest.mark.parametrize("end", ["", "é", "漢", "🙂"])
def test_a_text_of_4096_bytes_may_go_on(end: str) -> None:
    assert outcome(question=question_of(4_096, end)) is None


@pytest.mark.parametrize("end", ["", "é", "漢", "🙂"])
def test_a_text_of_4097_bytes_is_withheld_even_where_a_character_crosses_the_bound(
    end: str,
) -> None:
    assert outcome(question=question_of(4_097, end)) == QueryOutcome(
        status=QueryStatus.WITHHELD, reason=QueryReason.TOO_LONG
    )


def test_escapes_count_as_they_would_be_sent() -> None:
    assert outcome(question="xx" + "\n" * 2_045) is None
    assert outcome(question="xxx" + "\n" * 2_045) is not None


@pytest.mark.parametrize("floor", Sensitivity)
@pytest.mark.parametrize("classified", Sensitivity)
def test_the_higher_of_floor_and_classification_decides(
    floor: Sensitivity, classified: Sensitivity
) -> None:
    effective = effective_sensitivity(floor, classified)

    assert effective.rank == max(floor.rank, classified.rank)
    assert may_leave(effective) == (effective in {Sensitivity.PUBLIC, Sensitivity.INTERNAL})


def test_without_a_classification_the_floor_stands() -> None:
    assert effective_sensitivity(Sensitivity.CONFIDENTIAL) is Sensitivity.CONFIDENTIAL


def test_only_prepared_and_cached_queries_can_be_looked_up() -> None:
    usable = {
        status for status in QueryStatus if QueryOutcome(status=status, reason="x").is_usable
    }

    assert usable == {QueryStatus.PREPARED, QueryStatus.CACHED}
