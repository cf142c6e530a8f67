import copy
import gc
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remembrancer.contracts.admission_examples import CONFIGURATION, FEWER_REQUESTS, evidence_of
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import InvalidInputError, NotAdmittedError
from remembrancer.domain.gate import GATES, Demand, Gate
from remembrancer.domain.release import (
    AdmissionRefusal,
    AdmittedConfiguration,
    Evidence,
    GateProblem,
    GateReason,
    admit,
    gate_statuses,
    require_admitted,
)

AT = datetime(2030, 1, 2, 12, tzinfo=UTC)
YESTERDAY = AT - timedelta(days=1)


def evidence(gate: Gate, /, **changed: Any) -> Evidence:
    return evidence_of(gate, **{"at": YESTERDAY, **changed})


def all_but(*gates: Gate) -> list[Evidence]:
    return [evidence(gate) for gate in Gate if gate not in gates]


def admitted() -> AdmittedConfiguration:
    answer = admit(CONFIGURATION, all_but(), at=AT)
    assert isinstance(answer, AdmittedConfiguration)
    return answer


def problems(*documents: Evidence, gate: Gate = Gate.CACHE_BOUNDS) -> tuple[GateProblem, ...]:
    [status] = [
        status for status in gate_statuses(CONFIGURATION, documents, at=AT) if status.gate is gate
    ]
    return status.problems


def test_there_are_twelve_gates_and_each_says_what_counts() -> None:
    assert len(Gate) == 12
    assert list(GATES) == list(Gate)
    assert all(terms.claim and terms.evidence and terms.demands for terms in GATES.values())


def test_two_gates_need_evidence_from_outside() -> None:
    outside = [gate for gate, terms in GATES.items() if terms.from_outside]

    assert outside == [Gate.RETRIEVAL_QUALITY, Gate.OPERATIONAL_MEASUREMENT]


def test_all_twelve_admit() -> None:
    answer = admitted()

    assert answer.configuration == CONFIGURATION
    assert answer.digest == CONFIGURATION.digest
    assert answer.admitted_at == AT
    assert [one.gate for one in answer.evidence] == list(Gate)


@pytest.mark.parametrize("gate", Gate)
def test_eleven_do_not(gate: Gate) -> None:
    answer = admit(CONFIGURATION, all_but(gate), at=AT)

    assert isinstance(answer, AdmissionRefusal)
    assert answer.pending == (gate,)
    assert answer.error().missing_gates == (gate.value,)


def test_without_evidence_all_twelve_are_pending() -> None:
    answer = admit(CONFIGURATION, [], at=AT)

    assert isinstance(answer, AdmissionRefusal)
    assert answer.pending == tuple(Gate)
    assert {problem for gate in answer.gates for problem in gate.problems} == {
        GateProblem(reason=GateReason.NO_EVIDENCE)
    }


def test_evidence_for_another_configuration_admits_nothing() -> None:
    answer = admit(FEWER_REQUESTS, all_but(), at=AT)

    assert isinstance(answer, AdmissionRefusal)
    assert answer.pending == tuple(Gate)
    assert answer.gates[0].problems == (GateProblem(reason=GateReason.OTHER_CONFIGURATION),)


def test_evidence_for_another_mechanism_version_does_not_count() -> None:
    document = evidence(Gate.CACHE_BOUNDS, mechanism_version="semantic-query@0")

    assert problems(document) == (GateProblem(reason=GateReason.OTHER_MECHANISM_VERSION),)


def test_evidence_from_the_future_does_not_count() -> None:
    document = evidence(Gate.CACHE_BOUNDS, at=AT + timedelta(microseconds=1))

    assert problems(document) == (GateProblem(reason=GateReason.IN_THE_FUTURE),)
    assert problems(evidence(Gate.CACHE_BOUNDS, at=AT)) == ()


@pytest.mark.parametrize(
    ("gate", "demand"),
    [(gate, demand) for gate, terms in GATES.items() for demand in terms.demands],
    ids=lambda part: part.figure if isinstance(part, Demand) else None,
)
def test_every_figure_is_needed(gate: Gate, demand: Demand) -> None:
    document = evidence(gate)
    figures = {name: value for name, value in document.figures.items() if name != demand.figure}

    missing = problems(evidence(gate, figures=figures), gate=gate)

    assert missing == (GateProblem(reason=GateReason.MISSING_FIGURE, figure=demand.figure),)


@pytest.mark.parametrize(
    ("gate", "demand"),
    [
        (gate, demand)
        for gate, terms in GATES.items()
        for demand in terms.demands
        if demand.least or demand.most is not None
    ],
    ids=lambda part: part.figure if isinstance(part, Demand) else None,
)
def test_every_figure_must_lie_where_it_is_demanded(gate: Gate, demand: Demand) -> None:
    figures = evidence(gate).figures
    beyond = demand.most + 1 if demand.most is not None else demand.least - 1

    found = problems(evidence(gate, figures=figures | {demand.figure: beyond}), gate=gate)

    assert GateProblem(reason=GateReason.FIGURE_OUT_OF_BOUNDS, figure=demand.figure) in found


@pytest.mark.parametrize("value", [-1, 500 + 1])
def test_measured_load_must_lie_within_the_ceilings(value: int) -> None:
    gate = Gate.OPERATIONAL_MEASUREMENT
    figures = evidence(gate).figures | {"requests_day_highest": value}

    assert problems(evidence(gate, figures=figures), gate=gate) == (
        GateProblem(reason=GateReason.FIGURE_OUT_OF_BOUNDS, figure="requests_day_highest"),
    )


@pytest.mark.parametrize(("sparse", "prepared"), [(701, 700), (0, 0)])
def test_prepared_recall_must_find_what_sparse_recall_finds(sparse: int, prepared: int) -> None:
    gate = Gate.RETRIEVAL_QUALITY
    figures = evidence(gate).figures | {
        "found_permille_sparse": sparse,
        "found_permille_prepared": prepared,
    }

    assert problems(evidence(gate, figures=figures), gate=gate) == (
        GateProblem(reason=GateReason.FIGURE_OUT_OF_BOUNDS, figure="found_permille_prepared"),
    )


def test_the_newest_document_decides() -> None:
    good = evidence(Gate.CACHE_BOUNDS)
    bad = {"figures": good.figures | {"vectors_highest": 129}}

    assert problems(good, evidence(Gate.CACHE_BOUNDS, at=AT, **bad)) != ()
    assert problems(evidence(Gate.CACHE_BOUNDS, **bad), good.model_copy(update={"at": AT})) == ()


def test_of_two_documents_of_one_time_both_must_be_good() -> None:
    good = evidence(Gate.CACHE_BOUNDS)
    bad = evidence(Gate.CACHE_BOUNDS, figures=good.figures | {"vectors_highest": 129})

    assert problems(good, bad) != ()
    assert problems(bad, good) != ()


@pytest.mark.parametrize(
    "changed",
    [
        {"artefact_digests": {}},
        {"artefact_digests": {"report.json": ""}},
        {"artefact_digests": {"report.json": "x" * 64}},
        {"figures": {"inserted": 129.0}},
        {"figures": {"inserted": True}},
        {"figures": {"inserted": "129"}},
        {"ran": " "},
        {"by": ""},
        {"gate": "thirteenth"},
        {"at": datetime(2030, 1, 1)},  # noqa: DTZ001  # the point of the case
        {"passed": True},
    ],
    ids=str,
)
def test_what_is_no_document_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        evidence(Gate.CACHE_BOUNDS, **changed)


def test_a_document_is_read_from_json() -> None:
    document = evidence(Gate.CACHE_BOUNDS)

    assert Evidence.parse(json.loads(document.model_dump_json())) == document


def test_a_document_changed_behind_its_checks_admits_nothing() -> None:
    figures = evidence(Gate.CACHE_BOUNDS).figures | {"vectors_highest": float("nan")}
    forged = evidence(Gate.CACHE_BOUNDS).model_copy(update={"figures": figures})

    with pytest.raises(InvalidInputError):
        admit(CONFIGURATION, [*all_but(Gate.CACHE_BOUNDS), forged], at=AT)


def test_a_configuration_that_states_another_digest_admits_nothing() -> None:
    class Borrowed(Configuration):
        @property
        def digest(self) -> str:
            return CONFIGURATION.digest

    answer = admit(Borrowed.parse(FEWER_REQUESTS.model_dump()), all_but(), at=AT)

    assert isinstance(answer, AdmissionRefusal)


def test_nobody_else_makes_an_admission() -> None:
    for seal in ({}, {"seal": None}, {"seal": object()}, {"seal": True}):
        with pytest.raises(TypeError):
            AdmittedConfiguration(CONFIGURATION, tuple(all_but()), AT, **seal)
    with pytest.raises(TypeError):
        type("Open", (AdmittedConfiguration,), {})
    assert not hasattr(AdmittedConfiguration, "model_construct")


def test_an_admission_is_not_pickled() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps(admitted(), protocol)


def test_a_copy_is_the_admission_itself() -> None:
    answer = admitted()

    assert copy.copy(answer) is answer
    assert copy.deepcopy(answer) is answer


def test_an_admission_is_not_changed() -> None:
    answer = admitted()

    with pytest.raises(AttributeError):
        answer.configuration = FEWER_REQUESTS
    with pytest.raises(AttributeError):
        del answer.evidence
    assert not hasattr(answer, "__dict__")


def test_only_what_was_admitted_passes() -> None:
    answer = admitted()
    empty = object.__new__(AdmittedConfiguration)

    assert require_admitted(answer) is answer
    for other in (None, True, CONFIGURATION, empty, AdmittedConfiguration):
        with pytest.raises(NotAdmittedError) as refusal:
            require_admitted(other)
        assert len(refusal.value.missing_gates) == 12


def _replaced(answer: AdmittedConfiguration) -> AdmittedConfiguration:
    object.__setattr__(answer, "configuration", FEWER_REQUESTS)
    return answer


def _changed_inside(answer: AdmittedConfiguration) -> AdmittedConfiguration:
    answer.configuration.__dict__["ceilings"] = FEWER_REQUESTS.ceilings
    return answer


def _put_together(answer: AdmittedConfiguration) -> AdmittedConfiguration:
    other = object.__new__(AdmittedConfiguration)
    for name in ("admitted_at", "evidence", "_seal"):
        object.__setattr__(other, name, getattr(answer, name))
    return _replaced(other)


def _claiming(answer: AdmittedConfiguration) -> AdmittedConfiguration:
    class Borrowed(Configuration):
        @property
        def digest(self) -> str:
            return CONFIGURATION.digest

    object.__setattr__(answer, "configuration", Borrowed.parse(FEWER_REQUESTS.model_dump()))
    return answer


def _without(answer: AdmittedConfiguration) -> AdmittedConfiguration:
    object.__delattr__(answer, "configuration")
    return answer


@pytest.mark.parametrize("forge", [_replaced, _changed_inside, _put_together, _claiming, _without])
def test_an_admission_is_of_the_configuration_it_was_made_for(
    forge: Callable[[AdmittedConfiguration], AdmittedConfiguration],
) -> None:
    forged = forge(admitted())

    with pytest.raises(NotAdmittedError):
        require_admitted(forged)


def test_a_refusal_leaves_no_admission_behind() -> None:
    gc.collect()
    before = sum(type(one) is AdmittedConfiguration for one in gc.get_objects())

    admit(CONFIGURATION, all_but(Gate.RETRIEVAL_QUALITY), at=AT)

    assert sum(type(one) is AdmittedConfiguration for one in gc.get_objects()) == before
