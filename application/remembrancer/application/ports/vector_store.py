"""Finding entries by meaning: the port of the L3 decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from typing_extensions import override

from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector

Filter = Mapping[str, str | tuple[str, ...]]
"""A conjunction over metadata; each value is one string or a tuple of strings (any of).

A document without the key doesn't match.  An empty tuple matches nothing; an empty filter all.
"""


class VectorPoint(NamedTuple):
    """A vector to be found, under an index id.  ``repr`` shows nothing private."""

    id: EntryId
    vector: Vector
    metadata: Mapping[str, str]
    version: int | None = None
    """Of the entry; a store that follows the log from afar gives it back with a match."""

    @override
    def __repr__(self) -> str:
        return f"VectorPoint(id={self.id!r}, version={self.version!r})"


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """A found id and its score, higher is better."""

    id: EntryId
    score: float
    version: int | None = None
    """Of the entry whose vector this is; None where the index is in step by construction."""


@dataclass(frozen=True, slots=True)
class KeptVector:
    """A stored vector and the entry's version that it belongs to, where the store knows it."""

    vector: Vector = field(repr=False)
    version: int | None = None


class VectorStore(Protocol):
    """Nearest-neighbour search over the vectors of one embedding tuple.

    Exact, unless the adapter was set to be approximate: then some of the nearest may be missing,
    and what comes back is ordered and scored as ever.  Calls block.  A committed write, also of
    another process, is seen by the next query.  Scores are those of
    :func:`remembrancer.domain.vector.cosine`, to the last bit.

    Raises:
        StoreUnavailableError: from every method, once the index was dropped, or while what keeps
            it is away.
    """

    def upsert(self, id: EntryId, vector: Vector, metadata: Mapping[str, str]) -> None:  # noqa: A002  # the design's word
        """Store a vector, replacing the one of the same id and its metadata.

        Raises:
            ImpossibleVectorError: wrong dimension, NaN, infinite or zero; nothing was changed.
        """
        ...

    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        """Store vectors, all or none; the last of a repeated id stands.

        Raises:
            ImpossibleVectorError: as :meth:`upsert`.
        """
        ...

    def query(
        self,
        vector: Vector,
        top_k: int,
        filter: Filter | None = None,  # noqa: A002  # the design's word
    ) -> list[VectorMatch]:
        """Return the best ``top_k`` (1 or more) by (score, then id), also at the cut-off.

        The filter is applied first: where ``top_k`` matches exist, ``top_k`` come back.

        Raises:
            ImpossibleVectorError: as :meth:`upsert`.
            InvalidInputError: ``top_k`` is below 1.
        """
        ...

    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        """Return the stored float32 vectors of those ids that are here."""
        ...

    def kept(self, ids: Sequence[EntryId]) -> dict[EntryId, KeptVector]:
        """Return the stored vectors of those ids that are here, with their versions."""
        return {id_: KeptVector(vector) for id_, vector in self.vectors(ids).items()}

    def present(self, ids: Sequence[EntryId]) -> set[EntryId]:
        """Return those of ``ids`` that have a vector here."""
        return set(self.vectors(ids))

    def delete(self, id: EntryId) -> None:  # noqa: A002  # the design's word
        """Drop a vector and overwrite its bytes.  An unknown id is not an error."""
        ...

    def delete_many(self, ids: Sequence[EntryId]) -> None:
        """Drop vectors as :meth:`delete` does."""
        for id_ in ids:
            self.delete(id_)

    def clear(self) -> None:
        """Drop all vectors."""
        ...

    def count(self) -> int:
        """Return how many vectors are stored."""
        ...
