"""`gates run`: real figures from real runs, nothing that leaves, and honest failure."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.composition.remote_world import open_world, settings_for
from typing_extensions import override

from remembrancer.adapters.admission.evidence_folder import EvidenceFolder
from remembrancer.application.ports.guards import GuardVerdict
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.composition import Remembrancer, Settings
from remembrancer.composition.gate_checks import (
    CHECKS,
    campaign,
    durability,
    egress,
    identity,
    originals,
    rehearsal,
    run_checks,
    serialisation,
    settlement,
    uncertainty,
)
from remembrancer.composition.gate_checks.measured import CheckFailedError, Measured
from remembrancer.composition.gate_checks.rehearsal import Rehearsal, stand_in
from remembrancer.composition.gate_checks.template import HOW, demands_on, evidence_template
from remembrancer.composition.remote import current_configuration
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import InvalidInputError, SettingsError
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.money import Pricing
from remembrancer.domain.release import AdmittedConfiguration, Evidence, admit
from remembrancer.domain.sensitivity import Sensitivity

URL = "http://127.0.0.1:9/v1"
INSIDE = [gate for gate, terms in GATES.items() if not terms.from_outside]


def unmet(gate: Gate, measured: Measured, configuration: Configuration) -> list[str]:
    return [
        demand.figure
        for demand in GATES[gate].demands
        if not demand.is_met(measured.figures, configuration)
    ]


@pytest.fixture
def rehearsed(tmp_path: Path) -> Rehearsal:
    return Rehearsal.of(settings_for(URL, tmp_path), tmp_path)


def test_there_is_a_check_for_each_gate_that_can_be_tried_here() -> None:
    checked = [gate for gates in CHECKS.values() for gate in gates]

    assert sorted(checked) == sorted(INSIDE)
    assert set(HOW) == set(Gate) - set(INSIDE)


def test_evidence_from_outside_is_not_asked_of_what_is_refused_before_admission() -> None:
    for how in HOW.values():
        assert "before admission" in how
        assert "client of your own" in how


def test_all_of_it_opens_ten_gates_and_touches_neither_memory_nor_provider(
    tmp_path: Path,
) -> None:
    with open_world(tmp_path) as world:
        told: list[tuple[int, int]] = []

        outcomes = run_checks(
            world.settings, by="ci", progress=lambda done, total: told.append((done, total))
        )

        assert [one.gate for one in outcomes] == INSIDE
        assert [one for one in outcomes if not one.is_met] == []
        assert world.open().gates().pending == tuple(HOW)
        assert world.server.connections == 0
        assert not (tmp_path / "memory.db-gates").exists()
        assert told[-1] == (len(CHECKS), len(CHECKS))
        for document in world.evidence.found().documents:
            [(name, digest)] = document.artefact_digests.items()
            artefact = (world.evidence.folder / "artefacts" / name).read_bytes()
            assert hashlib.sha256(artefact).hexdigest() == digest
            assert json.loads(artefact)["figures"] == document.figures
            assert document.by == "ci"


# -- The rehearsal opens nothing -----------------------------------------------------------------


def test_the_rehearsal_admits_a_stand_in_and_never_the_configuration(rehearsed: Rehearsal) -> None:
    configured = current_configuration(rehearsed.settings)

    admitted = rehearsed.admission().admitted()

    assert admitted.digest != configured.digest
    assert admitted.configuration.provider.destination.host == "rehearsal.invalid"
    documents = rehearsed.admission().found().documents
    assert all(one.ran.startswith("nothing") for one in documents)
    assert not isinstance(admit(configured, documents, at=documents[0].at), AdmittedConfiguration)


def test_a_stand_in_of_a_stand_in_still_reaches_nobody(rehearsed: Rehearsal) -> None:
    again = stand_in(rehearsed.configuration)

    assert again == rehearsed.configuration


def test_rehearsals_are_wired_with_no_provider_that_could_send() -> None:
    source = Path(str(rehearsal.__file__)).read_text()

    assert "OpenAICompatibleProvider" not in source
    assert "provider_of" not in source


# -- Faults that the checks must find ------------------------------------------------------------


def test_a_guard_that_lets_everything_pass_is_found(
    rehearsed: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def willing(*_: object, **__: object) -> GuardVerdict:
        return GuardVerdict(sensitivity=Sensitivity.PUBLIC, findings=())

    monkeypatch.setattr(type(rehearsed.guards), "check", willing)

    measured = egress.check(rehearsed)[Gate.EGRESS_DENIAL]

    assert set(unmet(Gate.EGRESS_DENIAL, measured, rehearsed.configuration)) == {
        "texts_that_left",
        "destinations_reached",
    }


def test_a_price_that_rounds_down_is_found(
    rehearsed: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounded_down(self: Pricing, usage_tokens: int, _: Any) -> int:
        return max(1, int(float(self.usd_per_million_tokens) * usage_tokens * 0.999))

    monkeypatch.setattr(settlement, "SETTLEMENTS", 200)
    monkeypatch.setattr(Pricing, "settled_charge", rounded_down)

    measured = settlement.check(rehearsed)[Gate.SETTLEMENT_EXACTNESS]

    assert "charges_off" in unmet(
        Gate.SETTLEMENT_EXACTNESS, measured, rehearsed.configuration
    )  # fmt: skip


def test_a_lookup_that_forgets_a_part_of_the_key_is_found(
    rehearsed: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(self: PreparedQueries, *_: Any) -> Any:
        for cache in self._caches.values():
            for found in cache.vectors._current.vectors.values():
                return found[1]
        return None

    monkeypatch.setattr(PreparedQueries, "lookup", careless)

    measured = identity.check(rehearsed)[Gate.SCOPE_AND_CONTEXT_IDENTITY]

    assert measured.figures["hits_of_others"] > 10


def test_originals_that_are_recalled_although_corrected_are_found(
    rehearsed: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf(Remembrancer):
        @override
        def correct(self, *_: Any, **__: Any) -> int:
            return 1

    monkeypatch.setattr(originals, "Remembrancer", Deaf)

    measured = originals.check(rehearsed)[Gate.CORRECTION_AND_ERASURE]

    assert measured.figures["stale_originals_recalled"] > 0


@pytest.mark.parametrize(
    "check", [durability.check, egress.check, identity.check, originals.check,
              serialisation.check, settlement.check, uncertainty.check],
)  # fmt: skip
def test_under_a_ceiling_of_zero_no_check_proves_anything(
    check: Callable[[Rehearsal], object], tmp_path: Path
) -> None:
    settings = settings_for(URL, tmp_path, ceilings={"quanta_per_day": 0})

    with pytest.raises(CheckFailedError):
        check(Rehearsal.of(settings, tmp_path))


# -- What is written -----------------------------------------------------------------------------


def _checking(monkeypatch: pytest.MonkeyPatch, check: Callable[[Rehearsal], Any]) -> None:
    monkeypatch.setattr(campaign, "CHECKS", {check: (Gate.CACHE_BOUNDS,)})


def _cached(vectors: int) -> dict[Gate, Measured]:
    figures = {
        "inserted": 512,
        "vectors_highest": vectors,
        "age_s_highest": 299,
        "vectors_of_older_generations": 0,
    }
    return {Gate.CACHE_BOUNDS: Measured(figures=figures, raw={})}


def test_a_bad_run_is_written_and_closes_the_gate_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(URL, tmp_path)
    _checking(monkeypatch, lambda _: _cached(128))
    assert run_checks(settings, by="ci")[0].is_met

    _checking(monkeypatch, lambda _: _cached(129))
    [outcome] = run_checks(settings, by="ci")

    assert not outcome.is_met
    assert [str(one) for one in outcome.problems] == ["figure_out_of_bounds: vectors_highest"]
    assert outcome.document is not None
    assert len(EvidenceFolder(settings.admission.evidence).found().documents) == 2


@pytest.mark.parametrize("failure", [CheckFailedError("no room"), ZeroDivisionError(), OSError()])
def test_a_check_that_breaks_leaves_no_evidence_and_says_so(
    failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Rehearsal) -> Any:
        raise failure

    settings = settings_for(URL, tmp_path)
    _checking(monkeypatch, broken)

    [outcome] = run_checks(settings, by="ci")

    assert not outcome.is_met
    assert outcome.failure in {"no room", type(failure).__name__}
    assert outcome.document is None
    assert not settings.admission.evidence.exists()


def test_without_a_provider_there_is_nothing_to_check() -> None:
    with pytest.raises(SettingsError):
        run_checks(Settings(), by="ci")


# -- Templates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", Gate)
def test_a_template_is_no_evidence_until_it_is_filled_in(gate: Gate, tmp_path: Path) -> None:
    configuration = current_configuration(settings_for(URL, tmp_path))

    document = evidence_template(configuration, gate)

    with pytest.raises(InvalidInputError):
        Evidence.parse(document)
    filled = document | {
        "ran": "a campaign",
        "by": "mia",
        "at": "2030-01-01T00:00:00Z",
        "figures": {demand.figure: max(1, demand.least) for demand in GATES[gate].demands},
        "artefact_digests": {"raw.csv": "0" * 64},
    }
    assert Evidence.parse(filled).configuration_digest == configuration.digest
    assert len(demands_on(gate)) == len(GATES[gate].demands)
