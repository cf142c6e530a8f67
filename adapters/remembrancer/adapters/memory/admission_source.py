"""Admission by evidence that is held in this process."""

from collections.abc import Iterable
from threading import Lock

from typing_extensions import override

from remembrancer.application.ports.admission_source import (
    AdmissionSource,
    EvidenceSource,
    FoundEvidence,
)
from remembrancer.application.ports.clock import Clock
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import (
    AdmissionRefusal,
    AdmittedConfiguration,
    Evidence,
    admit,
)


class MemoryAdmission(AdmissionSource, EvidenceSource):
    """Decides anew whenever something was added, taken away or configured."""

    def __init__(
        self, *, configuration: Configuration, clock: Clock, evidence: Iterable[Evidence] = ()
    ) -> None:
        self._clock = clock
        self._lock = Lock()
        self._configuration = configuration
        self._evidence = list(evidence)
        self._decided: AdmittedConfiguration | None = None
        self._withdrawn = False

    @override
    def admitted(self) -> AdmittedConfiguration:
        with self._lock:
            if self._withdrawn:
                raise NotAdmittedError(tuple(gate.value for gate in Gate))
            if self._decided is None:
                decision = admit(self._configuration, self._evidence, at=self._clock.now())
                if isinstance(decision, AdmissionRefusal):
                    raise decision.error()
                self._decided = decision
            return self._decided

    @override
    def found(self) -> FoundEvidence:
        with self._lock:
            return FoundEvidence(documents=tuple(self._evidence), unreadable=())

    def add(self, evidence: Evidence) -> None:
        """Hold one more document."""
        with self._lock:
            self._evidence.append(evidence)
            self._decided = None

    def take_away(self, evidence: Evidence) -> None:
        """Hold a document no more."""
        with self._lock:
            self._evidence.remove(evidence)
            self._decided = None

    def configure(self, configuration: Configuration) -> None:
        """Decide on another configuration from now on."""
        with self._lock:
            self._configuration = configuration
            self._decided = None

    def withdraw(self) -> None:
        """Admit nothing any more."""
        with self._lock:
            self._withdrawn = True
