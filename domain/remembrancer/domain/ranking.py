"""Ranking: the tie rule, and reciprocal rank fusion.

Every list is ordered by (score descending, entry id ascending), also at the cut-off, so that
equal scores come out the same in every adapter and on every machine (design 4.1).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remembrancer.domain.identity import EntryId
from remembrancer.domain.recall import Ranks

RRF_K = 60
"""Constant of reciprocal rank fusion (design 4.1)."""


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry and its score, higher is better."""

    id: EntryId
    score: float


@dataclass(frozen=True, slots=True)
class Fused:
    """An entry in the fused order, and where it stood before."""

    id: EntryId
    score: float
    ranks: Ranks


def best_first(scored: Iterable[Scored]) -> list[Scored]:
    """Order by (score, then entry id)."""
    return sorted(scored, key=lambda one: (-one.score, one.id.int))


def fuse(dense: Sequence[Scored], sparse: Sequence[Scored]) -> list[Fused]:
    """Fuse two lists, each best first and without repetition, by reciprocal rank.

    A list contributes ``1 / (RRF_K + rank)``, ranks from 1.
    """
    by_dense = {one.id: (rank, one.score) for rank, one in enumerate(dense, start=1)}
    by_sparse = {one.id: (rank, one.score) for rank, one in enumerate(sparse, start=1)}
    fused = []
    for entry_id in by_dense.keys() | by_sparse.keys():
        dense_rank, dense_score = by_dense.get(entry_id, (None, None))
        sparse_rank, sparse_score = by_sparse.get(entry_id, (None, None))
        score = sum(1.0 / (RRF_K + rank) for rank in (dense_rank, sparse_rank) if rank)
        ranks = Ranks(
            dense_rank=dense_rank,
            dense_score=dense_score,
            sparse_rank=sparse_rank,
            sparse_score=sparse_score,
        )
        fused.append(Fused(entry_id, score, ranks))
    return sorted(fused, key=lambda one: (-one.score, one.id.int))
