"""Use case: rebuild the indexes from log and vault.

A new vector index is built beside the one that answers, by following the log from its recorded
position, and takes over in one step once it has caught up; interrupted anywhere, it goes on from
where it was.  Every answer comes from one index, so two spaces never mix (case 23).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from remembrancer.application.embedders import Embedders
from remembrancer.application.entry_index import index_id, labels, searchable_text
from remembrancer.application.ports import (
    Embedder,
    EntryVault,
    EventLog,
    Original,
    SparseDocument,
    SparseIndex,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorPoint,
)
from remembrancer.application.remember import Progress
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import SettingsError
from remembrancer.domain.identity import EntryId, version_id

EVENTS_AT_ONCE = 256
"""Events a step takes in; a step holds the store's write lock for some ten milliseconds."""


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
        embedders: Embedders,
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._vault = vault
        self._sparse = sparse
        self._indexes = indexes
        self._embedders = embedders
        self._transactions = transactions

    def __call__(
        self,
        *,
        to: EmbeddingTuple | None = None,
        drop_retired: bool = False,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Build a fresh vector index of ``to`` (the preferred embedder's space), then switch.

        Raises:
            SettingsError: no embedder of that space is here.
        """
        embedder = self._embedder(to)
        index = self._indexes.begin(embedder.embedding_tuple)
        began = index.position
        while True:
            index, caught_up = self._step(index, embedder)
            if progress is not None:
                progress(index.position, self._log.position())
            if caught_up:
                break
        retired = tuple(one.number for one in self._indexes.all() if one.number != index.number)
        if drop_retired:
            for one in self._indexes.all():
                if one.number != index.number:
                    self._indexes.drop(one)
            retired = ()
        return Reindexed(
            index=index,
            vectors=self._indexes.store(index).count(),
            resumed_from=began,
            retired=retired,
        )

    def words(self, *, progress: Progress | None = None) -> int:
        """Rebuild the sparse index, in one transaction; return how many versions are in it."""
        with self._transactions.begin():
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

    def _embedder(self, to: EmbeddingTuple | None) -> Embedder:
        embedder = self._embedders.preferred if to is None else self._embedders.of(to)
        if embedder is None:
            wanted = "any space" if to is None else str(to)
            raise SettingsError(setting="embedder", problem=f"none for {wanted} is configured")
        return embedder

    def _step(self, index: VectorIndex, embedder: Embedder) -> tuple[VectorIndex, bool]:
        # The transaction is open while texts are read and embedded: what is erased meanwhile
        # waits, so no vector of it can be written after its erasure.
        with self._transactions.begin():
            records = self._log.follow(after_position=index.position, limit=EVENTS_AT_ONCE)
            if not records:
                return self._indexes.activate(index), True
            store = self._indexes.store(index)
            touched, erased = _touched(record.event for record in records)
            for entry_id, versions in erased.items():
                for version in range(1, versions + 1):
                    store.delete(version_id(entry_id, version))
                store.delete(entry_id)
            versions_here = self._versions(touched)
            vectors = embedder.embed_documents([one.text for one in versions_here])
            store.upsert_many(
                [
                    VectorPoint(index_id(one), vector, labels(one))
                    for one, vector in zip(versions_here, vectors, strict=True)
                    if vector is not None
                ]
            )
            return self._indexes.advance(index, records[-1].position), False

    def _versions(self, entry_ids: Iterable[EntryId]) -> list[Original]:
        """Return all kept versions of these entries, superseded ones too."""
        found: list[Original] = []
        for current in self._vault.current(list(entry_ids)).values():
            found += [current] if current.version == 1 else self._vault.history(current.entry_id)
        return found


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
