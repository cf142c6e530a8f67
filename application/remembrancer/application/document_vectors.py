"""Vectors of documents: from an in-process model, or bought from a provider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from remembrancer.application.embedders import Embedders
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.sensitivity import Sensitivity
from remembrancer.domain.vector import Vector


class Document(Protocol):
    """A text to embed, and the labels that decide whether and at whose cost it may leave.

    New entries and originals are such as they stand.
    """

    @property
    def tenant(self) -> str: ...  # noqa: D102  # said above
    @property
    def owner(self) -> str: ...  # noqa: D102  # said above
    @property
    def sensitivity(self) -> Sensitivity: ...  # noqa: D102  # said above
    @property
    def text(self) -> str: ...  # noqa: D102  # said above


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """A document under another sensitivity than its own."""

    tenant: str
    owner: str
    sensitivity: Sensitivity
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """What came of documents, in their order."""

    vectors: list[Vector | None] = field(repr=False)
    unanswered: Mapping[int, str] = field(default_factory=dict)
    """Places of those that were to be bought and weren't, and the code why: no room in the
    budget, a provider that is away.  Asked again later, they may get a vector; a text that says
    nothing or may not leave never will."""

    @property
    def nobody_answered(self) -> bool:
        """True where asking on would bring nothing now."""
        return bool(self.unanswered) and not any(one is not None for one in self.vectors)


class RemoteDocuments(Protocol):
    """Buys vectors; :class:`~remembrancer.application.remote_indexing.RemoteIndexing` does."""

    @property
    def embedding_tuple(self) -> EmbeddingTuple:
        """The space of what it buys."""
        ...

    def embedded(self, documents: Sequence[Document]) -> Embedded:
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
        """Say whether anybody here makes vectors of ``space``, or buys them."""
        bought = self._remote is not None and self._remote.embedding_tuple == space
        return bought or self.can_embed_here(space)

    def can_embed_here(self, space: EmbeddingTuple) -> bool:
        """Say whether an in-process model makes vectors of ``space``."""
        return self._embedders.of(space) is not None

    def embedded(self, documents: Sequence[Document], space: EmbeddingTuple | None) -> Embedded:
        """Return a vector in ``space`` for each document; None where there is none to be had.

        Called outside transactions: a provider may be asked.
        """
        embedder = None if space is None else self._embedders.of(space)
        if embedder is not None:
            texts = [one.text for one in documents]
            return Embedded(vectors=embedder.embed_documents(texts))
        remote = self._remote
        if remote is not None and remote.embedding_tuple == space:
            return remote.embedded(documents)
        return Embedded(vectors=[None] * len(documents))
