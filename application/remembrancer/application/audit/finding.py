"""What an audit says: invariants, findings, and the report that collects them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

_UUID_BYTES = 16

FINDINGS_MAX = 10_000
"""Findings that are kept; further ones are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A rule that holds at every position of every log that this software wrote."""

    name: str
    sentence: str
    source: str
    """Where it comes from: a seed, a section of the design, a decision record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place where an invariant doesn't hold.  Holds ids, labels and amounts, never a text."""

    invariant: str
    """The invariant's name."""
    stream: UUID | None
    version: int | None
    expected: str
    found: str
    about: str = ""
    """What it is about where that isn't an event: ``original ..., version 2``."""
    position: int | None = None
    at: datetime | None = None
    """When the event was recorded, as it says itself."""
    tenant: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """What findings are wanted of.  The log is read from its beginning in any case."""

    tenant: str | None = None
    owner: str | None = None
    since: datetime | None = None
    """Findings about events that say an earlier time are left out."""

    def wants_stream(self, tenant: str | None, owner: str | None) -> bool:
        """Say whether streams of this tenant and owner are looked at; unknown ones always are."""
        return (self.tenant is None or tenant is None or tenant == self.tenant) and (
            self.owner is None or owner is None or owner == self.owner
        )

    @property
    def is_whole(self) -> bool:
        """Whether no tenant and no owner is chosen."""
        return self.tenant is None and self.owner is None


@dataclass(slots=True)
class Findings:
    """Collects findings within the scope; the first :data:`FINDINGS_MAX` are kept."""

    scope: AuditScope = field(default_factory=AuditScope)
    kept: list[Finding] = field(default_factory=list)
    count: int = 0
    is_mute: bool = False
    """Whether nothing is taken: during a second reading, which only names what the first found."""

    def add(self, finding: Finding) -> None:
        """Take a finding in."""
        if self.is_mute or not self.scope.wants_stream(finding.tenant, finding.owner):
            return
        since = self.scope.since
        if since is not None and finding.at is not None and finding.at < since:
            return
        self.count += 1
        if len(self.kept) < FINDINGS_MAX:
            self.kept.append(finding)


@dataclass(slots=True)
class Place:
    """Where the reading of the log is, and how a rule reports what it finds there."""

    findings: Findings
    stream: bytes = bytes(16)
    position: int = 0
    version: int = 0
    at: datetime | None = None
    tenant: str | None = None
    owner: str | None = None

    def copy(self) -> "Place":
        """Return this place, to report it when the reading is elsewhere."""
        return Place(
            self.findings,
            self.stream,
            self.position,
            self.version,
            self.at,
            self.tenant,
            self.owner,
        )

    def report(
        self, invariant: Invariant, expected: str, found: str, *, version: int | None = None
    ) -> None:
        """Report the event at hand, or another version of the same stream."""
        self.findings.add(
            Finding(
                invariant=invariant.name,
                stream=uuid_of(self.stream),
                version=self.version if version is None else version,
                expected=expected,
                found=found,
                position=self.position if version is None else None,
                at=self.at if version is None else None,
                tenant=self.tenant,
                owner=self.owner,
            )
        )


def uuid_of(key: object) -> UUID | None:
    """Return the UUID of these bytes; None for what isn't one, as in a damaged store."""
    return UUID(bytes=key) if isinstance(key, bytes) and len(key) == _UUID_BYTES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit came to."""

    store: str
    findings: tuple[Finding, ...]
    findings_count: int
    """More than ``findings`` holds, where there were too many to keep."""
    notes: tuple[str, ...]
    """What couldn't be checked and needn't be wrong: erased, not permitted."""
    counts: dict[str, int]
    """What was looked at: events, streams, originals, packs, ..."""
    position: int
    """The last position of the log."""
    asked: int | None = None
    """How many streams are of the tenant and owner that were asked for; None where all were."""

    @property
    def is_green(self) -> bool:
        """Whether nothing was found."""
        return self.findings_count == 0


Progress = Callable[[int, int], None]
"""Called with (done, total) as long work goes on."""
