"""Use case: where the gates stand for the configuration as it is set now.

Works without any admission, and without a configuration too: then every gate says so.
"""

from collections.abc import Callable
from dataclasses import dataclass

from remembrancer.application.ports.admission_source import EvidenceSource, UnreadableEvidence
from remembrancer.application.ports.clock import Clock
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import RemembrancerError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import GateProblem, GateReason, GateStatus, gate_statuses


@dataclass(frozen=True, slots=True, kw_only=True)
class GatesReport:
    """Each gate's state, and why."""

    configuration_digest: str | None
    """Of the configuration that the gates were looked at for; None where there is none."""
    mechanism_version: str | None
    problem: str
    """Why there is no configuration; ``""`` where there is one."""
    gates: tuple[GateStatus, ...]
    """All twelve, in their order."""
    unreadable: tuple[UnreadableEvidence, ...]
    """What lies among the evidence and isn't any."""

    @property
    def pending(self) -> tuple[Gate, ...]:
        """Gates that aren't met."""
        return tuple(status.gate for status in self.gates if not status.is_met)


class ReadGates:
    """Judges the evidence there is."""

    def __init__(
        self, *, current: Callable[[], Configuration], evidence: EvidenceSource, clock: Clock
    ) -> None:
        self._current = current
        self._evidence = evidence
        self._clock = clock

    def __call__(self) -> GatesReport:
        """Return where each gate stands."""
        found = self._evidence.found()
        try:
            configuration = self._current()
        except RemembrancerError as problem:
            return GatesReport(
                configuration_digest=None,
                mechanism_version=None,
                problem=str(problem),
                gates=tuple(map(_unconfigured, Gate)),
                unreadable=found.unreadable,
            )
        return GatesReport(
            configuration_digest=configuration.digest,
            mechanism_version=configuration.mechanism_version,
            problem="",
            gates=gate_statuses(configuration, found.documents, at=self._clock.now()),
            unreadable=found.unreadable,
        )


def _unconfigured(gate: Gate) -> GateStatus:
    problem = GateProblem(reason=GateReason.NO_CONFIGURATION)
    return GateStatus(gate=gate, problems=(problem,), evidence=())
