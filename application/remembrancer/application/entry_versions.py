"""What indexes are built from: the entries that events are about, and their kept versions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from remembrancer.application.entry_index import index_id
from remembrancer.application.ports import EntryVault, Original
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.sensitivity import Sensitivity


def touched(events: Iterable[object]) -> tuple[list[EntryId], dict[EntryId, int]]:
    """Return the entries these events are about, and those erased with their version counts."""
    found: dict[EntryId, None] = {}
    erased: dict[EntryId, int] = {}
    for event in events:
        if isinstance(event, MemoryEntry.EntryErased):
            erased[EntryId(event.entry_id)] = event.originator_version - 1
        elif isinstance(event, MemoryEntry.EntryRemembered | MemoryEntry.EntryCorrected):
            found[EntryId(event.entry_id)] = None
    return list(found), erased


def written(events: Iterable[object]) -> list[tuple[EntryId, int]]:
    """Return the versions that these events have brought, each once in the whole log."""
    return [
        (EntryId(event.entry_id), event.originator_version)
        for event in events
        if isinstance(event, MemoryEntry.EntryRemembered | MemoryEntry.EntryCorrected)
    ]


def kept_versions(vault: EntryVault, entry_ids: Sequence[EntryId]) -> list[Original]:
    """Return all kept versions of these entries, superseded ones too, in this order."""
    found: list[Original] = []
    kept = vault.current(entry_ids)
    for current in (kept[one] for one in entry_ids if one in kept):
        found += [current] if current.version == 1 else vault.history(current.entry_id)
    return found


def floors(versions: Sequence[Original]) -> dict[EntryId, Sensitivity]:
    """Return each version's label, or a later one's if that is higher, by its index id.

    A label that was corrected says what the text had been all along: it must not leave under the
    one that was wrong.
    """
    found: dict[EntryId, Sensitivity] = {}
    highest: dict[EntryId, Sensitivity] = {}
    for one in sorted(versions, key=lambda version: -version.version):
        floor = max(one.sensitivity, highest.get(one.entry_id, one.sensitivity))
        found[index_id(one)] = highest[one.entry_id] = floor
    return found


def places(erased: Mapping[EntryId, int]) -> Iterator[EntryId]:
    """Iterate over all that erased entries had in an index, given their version counts."""
    for entry_id, count in erased.items():
        yield from (version_id(entry_id, version) for version in range(1, count + 1))
        yield entry_id
