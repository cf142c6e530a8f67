"""Events for the suites of logs and stores: lives of entries, decided and not yet stored."""

from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.domain.entry import EntryHeader, MemoryEntry
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

AT = datetime(2030, 1, 1, tzinfo=UTC)
DIGEST = "ab" * 32


def header(number: int, *, tenant: str = "acme") -> EntryHeader:
    """Return labels of the entry with this number."""
    return EntryHeader(
        tenant=tenant,
        owner="ana",
        entry_id=EntryId(UUID(int=number)),
        version=1,
        scope="project/alpha",
        kind="note",
        sensitivity=Sensitivity.INTERNAL,
    )


def remembered(number: int) -> MemoryEntry:
    """Return a new entry, its first event pending."""
    return MemoryEntry.remember(header(number), digest=DIGEST, length=7, at=AT)


def history(number: int, *, corrections: int) -> list[AggregateEvent]:
    """Return the events of an entry that was corrected this often."""
    entry = remembered(number)
    for i in range(corrections):
        entry.correct(
            header(number),
            digest=DIGEST,
            length=i,
            reason="edited",
            at=AT + timedelta(seconds=i + 1),
        )
    return pending(entry)


def pending(entry: MemoryEntry) -> list[AggregateEvent]:
    """Return what an entry has decided and nobody has stored."""
    return [cast("AggregateEvent", event) for event in entry.collect_events()]
