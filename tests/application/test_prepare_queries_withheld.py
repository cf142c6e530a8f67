"""Which queries a preparation does not send: ineligible ones, and what the guards withhold."""

from typing import NoReturn

import pytest
from tests.application.asking import INJECTION, in_context, outcomes
from tests.application.house import a_query
from tests.application.laboratory import RESIDENCY, Laboratory
from typing_extensions import override

from remembrancer.adapters.guards import LocalGuards, ResidencyRules
from remembrancer.contracts.clock import NOON
from remembrancer.domain.recall import CandidateSelection, RecallKind, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

CARD = "4111 1111 1111 1111"
INELIGIBLE = {
    "other_owner": a_query(owner="bob"),
    "kind": a_query(kind=RecallKind.CORE),
    "legacy_candidate_selection": a_query(candidate_selection=CandidateSelection.LEGACY),
    "empty_question": a_query(" \n"),
}
WITHHELD = {
    "too_long": a_query("x" * 4_093),
    "classification": a_query(f"Whose card is {CARD}?"),
    "injection": a_query(INJECTION),
}


@pytest.mark.parametrize(("reason", "query"), INELIGIBLE.items())
def test_ineligible_queries_stay(reason: str, query: RecallQuery) -> None:
    lab = Laboratory()

    assert outcomes(lab, query) == [("ineligible", reason)]
    assert lab.events == []


@pytest.mark.parametrize(
    "query",
    [
        a_query(kind=RecallKind.HISTORICAL, as_of=NOON),
        a_query(kind=RecallKind.PEOPLE, subjects=("Ana",)),
        a_query(kind=RecallKind.CORE),
    ],
    ids=lambda query: query.kind.value,
)
def test_core_historical_and_people_recall_are_not_prepared(query: RecallQuery) -> None:
    assert outcomes(Laboratory(), query) == [("ineligible", "kind")]


def test_another_tenants_query_stays() -> None:
    assert outcomes(Laboratory(), a_query(tenant="acme-corp")) == [("ineligible", "other_owner")]


@pytest.mark.parametrize(("reason", "query"), WITHHELD.items())
def test_withheld_texts_stay(reason: str, query: RecallQuery) -> None:
    lab = Laboratory()

    assert outcomes(lab, query) == [("withheld", reason)]
    assert lab.events == []


def test_a_credential_stays() -> None:
    key = "AK" + "IA" + "QWERTYUIOP234567"

    assert outcomes(Laboratory(), a_query(f"Where is {key} used?")) == [("withheld", "credential")]


@pytest.mark.parametrize("subject", [CARD, INJECTION])
def test_a_subject_is_guarded_as_the_question_is(subject: str) -> None:
    lab = Laboratory()

    [(status, _)] = outcomes(lab, a_query("Who?", subjects=("Ana", subject)))

    assert status == "withheld"
    assert lab.provider.requests == []


def test_4096_bytes_leave_and_one_more_does_not() -> None:
    lab = Laboratory()
    exact = a_query("é" * 2_046)  # And two quotes and two brackets: 4,096 bytes.
    over = a_query("é" * 2_046 + "x")

    assert outcomes(lab, exact, over) == [("prepared", "prepared"), ("withheld", "too_long")]


def test_a_destination_that_residency_does_not_name_gets_nothing() -> None:
    elsewhere = ResidencyRules(region="us", allowed=["us.example.com"])
    lab = Laboratory(inner_guards=LocalGuards(residency=elsewhere))

    assert outcomes(lab, a_query()) == [("withheld", "residency")]


def test_a_guard_that_raises_withholds() -> None:
    class Broken(LocalGuards):
        @override
        def check(self, text: str, **_: object) -> NoReturn:
            raise ValueError(text)

    lab = Laboratory(inner_guards=Broken(residency=RESIDENCY))

    assert outcomes(lab, a_query()) == [("withheld", "guard_failed")]
    assert lab.events == []


@pytest.mark.parametrize("floor", [Sensitivity.CONFIDENTIAL, Sensitivity.RESTRICTED])
@pytest.mark.parametrize("ceiling", list(Sensitivity))
def test_the_read_ceiling_does_not_lower_the_callers_floor(
    floor: Sensitivity, ceiling: Sensitivity
) -> None:
    context = in_context(sensitivity_floor=floor)

    found = outcomes(Laboratory(), a_query(read_ceiling=ceiling), context=context)

    assert found == [("withheld", "classification")]


@pytest.mark.parametrize("floor", [Sensitivity.PUBLIC, Sensitivity.INTERNAL])
def test_public_and_internal_texts_leave_whatever_may_be_read(floor: Sensitivity) -> None:
    context = in_context(sensitivity_floor=floor)

    found = outcomes(Laboratory(), a_query(read_ceiling=Sensitivity.RESTRICTED), context=context)

    assert found == [("prepared", "prepared")]
