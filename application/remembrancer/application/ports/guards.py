"""Guards: what stands between a text and the world outside.

Local, deterministic and free: no request, no clock, no chance.  The same text gives the same
verdict under the same rule sets, on every machine.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from remembrancer.domain.eligibility import LEAVES_AT_MOST
from remembrancer.domain.sensitivity import Sensitivity

GUARDED_BYTES_MAX = 65_536
"""UTF-8 bytes of one text that guards read; a longer one is withheld, never cut."""


class GuardReason(StrEnum):
    """Why a text is withheld, in the order in which guards are asked (design 4.4)."""

    TOO_LONG = "too_long"
    """More than :data:`GUARDED_BYTES_MAX`, or it unfolds to far more than it says."""
    CLASSIFICATION = "classification"
    """Its sensitivity is above :data:`LEAVES_AT_MOST`."""
    CREDENTIAL = "credential"
    INJECTION = "injection"
    RESIDENCY = "residency"
    """The destination isn't one that the region allows."""
    GUARD_FAILED = "guard_failed"
    """A guard raised: what could not be checked stays here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFinding:
    """One rule that matched: which, of which rule set, in which view.  Never what it matched."""

    reason: GuardReason
    rule: str
    """Such as ``aws-access-key``."""
    rule_set: str
    """Name and version, such as ``credentials@1``."""
    view: str
    """Which reading of the text showed it: ``raw``, ``normal``, ``base64``, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardVerdict:
    """What guards say about one text."""

    sensitivity: Sensitivity
    """The higher of what was declared and what the text shows."""
    findings: tuple[GuardFinding, ...]

    @property
    def reason(self) -> GuardReason | None:
        """Why the text is withheld: the first reason in guard order; None where it may leave."""
        found = {finding.reason for finding in self.findings}
        if GuardReason.GUARD_FAILED in found:
            return GuardReason.GUARD_FAILED  # Nothing else was found out.
        if self.sensitivity > LEAVES_AT_MOST:
            found.add(GuardReason.CLASSIFICATION)
        else:
            # An e-mail address in a text raises its sensitivity; the sensitivity decides.
            found.discard(GuardReason.CLASSIFICATION)
        return next((reason for reason in GuardReason if reason in found), None)

    @property
    def may_leave(self) -> bool:
        """True where no guard withholds the text."""
        return self.reason is None


class Guards(Protocol):
    """All guards together: classification, credentials, injection, residency."""

    @property
    def rule_sets(self) -> tuple[str, ...]:
        """Names and versions of all rule sets and engines, sorted."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 over every rule of every set and engine; part of the egress configuration.

        64 hexadecimal digits.  Another rule, version, region or allowed host gives another.
        """
        ...

    def check(self, text: str, *, declared: Sensitivity | None, destination: str) -> GuardVerdict:
        """Check one complete text: a question, a subject, an entry.

        Args:
            text: As it would be sent.  Checked as it stands and in normalised views.
            declared: The label it has; None counts as ``restricted`` (deny by default).
            destination: The provider's actual URL (:attr:`EmbeddingProvider.destination`).

        Linear in the length of ``text``, whatever it holds.  May raise anything: callers use
        :func:`guarded`.
        """
        ...


def guarded(
    guards: Guards, text: str, *, declared: Sensitivity | None, destination: str
) -> GuardVerdict:
    """Return the guards' verdict; a guard that raises withholds the text."""
    try:
        return guards.check(text, declared=declared, destination=destination)
    except Exception as failure:  # noqa: BLE001 - whatever a guard raises closes the door
        # Only the type's name: a message may quote the text.
        return GuardVerdict(
            sensitivity=Sensitivity.RESTRICTED,
            findings=(
                GuardFinding(
                    reason=GuardReason.GUARD_FAILED,
                    rule=type(failure).__name__,
                    rule_set="guards",
                    view="raw",
                ),
            ),
        )
