"""Vectors of documents: from an in-process model, or bought from a provider."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from remembrancer.application.embedders import Embedders
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.sensitivity import Sensitivity
from remembrancer.domain.vector import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """A text to embed, and the labels that decide whether and at whose cost it may leave."""

    tenant: str
    owner: str
    sensitivity: Sensitivity
    text: str = field(repr=False)


class RemoteDocuments(Protocol):
    """Buys vectors; :class:`~remembrancer.application.remote_indexing.RemoteIndexing` does."""

    @property
    def embedding_tuple(self) -> EmbeddingTuple:
        """The space of what it buys."""
        ...

    def vectors(self, documents: Sequence[DocumentText]) -> list[Vector | None]:
        """Return a vector for each document; None where it may not leave or wasn't answered."""
        ...


class DocumentVectors:
    """Finds who can embed into a space, and asks them."""

    def __init__(self, *, embedders: Embedders, remote: RemoteDocuments | None = None) -> None:
        self._embedders = embedders
        self._remote = remote

    @property
    def preferred_space(self) -> EmbeddingTuple | None:
        """The space of a store that has no index yet."""
        if self._remote is not None:
            return self._remote.embedding_tuple
        preferred = self._embedders.preferred
        return None if preferred is None else preferred.embedding_tuple

    def can_embed_into(self, space: EmbeddingTuple) -> bool:
        """Say whether anybody here makes vectors of ``space``."""
        bought = self._remote is not None and self._remote.embedding_tuple == space
        return bought or self._embedders.of(space) is not None

    def vectors(
        self, documents: Sequence[DocumentText], space: EmbeddingTuple | None
    ) -> list[Vector | None]:
        """Return a vector in ``space`` for each document; None where there is none to be had.

        Called outside transactions: a provider may be asked.
        """
        embedder = None if space is None else self._embedders.of(space)
        if embedder is not None:
            return embedder.embed_documents([one.text for one in documents])
        remote = self._remote
        if remote is not None and remote.embedding_tuple == space:
            return remote.vectors(documents)
        return [None] * len(documents)
