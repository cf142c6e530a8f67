"""Use case: how the memory stands."""

from dataclasses import dataclass

from remembrancer.application.document_vectors import DocumentVectors
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    SparseIndex,
    Transactions,
    VectorIndex,
    VectorIndexes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Counts over all tenants; nothing private."""

    entries: int
    events: int
    """Position of the last event in the log."""
    versions_by_words: int
    """Versions (current and superseded) in the sparse index."""
    versions_by_vector: int
    """Versions in the vector index that answers."""
    indexes: tuple[VectorIndex, ...]
    dense: str
    """``ready``, or why recall goes by keywords alone."""


class ReadStatus:
    """Reads the counts of every part."""

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

    def __call__(self) -> Status:
        """Return one consistent view."""
        with self._transactions.over_all_tenants(), self._transactions.snapshot():
            active = self._indexes.active()
            return Status(
                entries=self._vault.count(),
                events=self._log.position(),
                versions_by_words=self._sparse.count(),
                versions_by_vector=0 if active is None else self._indexes.store(active).count(),
                indexes=tuple(self._indexes.all()),
                dense=self._dense(active),
            )

    def _dense(self, active: VectorIndex | None) -> str:
        if active is None:
            return "no_vector_index"
        if not self._vectors.can_embed_into(active.embedding_tuple):
            return "no_embedder_for_index"
        return "ready"
