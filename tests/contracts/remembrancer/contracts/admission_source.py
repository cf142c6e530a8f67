"""What every source of admission promises.

Enrol an adapter by subclassing and saying how its evidence comes and goes::

    class TestMyAdmission(AdmissionSourceContract):
        def desk(self) -> AdmissionDesk: ...
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from remembrancer.application.ports.admission_source import AdmissionSource, EvidenceSource
from remembrancer.contracts.admission_examples import CONFIGURATION, FEWER_REQUESTS, evidence_of
from remembrancer.contracts.clock import NOON, FixedClock
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import Evidence, require_admitted

QUICK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionDesk:
    """A source, and the hands that bring and take its evidence."""

    source: AdmissionSource
    evidence: EvidenceSource
    add: Callable[[Evidence], object]
    take_away: Callable[[Evidence], object]
    configure: Callable[[Configuration], object]
    clock: FixedClock

    def add_all(self, gates: Iterable[Gate] = Gate) -> None:
        """Bring good evidence for these gates."""
        for gate in gates:
            self.add(evidence_of(gate))


class AdmissionSourceContract(ABC):
    """Subclass, name the subclass ``Test…``, and return a desk."""

    @abstractmethod
    def desk(self) -> AdmissionDesk:
        """Return a source for :data:`CONFIGURATION` without evidence, under a fixed clock."""

    def test_without_evidence_nothing_is_admitted(self) -> None:
        with pytest.raises(NotAdmittedError) as refusal:
            self.desk().source.admitted()

        assert refusal.value.missing_gates == tuple(gate.value for gate in Gate)

    def test_all_twelve_admit(self) -> None:
        desk = self.desk()

        desk.add_all()

        admitted = require_admitted(desk.source.admitted())
        assert admitted.configuration == CONFIGURATION

    @pytest.mark.parametrize("gate", Gate)
    def test_eleven_do_not_and_the_twelfth_is_named(self, gate: Gate) -> None:
        desk = self.desk()

        desk.add_all(one for one in Gate if one is not gate)

        with pytest.raises(NotAdmittedError) as refusal:
            desk.source.admitted()
        assert refusal.value.missing_gates == (gate.value,)

    def test_evidence_taken_away_withdraws_at_once(self) -> None:
        desk = self.desk()
        desk.add_all()
        desk.source.admitted()

        desk.take_away(evidence_of(Gate.CACHE_BOUNDS))

        with pytest.raises(NotAdmittedError) as refusal:
            desk.source.admitted()
        assert refusal.value.missing_gates == (Gate.CACHE_BOUNDS.value,)

    def test_evidence_that_comes_back_admits_again(self) -> None:
        desk = self.desk()
        desk.add_all()
        desk.take_away(evidence_of(Gate.CACHE_BOUNDS))

        desk.add(evidence_of(Gate.CACHE_BOUNDS))

        assert desk.source.admitted().configuration == CONFIGURATION

    def test_another_configuration_is_not_admitted_by_this_ones_evidence(self) -> None:
        desk = self.desk()
        desk.add_all()
        desk.source.admitted()

        desk.configure(FEWER_REQUESTS)

        with pytest.raises(NotAdmittedError):
            desk.source.admitted()

    def test_configured_back_it_is_admitted_again(self) -> None:
        desk = self.desk()
        desk.add_all()
        desk.configure(FEWER_REQUESTS)

        desk.configure(CONFIGURATION)

        assert desk.source.admitted().configuration == CONFIGURATION

    def test_a_later_bad_run_withdraws(self) -> None:
        desk = self.desk()
        desk.add_all()
        desk.source.admitted()

        desk.add(evidence_of(Gate.SHARED_BUDGET, at=NOON, figures={}))

        with pytest.raises(NotAdmittedError) as refusal:
            desk.source.admitted()
        assert refusal.value.missing_gates == (Gate.SHARED_BUDGET.value,)

    def test_evidence_from_the_future_admits_only_when_it_has_come(self) -> None:
        desk = self.desk()
        desk.add_all(gate for gate in Gate if gate is not Gate.EGRESS_DENIAL)
        desk.add(evidence_of(Gate.EGRESS_DENIAL, at=NOON + timedelta(minutes=1)))

        with pytest.raises(NotAdmittedError):
            desk.source.admitted()

        desk.clock.advance(timedelta(minutes=2))
        assert desk.source.admitted().configuration == CONFIGURATION

    def test_an_answer_is_quick(self) -> None:
        """It is asked for each second while a request is out."""
        desk = self.desk()
        desk.add_all()
        desk.source.admitted()

        best_s = min(_duration_s(desk.source.admitted) for _ in range(20))

        assert best_s < QUICK_S

    def test_what_is_there_can_be_read(self) -> None:
        desk = self.desk()
        desk.add_all()

        found = desk.evidence.found()

        assert {one.gate for one in found.documents} == set(Gate)
        assert json.dumps([one.gate.value for one in found.documents])
        assert found.unreadable == ()


def _duration_s(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
