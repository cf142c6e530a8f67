"""Use case: rebuild the indexes from log and vault.

A new vector index is built beside the one that answers, by following the log from its recorded
position, and takes over in one step once it has caught up; interrupted anywhere, it goes on from
where it was.  Every answer comes from one index, so two spaces never mix (case 23).  Where
vectors are bought and can't be any more, it stops instead of switching to an index with gaps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from remembrancer.application.document_vectors import (
    DocumentText,
    DocumentVectors,
    Embedded,
)
from remembrancer.application.entry_index import index_id, labels, searchable_text
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    IndexState,
    Original,
    SparseDocument,
    SparseIndex,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorPoint,
    VectorStore,
)
from remembrancer.application.remember import Progress
from remembrancer.application.whose import places_by_owner
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import (
    ReindexStoppedError,
    SettingsError,
    StoreUnavailableError,
)
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.sensitivity import Sensitivity
from remembrancer.domain.vector import Vector

EVENTS_AT_ONCE = 256
"""Events a step takes in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What a reindexing has come to."""

    index: VectorIndex
    vectors: int
    resumed_from: int
    """Log position at which an earlier, interrupted run had stopped; 0 for none."""
    retired: tuple[int, ...]
    """Numbers of indexes that don't answer any more and can be dropped."""


class Reindex:
    """Builds beside, switches, keeps the old until it is dropped on request."""

    def __init__(  # one port each
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        sparse: SparseIndex,
        indexes: VectorIndexes,
        vectors: DocumentVectors,
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._vault = vault
        self._sparse = sparse
        self._indexes = indexes
        self._vectors = vectors
        self._transactions = transactions

    def __call__(
        self,
        *,
        to: EmbeddingTuple | None = None,
        drop_retired: bool = False,
        allow_gaps: bool = False,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Build a fresh vector index of ``to`` (the preferred space), then switch.

        With ``allow_gaps`` it switches although vectors couldn't be bought; :meth:`missing` can
        bring them later.

        Raises:
            SettingsError: no embedder of that space is here.
            ReindexStoppedError: the budget or the provider said no; the next call goes on.
        """
        index = self._indexes.begin(self._space(to))
        began = index.position
        with self._transactions.over_all_tenants():
            index = self._built(index, allow_gaps=allow_gaps, progress=progress)
        retired = tuple(one.number for one in self._indexes.all() if one.number != index.number)
        if drop_retired:
            for one in self._indexes.all():
                if one.number != index.number:
                    self._indexes.drop(one)
            retired = ()
        with self._transactions.over_all_tenants():
            vectors = self._indexes.store(index).count()
        return Reindexed(index=index, vectors=vectors, resumed_from=began, retired=retired)

    def drop_retired(self) -> tuple[int, ...]:
        """Destroy the indexes that answered once; return their numbers.

        One that is still being built stays: the next call goes on with it.
        """
        retired = [one for one in self._indexes.all() if one.state is IndexState.RETIRED]
        for one in retired:
            self._indexes.drop(one)
        return tuple(one.number for one in retired)

    def words(self, *, progress: Progress | None = None) -> int:
        """Rebuild the sparse index, in one transaction; return how many versions are in it."""
        with (
            self._transactions.over_all_tenants(),
            self._transactions.begin(alone=True),
        ):
            self._sparse.clear()
            position, end = 0, self._log.position()
            while records := self._log.follow(after_position=position, limit=EVENTS_AT_ONCE):
                touched, _ = _touched(record.event for record in records)
                versions = self._versions(touched)
                self._sparse.upsert_many(
                    [
                        SparseDocument(index_id(one), searchable_text(one), labels(one))
                        for one in versions
                    ]
                )
                position = records[-1].position
                if progress is not None:
                    progress(position, end)
            return self._sparse.count()

    def missing(self, *, progress: Progress | None = None) -> int:
        """Give vectors to versions that have none in the active index; return how many got one.

        For texts that were kept while a provider was away or a budget was used up.

        Raises:
            SettingsError: nobody here embeds into the index's space.
        """
        active = self._indexes.active()
        space = self._space(None if active is None else active.embedding_tuple)
        if active is None:
            with self._transactions.begin(alone=True):
                active = self._indexes.active() or self._indexes.activate(
                    self._indexes.begin(space)
                )
        with self._transactions.over_all_tenants():
            return self._filled(self._indexes.store(active), space, progress)

    def _filled(self, store: VectorStore, space: EmbeddingTuple, progress: Progress | None) -> int:
        added, position, end = 0, 0, self._log.position()
        while records := self._log.follow(after_position=position, limit=EVENTS_AT_ONCE):
            touched, _ = _touched(record.event for record in records)
            versions = self._versions(touched)
            here = store.vectors([index_id(one) for one in versions])
            absent = [one for one in versions if index_id(one) not in here]
            found = self._embedded(absent, versions, space)
            added += self._write(store, absent, found.vectors)
            position = records[-1].position
            if progress is not None:
                progress(position, end)
            if found.nobody_answered:
                break
        return added

    def _built(
        self, index: VectorIndex, *, allow_gaps: bool, progress: Progress | None
    ) -> VectorIndex:
        while True:
            index, caught_up = self._step(index, allow_gaps=allow_gaps)
            if progress is not None:
                progress(index.position, self._log.position())
            if caught_up:
                return index

    def _space(self, to: EmbeddingTuple | None) -> EmbeddingTuple:
        space = self._vectors.preferred_space if to is None else to
        if space is None or not self._vectors.can_embed_into(space):
            wanted = "any space" if space is None else str(space)
            raise SettingsError(setting="embedder", problem=f"none for {wanted} is configured")
        return space

    def _step(self, index: VectorIndex, *, allow_gaps: bool) -> tuple[VectorIndex, bool]:
        records = self._log.follow(after_position=index.position, limit=EVENTS_AT_ONCE)
        if not records:
            return self._switched(index)
        store = self._indexes.store(index)
        touched, erased = _touched(record.event for record in records)
        versions = self._versions(touched)
        # A model works or a provider is asked: outside the transaction.
        found = self._embedded(versions, versions, index.embedding_tuple)
        gaps = set() if allow_gaps else {versions[place].entry_id for place in found.unanswered}
        position = index.position
        for record in records:
            if not gaps.isdisjoint(_touched([record.event])[0]):
                break
            position = record.position
        with self._transactions.begin():
            now = self._as_it_is(index)
            if now.state is IndexState.ACTIVE:
                return now, True
            self._write(store, versions, found.vectors)
            for entry_id, count in erased.items():
                self._drop(store, entry_id, count)
            if position != index.position:
                index = self._indexes.advance(index, position)
        if gaps:
            raise ReindexStoppedError(
                reason=next(iter(found.unanswered.values())),
                position=position,
                end=self._log.position(),
            )
        return index, False

    def _switched(self, index: VectorIndex) -> tuple[VectorIndex, bool]:
        with self._transactions.begin(alone=True):
            now = self._as_it_is(index)
            if now.state is IndexState.ACTIVE:
                return now, True
            if self._log.follow(after_position=index.position, limit=1):
                return index, False  # Something was written since: take it in first.
            return self._indexes.activate(index), True

    def _as_it_is(self, index: VectorIndex) -> VectorIndex:
        """Return the index as it stands: two that reindex at once build one, and one is first.

        Raises:
            StoreUnavailableError: others finished it, and a further one since.
        """
        now = next((one for one in self._indexes.all() if one.number == index.number), index)
        if now.state is IndexState.RETIRED:
            raise StoreUnavailableError(
                store=f"vector index {index.number}", problem="another was put in its place"
            )
        return now

    def _embedded(
        self, wanted: Sequence[Original], versions: Sequence[Original], space: EmbeddingTuple
    ) -> Embedded:
        """Embed ``wanted``, which are among all ``versions`` of their entries."""
        floors = _floors(versions)
        documents = [
            DocumentText(
                tenant=one.tenant,
                owner=one.owner,
                sensitivity=floors[index_id(one)],
                text=one.text,
            )
            for one in wanted
        ]
        return self._vectors.embedded(documents, space)

    def _write(
        self, store: VectorStore, versions: Sequence[Original], vectors: Sequence[Vector | None]
    ) -> int:
        """Write what is still as it was read: nothing erased or corrected since gets a vector.

        What has no vector now loses the one that an earlier version may have left in its place.
        """
        written = 0
        with self._transactions.begin():
            for (tenant, owner), places in places_by_owner(versions):
                with self._transactions.acting_for(tenant, owner):
                    now = self._vault.indexed([index_id(versions[i]) for i in places])
                    points = []
                    for one, vector in ((versions[i], vectors[i]) for i in places):
                        still = now.get(index_id(one))
                        if vector is None:
                            store.delete(index_id(one))
                        elif still is not None and still.digest == one.digest:
                            points.append(VectorPoint(index_id(one), vector, labels(one)))
                    store.upsert_many(points)
                    written += len(points)
        return written

    def _drop(self, store: VectorStore, entry_id: EntryId, count: int) -> None:
        """Remove what an erased entry of ``count`` versions had in an index."""
        tenant = self._vault.tenant_of_erased(entry_id)
        if tenant is None:  # Never here: the log is another's.
            return
        with self._transactions.acting_for(tenant):
            for place in _places({entry_id: count}):
                store.delete(place)

    def _versions(self, entry_ids: Iterable[EntryId]) -> list[Original]:
        """Return all kept versions of these entries, superseded ones too, in this order."""
        found: list[Original] = []
        wanted = list(entry_ids)
        kept = self._vault.current(wanted)
        for current in (kept[one] for one in wanted if one in kept):
            found += [current] if current.version == 1 else self._vault.history(current.entry_id)
        return found


def _floors(versions: Sequence[Original]) -> dict[EntryId, Sensitivity]:
    """Return each version's label, or a later one's if that is higher.

    A label that was corrected says what the text had been all along: it must not leave under the
    one that was wrong.
    """
    floors: dict[EntryId, Sensitivity] = {}
    highest: dict[EntryId, Sensitivity] = {}
    for one in sorted(versions, key=lambda version: -version.version):
        floor = max(one.sensitivity, highest.get(one.entry_id, one.sensitivity))
        floors[index_id(one)] = highest[one.entry_id] = floor
    return floors


def _places(erased: Mapping[EntryId, int]) -> Iterator[EntryId]:
    """Iterate over all that erased entries had in an index, given their version counts."""
    for entry_id, count in erased.items():
        yield from (version_id(entry_id, version) for version in range(1, count + 1))
        yield entry_id


def _touched(events: Iterable[object]) -> tuple[list[EntryId], dict[EntryId, int]]:
    """Return the entries these events are about, and those erased with their version counts."""
    touched: dict[EntryId, None] = {}
    erased: dict[EntryId, int] = {}
    for event in events:
        if isinstance(event, MemoryEntry.EntryErased):
            erased[EntryId(event.entry_id)] = event.originator_version - 1
        elif isinstance(event, MemoryEntry.EntryRemembered | MemoryEntry.EntryCorrected):
            touched[EntryId(event.entry_id)] = None
    return list(touched), erased
