"""Where an admitted configuration comes from, and the evidence that it rests on."""

from dataclasses import dataclass, field
from typing import Protocol

from remembrancer.domain.release import AdmittedConfiguration, Evidence


class AdmissionSource(Protocol):
    """The configuration that may send requests now, if there is one.

    Asked before a request and each second while one is out: an answer is quick, does no network
    I/O, and changes as soon as evidence is revoked or the configuration changes.
    """

    def admitted(self) -> AdmittedConfiguration:
        """Return what is admitted now.

        Raises:
            NotAdmittedError: nothing is; it names the gates that aren't met.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableEvidence:
    """Something lies where evidence lies, and isn't any."""

    name: str
    problem: str
    """Never what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvidence:
    """What there is: documents, and what can't be read as one."""

    documents: tuple[Evidence, ...] = field(repr=False)
    unreadable: tuple[UnreadableEvidence, ...]


class EvidenceSource(Protocol):
    """The evidence documents, of whatever configuration."""

    def found(self) -> FoundEvidence:
        """Return what there is now; what can't be read is named and no evidence."""
        ...
