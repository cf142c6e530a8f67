"""The life of one entry as its stream tells it: versions, corrections, erasure.  No text."""

from dataclasses import dataclass
from datetime import datetime

from remembrancer.application.load import load
from remembrancer.application.ports import EventLog
from remembrancer.domain.entry import EntryHeader, MemoryEntry
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """One version as the log has it."""

    version: int
    at: datetime
    """When it became current."""
    digest: str
    length: int
    """Of the text, in UTF-8 bytes."""
    scope: str
    kind: str
    sensitivity: Sensitivity
    reason: str
    """Why it was written, as a code; ``""`` for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLife:
    """An entry from its beginning to now."""

    tenant: str
    owner: str
    entry_id: EntryId
    versions: tuple[VersionFacts, ...]
    """Oldest first, at least one."""
    erased_at: datetime | None
    erased_reason: str
    """A code; ``""`` unless it was erased."""

    @property
    def head(self) -> VersionFacts:
        """The last version."""
        return self.versions[-1]

    def header(self, facts: VersionFacts) -> EntryHeader:
        """Return the labels of a version, which permission is decided by."""
        return EntryHeader(
            tenant=self.tenant,
            owner=self.owner,
            entry_id=self.entry_id,
            version=facts.version,
            scope=facts.scope,
            kind=facts.kind,
            sensitivity=facts.sensitivity,
        )


def entry_life(log: EventLog, tenant: str, entry_id: EntryId) -> EntryLife | None:
    """Read an entry's stream; None where nothing was recorded.

    Raises:
        RecordError: as :func:`remembrancer.application.load.load`.
    """
    stream = MemoryEntry.create_id(tenant, entry_id)
    entry = load(log, MemoryEntry, stream)  # So that nothing below is of another kind.
    if entry is None:
        return None
    versions: list[VersionFacts] = []
    erased_at, erased_reason = None, ""
    for event in log.read(stream):
        if isinstance(event, MemoryEntry.EntryErased):
            erased_at, erased_reason = event.timestamp, event.reason
        elif isinstance(event, MemoryEntry.EntryRemembered | MemoryEntry.EntryCorrected):
            versions.append(_facts(event))
    return EntryLife(
        tenant=entry.tenant,
        owner=entry.owner,
        entry_id=entry.entry_id,
        versions=tuple(versions),
        erased_at=erased_at,
        erased_reason=erased_reason,
    )


def _facts(event: MemoryEntry.EntryRemembered | MemoryEntry.EntryCorrected) -> VersionFacts:
    return VersionFacts(
        version=event.originator_version,
        at=event.timestamp,
        digest=event.digest,
        length=event.length,
        scope=event.scope,
        kind=event.kind,
        sensitivity=Sensitivity(event.sensitivity),
        reason=getattr(event, "reason", ""),
    )
