"""Use case: how the memory stands."""

from dataclasses import dataclass, replace

from remembrancer.application.document_vectors import DocumentVectors
from remembrancer.application.ports import (
    EntryVault,
    SparseIndex,
    Transactions,
    VectorIndex,
    VectorIndexes,
)
from remembrancer.application.projection import Projection
from remembrancer.domain.errors import SettingsError, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Counts over all tenants; nothing private."""

    entries: int
    events: int
    """Position of the last event in the log."""
    versions_by_words: int
    """Versions (current and superseded) in the sparse index."""
    versions_by_vector: int | None
    """Versions in the vector index that answers; None where it is kept elsewhere and doesn't."""
    indexes: tuple[VectorIndex, ...]
    behind: int
    """How many positions the index that answers is behind the log; 0 where the store keeps it."""
    waiting_vectors: int
    """Vectors on their way to indexes kept elsewhere."""
    waiting_erasures: int
    """Erased entries on their way there."""
    dense: str
    """``ready``, or why recall goes by keywords alone."""


class ReadStatus:
    """Reads the counts of every part."""

    def __init__(  # one port each
        self,
        *,
        vault: EntryVault,
        sparse: SparseIndex,
        indexes: VectorIndexes,
        projection: Projection,
        vectors: DocumentVectors,
        transactions: Transactions,
    ) -> None:
        self._vault = vault
        self._sparse = sparse
        self._indexes = indexes
        self._projection = projection
        self._vectors = vectors
        self._transactions = transactions

    def __call__(self) -> Status:
        """Return one consistent view; only an index kept elsewhere is asked after it."""
        with self._transactions.over_all_tenants():
            with self._transactions.snapshot():
                active = self._indexes.active()
                standing = self._projection.standing()
                found = Status(
                    entries=self._vault.count(),
                    events=standing.end,
                    versions_by_words=self._sparse.count(),
                    versions_by_vector=0 if active is None else self._count(active),
                    indexes=tuple(self._indexes.all()),
                    behind=standing.behind,
                    waiting_vectors=standing.waiting_vectors,
                    waiting_erasures=standing.waiting_erasures,
                    dense=self._dense(active),
                )
            if active is None or not active.follows:
                return found
            return self._asked(active, found)

    def _asked(self, active: VectorIndex, found: Status) -> Status:
        try:
            count = self._indexes.store(active).count()
        except (SettingsError, StoreError):
            return replace(found, dense="vector_index_unavailable")
        return replace(found, versions_by_vector=count)

    def _count(self, active: VectorIndex) -> int | None:
        return None if active.follows else self._indexes.store(active).count()

    def _dense(self, active: VectorIndex | None) -> str:
        if active is None:
            return "no_vector_index"
        if not self._vectors.can_embed_into(active.embedding_tuple):
            return "no_embedder_for_index"
        return "ready"
