"""What still has to reach vector indexes that are kept elsewhere.

An entry's transaction leaves its vectors here, computed or bought as they are, and its erasure: a
projection carries both over and then takes them out (adr/0020).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from remembrancer.application.ports.vector_indexes import VectorIndex
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxVector:
    """The vector of one version of one entry, on its way to one index."""

    tenant: str
    owner: str
    entry_id: EntryId
    version: int
    vector: Vector | None = field(repr=False)
    """None where the text has none: whatever stood in its place has to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxErasure:
    """An entry that has to go from one index, and how many versions it had."""

    tenant: str
    owner: str
    entry_id: EntryId
    versions: int


class VectorOutbox(Protocol):
    """Vectors and erasures by index, until they have arrived there.

    Its writes join the open transaction, and are durable with it.
    """

    def put(self, index: VectorIndex, vectors: Sequence[OutboxVector]) -> None:
        """Leave vectors for an index; one of the same entry and version is replaced.

        Raises:
            ImpossibleVectorError: wrong dimension, NaN, infinite or zero; nothing was changed.
        """
        ...

    def vectors(
        self, index: VectorIndex, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], OutboxVector]:
        """Return those of these entries' versions that are on their way to the index."""
        ...

    def remove(self, index: VectorIndex, arrived: Sequence[OutboxVector]) -> None:
        """Take out vectors that have arrived; their bytes are overwritten."""
        ...

    def erase(self, indexes: Sequence[VectorIndex], erasure: OutboxErasure) -> None:
        """Destroy an entry's vectors here, bytes and all, and note that it has to go there."""
        ...

    def erasures(self, index: VectorIndex, *, limit: int) -> list[OutboxErasure]:
        """Return up to ``limit`` erasures that haven't reached the index, the oldest first."""
        ...

    def erased(self, index: VectorIndex, arrived: Sequence[OutboxErasure]) -> None:
        """Take out erasures that have reached the index."""
        ...

    def count(self, index: VectorIndex) -> tuple[int, int]:
        """Return how many vectors and how many erasures are on their way to the index."""
        ...

    def forget(self, index: VectorIndex) -> None:
        """Take out all that was on its way to an index that is dropped."""
        ...

    def claim(self, index: VectorIndex, holder: str, *, lease_s: float) -> bool:
        """Become, or stay, the only one that carries to this index, for ``lease_s`` seconds.

        Returns:
            False while another's lease lasts.
        """
        ...

    def release(self, index: VectorIndex, holder: str) -> None:
        """Let another carry to this index at once.  Without a lease nothing happens."""
        ...
