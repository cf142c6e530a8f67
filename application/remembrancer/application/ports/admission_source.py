"""Where an admitted configuration comes from."""

from typing import Protocol

from remembrancer.domain.release import AdmittedConfiguration


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
