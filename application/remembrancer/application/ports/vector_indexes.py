"""The vector indexes there are: one serves, others are being built beside it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from remembrancer.application.ports.vector_store import VectorStore
from remembrancer.domain.embedding_tuple import EmbeddingTuple


class IndexState(StrEnum):
    """Life of an index."""

    BUILDING = "building"
    ACTIVE = "active"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndex:
    """One index: a space, and how far it follows the log."""

    number: int
    """From 1, never used twice."""
    embedding_tuple: EmbeddingTuple
    state: IndexState
    position: int
    """While building: the log position up to which entries are in."""


class VectorIndexes(Protocol):
    """Which vector indexes exist; at most one is active, at most one is building."""

    def active(self) -> VectorIndex | None:
        """Return the index that answers, if there is one."""
        ...

    def all(self) -> list[VectorIndex]:
        """Return all indexes by number."""
        ...

    def begin(self, embedding_tuple: EmbeddingTuple) -> VectorIndex:
        """Return the building index of this tuple, made empty if there is none.

        A building index of another tuple is dropped.

        Raises:
            InvalidInputError: this store can't hold vectors of so many dimensions.
        """
        ...

    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        """Record how far a building index has come.

        Raises:
            InvalidInputError: it isn't building (any more).
            StoreUnavailableError: it was dropped meanwhile.
        """
        ...

    def activate(self, index: VectorIndex) -> VectorIndex:
        """Let a building index answer from now on; the one before is retired, in one step.

        An active one stays active.

        Raises:
            InvalidInputError: it is retired.
            StoreUnavailableError: it was dropped meanwhile.
        """
        ...

    def drop(self, index: VectorIndex) -> None:
        """Destroy an index that isn't active, vectors and all.  An unknown one is not an error.

        Raises:
            InvalidInputError: it is active.
        """
        ...

    def store(self, index: VectorIndex) -> VectorStore:
        """Return the vectors of an index.  The same object for the same index."""
        ...
