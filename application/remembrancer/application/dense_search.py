"""The question as a vector, and what the index that answers has near it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from remembrancer.application.embedders import Embedders
from remembrancer.application.ports import (
    EventLog,
    Filter,
    SemanticQueryLookup,
    VectorIndex,
    VectorIndexes,
    VectorMatch,
)
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import (
    ImpossibleVectorError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
)
from remembrancer.domain.recall import CandidateSelection, RecallContext, RecallQuery
from remembrancer.domain.vector import Vector

BEHIND_MAX = 10_000
"""How many positions an index elsewhere may be behind the log and still be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseQuery:
    """The question as a vector, or why there is none."""

    vector: Vector | None = field(default=None, repr=False)
    index: VectorIndex | None = None
    reason: str = ""

    @property
    def embedding_tuple(self) -> EmbeddingTuple | None:
        """The space searched in, if any is."""
        return None if self.vector is None or self.index is None else self.index.embedding_tuple

    @property
    def goes_elsewhere(self) -> bool:
        """Whether another service is asked, outside of the store's snapshots."""
        return self.vector is not None and self.index is not None and self.index.follows


def words_of(query: RecallQuery) -> str:
    """Return all that a question says, subjects too."""
    return " ".join((query.question, *query.subjects)) if query.subjects else query.question


class DenseSearch:
    """Embeds questions, and asks the vectors' index; what it can't do it gives a reason for."""

    def __init__(
        self,
        *,
        indexes: VectorIndexes,
        embedders: Embedders,
        lookup: SemanticQueryLookup | None = None,
        log: EventLog | None = None,
    ) -> None:
        """Take the parts; without a ``log`` no index elsewhere is found to be behind."""
        self._indexes = indexes
        self._embedders = embedders
        self._lookup = lookup
        self._log = log

    def asked(self, query: RecallQuery, context: RecallContext) -> DenseQuery:
        """Return the question as a vector of the space of the index that answers."""
        if query.candidate_selection is CandidateSelection.LEGACY:
            return DenseQuery(reason="legacy_candidate_selection")
        index = self._indexes.active()
        if index is None:
            return DenseQuery(reason="no_vector_index")
        if self._is_behind(index):
            return DenseQuery(reason="vector_index_behind")
        embedder = self._embedders.of(index.embedding_tuple)
        if embedder is not None:
            vector = embedder.embed_query(words_of(query))
            return DenseQuery(vector=vector, index=index, reason="no_usable_vector")
        return self._prepared(query, context, index)

    def _prepared(
        self, query: RecallQuery, context: RecallContext, index: VectorIndex
    ) -> DenseQuery:
        lookup = self._lookup
        if lookup is None:
            return DenseQuery(reason="no_embedder_for_index")
        if lookup.embedding_tuple != index.embedding_tuple:
            return DenseQuery(reason="embedding_tuple_mismatch")
        return DenseQuery(
            vector=lookup.lookup(query, context), index=index, reason="query_not_prepared"
        )

    def is_current(self, dense: DenseQuery) -> bool:
        """Say whether the index that the question was embedded for still answers."""
        if dense.index is None:
            return True
        active = self._indexes.active()
        # By number: an index that follows the log gets on meanwhile.
        return active is not None and active.number == dense.index.number

    def matches(
        self, dense: DenseQuery, depth: int, filters: Sequence[Filter]
    ) -> tuple[list[list[VectorMatch]], DenseQuery]:
        """Return what is near, for each filter; nothing, and why, where nothing can be had."""
        if dense.vector is None or dense.index is None:
            return [], dense
        try:
            store = self._indexes.store(dense.index)
            return [store.query(dense.vector, depth, one) for one in filters], dense
        except ImpossibleVectorError:
            return [], DenseQuery(reason="impossible_query_vector")
        except StoreUnavailableError:
            # The words' index answers from the store itself; the vectors' may be elsewhere.
            return [], DenseQuery(reason="vector_index_unavailable")
        except (SettingsError, StoreError):
            if not dense.index.follows:
                raise
            return [], DenseQuery(reason="vector_index_unusable")

    def _is_behind(self, index: VectorIndex) -> bool:
        if self._log is None or not index.follows:
            return False
        behind = self._log.position() - index.position
        return behind > (BEHIND_MAX if index.position else 0)
