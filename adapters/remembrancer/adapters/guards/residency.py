"""Residency: texts go to the hosts that a region names, and nowhere else."""

import hashlib
from collections.abc import Sequence

from remembrancer.application.ports.guards import GuardFinding, GuardReason
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.destination import Destination
from remembrancer.domain.errors import InvalidInputError

RESIDENCY_VERSION = "residency@1"


class ResidencyRules:
    """The destinations that one region allows, compared exactly: scheme, host and port.

    Args:
        region: Its name, such as ``eu``; part of the digest.
        allowed: Hosts (``api.example.com``, ``api.example.com:8443``) for https, or origins
            spelled out.  ``http`` only where an entry says so (``http://127.0.0.1:11434``), and
            only for this machine.  None at all allows nothing.

    Raises:
        InvalidInputError: from the constructor; an entry is no such host, or http elsewhere.
    """

    def __init__(self, *, region: str, allowed: Sequence[str]) -> None:
        self._region = region
        self._origins = frozenset(map(_allowed_origin, allowed))

    @property
    def digest(self) -> str:
        """SHA-256 of version, region and allowed origins."""
        content = [RESIDENCY_VERSION, self._region, sorted(self._origins)]
        return hashlib.sha256(canonical_json(content)).hexdigest()

    def findings(self, url: str) -> tuple[GuardFinding, ...]:
        """Return what is wrong with going to ``url``; nothing if it is allowed."""
        try:
            origin = Destination.parse(url).origin
        except InvalidInputError:
            return (_finding("unreadable-destination"),)
        return () if origin in self._origins else (_finding("destination-not-allowed"),)


def _allowed_origin(entry: str) -> str:
    destination = Destination.parse(entry if "://" in entry else f"https://{entry}")
    if destination.path not in {"", "/"}:
        raise InvalidInputError(field="allowed", problem="names a host, without a path")
    if destination.scheme != "https" and not destination.is_loopback:
        raise InvalidInputError(field="allowed", problem="http is for this machine only")
    return destination.origin


def _finding(rule: str) -> GuardFinding:
    return GuardFinding(
        reason=GuardReason.RESIDENCY, rule=rule, rule_set=RESIDENCY_VERSION, view="destination"
    )
