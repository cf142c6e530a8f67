"""Running the checks and writing down what they measured."""

import hashlib
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from remembrancer.adapters.admission.evidence_folder import EvidenceFolder
from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.composition.gate_checks import (
    durability,
    egress,
    identity,
    originals,
    serialisation,
    settlement,
    uncertainty,
)
from remembrancer.composition.gate_checks.measured import Check, CheckFailedError, Measured
from remembrancer.composition.gate_checks.rehearsal import Rehearsal
from remembrancer.composition.remote import current_configuration
from remembrancer.composition.settings import Settings
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import Evidence, GateProblem, gate_statuses

CHECKS: dict[Check, tuple[Gate, ...]] = {
    durability.check: (Gate.DURABLE_ADMISSION, Gate.RESTART_AND_EXPIRY),
    serialisation.check: (Gate.OWNER_SERIALISATION,),
    settlement.check: (Gate.SETTLEMENT_EXACTNESS, Gate.SHARED_BUDGET),
    identity.check: (Gate.SCOPE_AND_CONTEXT_IDENTITY, Gate.CACHE_BOUNDS),
    egress.check: (Gate.EGRESS_DENIAL,),
    uncertainty.check: (Gate.UNCERTAIN_RESPONSES,),
    originals.check: (Gate.CORRECTION_AND_ERASURE,),
}
"""Each check and the gates that it measures for."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """What became of one gate's check."""

    gate: Gate
    document: Path | None
    """The evidence that was written; None where the check couldn't be carried out."""
    problems: tuple[GateProblem, ...]
    """Why the gate is pending all the same: figures that are out of bounds."""
    failure: str
    """Why the check couldn't be carried out; ``""`` where it was."""

    @property
    def is_met(self) -> bool:
        """True where the evidence is in and good."""
        return self.document is not None and not self.problems


def run_checks(
    settings: Settings,
    *,
    by: str,
    gates: Collection[Gate] = tuple(Gate),
    progress: Progress | None = None,
) -> list[CheckOutcome]:
    """Run the checks of ``gates`` on what ``settings`` configure, and write their evidence.

    What was measured is written, good or bad: the newest document of a gate decides.

    Raises:
        SettingsError: no provider is configured.
        InvalidInputError: the settings don't fit together.
    """
    configuration = current_configuration(settings)
    folder = EvidenceFolder(settings.admission.evidence)
    chosen = [(check, of) for check, of in CHECKS.items() if not set(of).isdisjoint(gates)]
    outcomes: list[CheckOutcome] = []
    with tempfile.TemporaryDirectory(prefix="remembrancer-gates-") as scratch:
        for number, (check, of) in enumerate(chosen):
            if progress is not None:
                progress(number, len(chosen))
            rehearsal = Rehearsal.of(settings, Path(scratch)).within(Path(scratch) / str(number))
            try:
                measured = check(rehearsal)
            except CheckFailedError as failed:
                outcomes += [_failed(gate, failed.problem) for gate in of]
            except Exception as failure:  # noqa: BLE001  # a check that breaks proves nothing
                outcomes += [_failed(gate, type(failure).__name__) for gate in of]
            else:
                outcomes += [
                    _written(folder, configuration, gate, measured[gate], by) for gate in of
                ]
        if progress is not None:
            progress(len(chosen), len(chosen))
    return sorted(outcomes, key=lambda outcome: list(Gate).index(outcome.gate))


def _failed(gate: Gate, failure: str) -> CheckOutcome:
    return CheckOutcome(gate=gate, document=None, problems=(), failure=failure)


def _written(
    folder: EvidenceFolder, configuration: Configuration, gate: Gate, measured: Measured, by: str
) -> CheckOutcome:
    at = SystemClock().now()
    artefact = canonical_json({"figures": measured.figures, "raw": measured.raw}) + b"\n"
    name = f"{gate.value}-{_stamp(at)}.json"
    folder.write_artefact(name, artefact)
    evidence = Evidence(
        gate=gate,
        configuration_digest=configuration.digest,
        mechanism_version=configuration.mechanism_version,
        ran="remembrancer gates run",
        by=by,
        at=at,
        figures=measured.figures,
        artefact_digests={name: hashlib.sha256(artefact).hexdigest()},
    )
    document = folder.write(evidence)
    [status] = [one for one in gate_statuses(configuration, [evidence], at=at) if one.gate is gate]
    return CheckOutcome(gate=gate, document=document, problems=status.problems, failure="")


def _stamp(at: datetime) -> str:
    return at.strftime("%Y%m%dT%H%M%S%f")
