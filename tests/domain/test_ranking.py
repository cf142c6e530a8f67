import math
from itertools import combinations, pairwise
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.identity import EntryId
from remembrancer.domain.ranking import RRF_K, Fused, Scored, best_first, fuse

entry_ids = st.integers(0, 7).map(lambda number: EntryId(UUID(int=number)))
scores = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0])  # few, so that ties are common
lists = st.dictionaries(entry_ids, scores).map(
    lambda found: best_first(Scored(id_, score) for id_, score in found.items())
)


def _id(number: int) -> EntryId:
    return EntryId(UUID(int=number))


@given(lists, st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_show(ranked: list[Scored], random: Random) -> None:
    shuffled = random.sample(ranked, len(ranked))

    assert best_first(shuffled) == ranked


@given(lists)
def test_better_comes_first_and_ties_by_entry_id(ranked: list[Scored]) -> None:
    for one, other in pairwise(ranked):
        assert one.score > other.score or (one.score == other.score and one.id.int < other.id.int)


@given(lists, lists)
def test_fused_list_holds_what_either_held_once(dense: list[Scored], sparse: list[Scored]) -> None:
    fused = fuse(dense, sparse)

    assert sorted(one.id for one in fused) == sorted({one.id for one in dense + sparse})


@given(lists, lists)
def test_score_is_the_sum_of_reciprocal_ranks(dense: list[Scored], sparse: list[Scored]) -> None:
    places = [
        {one.id: rank for rank, one in enumerate(ranked, start=1)} for ranked in (dense, sparse)
    ]

    for one in fuse(dense, sparse):
        parts = [1 / (60 + place[one.id]) for place in places if one.id in place]
        assert one.score == sum(parts)
        assert (one.ranks.dense_rank, one.ranks.sparse_rank) == tuple(
            place.get(one.id) for place in places
        )


@given(lists, lists)
def test_scores_of_the_lists_are_kept_as_they_were(
    dense: list[Scored], sparse: list[Scored]
) -> None:
    by_dense, by_sparse = ({one.id: one.score for one in ranked} for ranked in (dense, sparse))

    for one in fuse(dense, sparse):
        assert one.ranks.dense_score == by_dense.get(one.id)
        assert one.ranks.sparse_score == by_sparse.get(one.id)


@given(lists, lists)
def test_fused_order_is_total(dense: list[Scored], sparse: list[Scored]) -> None:
    fused = fuse(dense, sparse)

    assert fused == sorted(fused, key=lambda one: (-one.score, one.id))


@given(lists, lists)
def test_neither_list_weighs_more(dense: list[Scored], sparse: list[Scored]) -> None:
    turned = [(one.id, one.score) for one in fuse(sparse, dense)]

    assert turned == [(one.id, one.score) for one in fuse(dense, sparse)]


@given(lists, lists)
def test_better_in_both_lists_is_better_in_the_fused(
    dense: list[Scored], sparse: list[Scored]
) -> None:
    fused = fuse(dense, sparse)

    for one, other in combinations(fused, 2):
        assert not _worse_everywhere(one, other)


def _worse_everywhere(one: Fused, other: Fused) -> bool:
    ranks = (
        (one.ranks.dense_rank or math.inf, other.ranks.dense_rank or math.inf),
        (one.ranks.sparse_rank or math.inf, other.ranks.sparse_rank or math.inf),
    )
    return all(ours > theirs for ours, theirs in ranks)


@given(lists)
def test_fusing_with_nothing_keeps_the_order(ranked: list[Scored]) -> None:
    assert [one.id for one in fuse(ranked, [])] == [one.id for one in ranked]
    assert [one.id for one in fuse([], ranked)] == [one.id for one in ranked]


def test_mirrored_ranks_are_a_tie_and_the_smaller_id_wins() -> None:
    dense = [Scored(_id(2), 0.9), Scored(_id(1), 0.8)]
    sparse = [Scored(_id(1), 7.0), Scored(_id(2), 6.0)]

    fused = fuse(dense, sparse)

    assert [one.id for one in fused] == [_id(1), _id(2)]
    assert fused[0].score == fused[1].score == 1 / 61 + 1 / 62


def test_constant_is_the_designs() -> None:
    assert RRF_K == 60
