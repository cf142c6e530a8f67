"""A service outside the store where vector indexes can be kept."""

from collections.abc import Collection
from typing import Protocol

from remembrancer.application.ports.vector_indexes import VectorIndex
from remembrancer.application.ports.vector_store import VectorStore


class VectorPlace(Protocol):
    """Keeps the vectors of indexes; which there are, and which answers, the store says.

    Nothing is asked of the service before a method here or of a store needs it: it may be away.
    Its writes never belong to a transaction of the store, so they are called outside of them.

    Raises:
        StoreUnavailableError: from every method but :meth:`store`: it doesn't answer in time.
    """

    def make(self, index: VectorIndex) -> None:
        """Make room for an index that is at position 0, and see that another's is there.

        What an earlier run left for one at position 0 is thrown away.

        Raises:
            StoreCorruptError: what lies there is of another space, or another memory's; or the
                room of an index that has followed the log already is gone.
        """
        ...

    def holds(self, index: VectorIndex) -> bool:
        """Say whether room was made for an index, and not destroyed since."""
        ...

    def store(self, index: VectorIndex) -> VectorStore:
        """Return the vectors of an index.  The same object for the same index."""
        ...

    def sweep(self, numbers: Collection[int]) -> None:
        """Destroy this memory's indexes that aren't of these numbers, vectors and all."""
        ...
