"""Whether the parts of one store agree: what the log says is what vault and indexes hold."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from remembrancer.application.entry_index import TENANT
from remembrancer.composition.store import Store
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.original_digest import original_digest

STEP = 1_000


@dataclass(slots=True)
class Told:
    """What the log alone says of one entry."""

    tenant: str
    owner: str
    digests: list[str] = field(default_factory=list)
    erased: bool = False


def told_by_log(store: Store) -> dict[EntryId, Told]:
    """Fold the whole log into what it says of each entry."""
    entries: dict[EntryId, Told] = {}
    position = 0
    while records := store.log.follow(after_position=position, limit=STEP):
        for record in records:
            event = record.event
            if isinstance(event, MemoryEntry.EntryRemembered):
                told = Told(event.tenant, event.owner, [event.digest])
                assert entries.setdefault(EntryId(event.entry_id), told) is told
            elif isinstance(event, MemoryEntry.EntryCorrected):
                entries[EntryId(event.entry_id)].digests.append(event.digest)
            elif isinstance(event, MemoryEntry.EntryErased):
                entries[EntryId(event.entry_id)].erased = True
        assert records[-1].position > position
        position = records[-1].position
    return entries


def assert_agreement(
    store: Store, *, all_have_vectors: bool = True, common_word: str | None = None
) -> dict[EntryId, Told]:
    """Fold of the log == vault == sparse index == vector index; return what the log says.

    Args:
        store: what was written to.
        all_have_vectors: whether every text of the test has a vector in the active space.
        common_word: a word in every text, by which the sparse index is asked for all it has.
    """
    with store.transactions.over_all_tenants(), store.transactions.snapshot():
        entries = told_by_log(store)
        places: set[EntryId] = set()
        for entry_id, told in entries.items():
            kept = store.vault.history(entry_id)
            if told.erased:
                assert not kept, entry_id
                assert store.vault.tenant_of_erased(entry_id) == told.tenant
                continue
            assert [one.digest for one in kept] == told.digests, entry_id
            for one in kept:
                assert original_digest(one.salt, one.text) == one.digest, entry_id
            assert [one.version for one in kept] == list(range(1, len(kept) + 1))
            places |= _places(entry_id, len(kept))
        living = [entry_id for entry_id, told in entries.items() if not told.erased]
        assert store.vault.count() == len(living)
        assert set(store.vault.indexed(list(places))) == places
        assert store.sparse.count() == len(places)
        if common_word is not None and places:
            found = {
                one.id
                for tenant in {told.tenant for told in entries.values()}
                for one in store.sparse.query(common_word, len(places) + 1, {TENANT: tenant})
            }
            assert found == places
        _check_vectors(store, places, entries, all_have_vectors=all_have_vectors)
    return entries


def _check_vectors(
    store: Store,
    places: set[EntryId],
    entries: dict[EntryId, Told],
    *,
    all_have_vectors: bool,
) -> None:
    active = store.indexes.active()
    if active is None:
        assert not (all_have_vectors and places)
        return
    vectors = store.indexes.store(active)
    held = set(vectors.vectors(list(places)))
    assert vectors.count() == len(held), "a vector of nothing that is kept"
    if all_have_vectors:
        assert held == places
    erased = _all_places(entry_id for entry_id, told in entries.items() if told.erased)
    for index in store.indexes.all():
        assert not store.indexes.store(index).vectors(list(erased))


def _places(entry_id: EntryId, versions: int) -> set[EntryId]:
    """Return under which ids an entry stands: itself, and each superseded version."""
    return {entry_id, *(version_id(entry_id, number) for number in range(1, versions))}


def _all_places(entry_ids: Iterable[EntryId]) -> set[EntryId]:
    return {place for entry_id in entry_ids for place in _places(entry_id, 8)}
