"""Prepared query vectors, looked up."""

from typing import Protocol

from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.vector import Vector


class SemanticQueryLookup(Protocol):
    """Local and free: no request, no task, no reservation, no I/O (seed BSQ).

    Absent until a configuration is admitted; a miss leaves sparse recall as it is.
    """

    @property
    def embedding_tuple(self) -> EmbeddingTuple:
        """The space of the prepared vectors."""
        ...

    def lookup(self, query: RecallQuery, context: RecallContext) -> Vector | None:
        """Return the vector prepared for exactly this query and context, or None."""
        ...
