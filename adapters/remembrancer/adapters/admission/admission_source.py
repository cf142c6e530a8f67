"""Admission by the evidence in a folder, for the configuration as it is set now (adr/0015).

The folder is looked at again whenever admission is asked for, so taking a document away, or
changing the settings that the configuration comes from, withdraws the admission at once.
"""

from collections.abc import Callable

from typing_extensions import override

from remembrancer.adapters.admission.evidence_folder import EvidenceFolder, Signature
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.clock import Clock
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import AdmissionRefusal, AdmittedConfiguration, admit


class FolderAdmission(AdmissionSource):
    """Admits the current configuration with the evidence in the folder.

    ``current`` gives the configuration as it is set now; it is asked each time, and where it
    can't say, nothing is admitted.
    """

    def __init__(
        self, *, folder: EvidenceFolder, current: Callable[[], Configuration], clock: Clock
    ) -> None:
        self._folder = folder
        self._current = current
        self._clock = clock
        self._withdrawn = False
        self._decided: tuple[tuple[str, Signature], AdmittedConfiguration] | None = None

    @override
    def admitted(self) -> AdmittedConfiguration:
        if self._withdrawn:
            raise _nothing_admitted()
        configuration = self._configuration()
        # Before reading: what changes meanwhile gives another signature next time.
        basis = (configuration.digest, self._folder.signature())
        # One reading and one assignment of a pair, so no lock: one that was held while the process
        # forked would never be given back in the child.
        decided = self._decided
        if decided is not None and decided[0] == basis:
            return decided[1]
        documents = self._folder.found().documents
        decision = admit(configuration, documents, at=self._clock.now())
        if isinstance(decision, AdmissionRefusal):
            raise decision.error()
        self._decided = (basis, decision)
        return decision

    def withdraw(self) -> None:
        """Admit nothing any more in this process."""
        self._withdrawn = True

    def _configuration(self) -> Configuration:
        try:
            return self._current()
        except Exception:  # noqa: BLE001  # settings that can't be read any more admit nothing
            raise _nothing_admitted() from None


def _nothing_admitted() -> NotAdmittedError:
    return NotAdmittedError(tuple(gate.value for gate in Gate))
