"""The vector indexes there are: one serves, others are being built beside it."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from remembrancer.application.ports.vector_store import VectorStore
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import IndexElsewhereError, InvalidInputError

LOCAL = "local"
"""The place of an index whose vectors the store keeps itself, in step with the entries."""


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
    """The log position up to which entries are in: while building, and for as long as it lives
    where it is kept elsewhere."""
    place: str = LOCAL
    """Where its vectors are kept: in the store itself, or with another service, by its name."""

    @property
    def follows(self) -> bool:
        """Whether it follows the log from elsewhere, instead of being written with the entries."""
        return self.place != LOCAL

    def require_may_advance(self) -> None:
        """See that it is building, or answers and follows from elsewhere.

        Raises:
            InvalidInputError: it is neither (any more).
        """
        if self.state is not IndexState.ACTIVE or not self.follows:
            self.require_building()

    def require_building(self) -> None:
        """See that it is building.

        Raises:
            InvalidInputError: it isn't (any more).
        """
        if self.state is not IndexState.BUILDING:
            raise InvalidInputError(field="index", problem=f"is {self.state}, not building")

    def require_may_go(self) -> None:
        """See that it doesn't answer.

        Raises:
            InvalidInputError: it does, and can't be dropped.
        """
        if self.state is IndexState.ACTIVE:
            raise InvalidInputError(field="index", problem="is active and can't be dropped")


class VectorIndexes(Protocol):
    """Which vector indexes exist; at most one is active, at most one is building."""

    def active(self) -> VectorIndex | None:
        """Return the index that answers, if there is one."""
        ...

    def all(self) -> list[VectorIndex]:
        """Return all indexes by number."""
        ...

    def begin(self, embedding_tuple: EmbeddingTuple, place: str | None = None) -> VectorIndex:
        """Return the building index of this tuple and place, made empty if there is none.

        A building index of another tuple or place is dropped; one that is kept elsewhere is
        retired, since its vectors have to go before it does (see :meth:`sweep`).  Without a
        place it is the one that the registry was set up with, the store itself unless told
        otherwise.

        Raises:
            InvalidInputError: this store can't hold vectors of so many dimensions.
        """
        ...

    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        """Record how far an index has come that is building, or follows from elsewhere.

        Raises:
            InvalidInputError: it is neither (any more).
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
        """Return the vectors of an index.  The same object for the same index.

        Raises:
            StoreUnavailableError: they are kept elsewhere, by what isn't set up here.
        """
        ...

    def prepare(self, index: VectorIndex) -> None:
        """See that an index that is kept elsewhere has room there; called outside transactions.

        For one at position 0 it is made, and what an earlier run left there is thrown away.

        Raises:
            StoreUnavailableError: that place is away.
            StoreCorruptError: what lies there is of another space, or another memory's; or it is
                gone although the index has followed the log already.
        """
        require_kept_here(index)

    def holds(self, index: VectorIndex) -> bool:
        """Say whether an index that is kept elsewhere has room there; called outside transactions.

        One at position 0 may: whoever carried to it may have ended before that was recorded.

        Raises:
            StoreUnavailableError: that place is away.
        """
        require_kept_here(index)
        return True

    def sweep(self, dropping: Collection[VectorIndex] = ()) -> None:
        """Destroy what dropped indexes left elsewhere; called outside transactions.

        Args:
            dropping: indexes that will be dropped next.  Of those that are kept elsewhere the
                vectors go first: what isn't in the registry any more no erasure would reach.

        Raises:
            StoreUnavailableError: that place is away, or one of ``dropping`` is kept where
                nothing is set up here; it is done by the next call.
        """
        for one in dropping:
            require_kept_here(one)


def require_kept_here(index: VectorIndex) -> None:
    """Refuse an index whose vectors the store doesn't keep.

    Raises:
        IndexElsewhereError: they are kept elsewhere.
    """
    if index.follows:
        raise IndexElsewhereError(number=index.number, place=index.place)
