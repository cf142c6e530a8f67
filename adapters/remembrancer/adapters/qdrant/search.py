"""One question: candidates from Qdrant, true scores, and proof that no better one is missing.

Imported at the first question only, as it imports numpy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from remembrancer.adapters.qdrant.exact_sums import dots
from remembrancer.adapters.qdrant.requests import Conditions, Point, Wanted
from remembrancer.adapters.qdrant.rows import directions, rows_of
from remembrancer.adapters.qdrant.translation import is_refusal
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import norm

if TYPE_CHECKING:
    from array import array

FIRST_LIMIT_MAX = 4_096
"""Most points of a question's first request; more are asked for where so many are there."""
GROWTH = 4
FLOAT32_STEP = 2.0**-24
"""The most that rounding to float32 changes a number, relative to it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    vector: "array[float]" = field(repr=False)
    top_k: int
    conditions: Conditions = field(repr=False)


@dataclass(frozen=True, slots=True)
class Searched:
    """The collection that is asked, with a deadline."""

    nearest: Callable[[Wanted], Sequence[Point]]
    retrieved: Callable[[Sequence[EntryId]], Sequence[Point]]
    """With their numbers."""
    params: Callable[[int], Mapping[str, Any]]
    """How to search for so many."""
    is_exact: bool
    """Whether every answer is from a comparison with all."""
    error: float
    """See :func:`greatest_error`."""


def greatest_error(dimensions: int) -> float:
    """Return the most that Qdrant's score of two directions can be away from their true cosine.

    The sizes of their products add up to 1 at most.  So two roundings of each number change the
    sum by 2 steps of 2**-24; nine decimals over HTTP by fewer than 5 more in up to 65,536
    dimensions; and adding D products in float32, in any order, by D.  The hundredth is for steps
    upon steps, the rest for numbers below float32's smallest.
    """
    return 1.01 * (dimensions + 8) * FLOAT32_STEP + 1e-12


class Search:
    """Answers one question."""

    def __init__(self, searched: Searched, question: Question) -> None:
        self._searched = searched
        self._question = question
        self._length = norm(question.vector)
        self._direction = directions(rows_of([question.vector]), [self._length])
        self._true: dict[EntryId, VectorMatch] = {}

    def best(self) -> list[VectorMatch]:
        """Return the ``top_k`` best by (score, then id)."""
        top_k = self._question.top_k
        limit = min(top_k + 4 + top_k // 64, FIRST_LIMIT_MAX)
        rough = self._rough(limit)
        if len(rough) < min(top_k, limit) and not self._searched.is_exact:
            # The graph may have lost its way among what the filter leaves: look at all of that.
            rough = self._all_there_is(limit) or rough
        self._score(self._hopeful(rough))
        if len(rough) == limit and not self._is_settled(rough[-1].score):
            self._score_all_that_may_tie(limit)
        return self._sorted()[:top_k]

    def _all_there_is(self, limit: int) -> Sequence[Point]:
        """Compare with all; nothing where the server was told to refuse that."""
        try:
            return self._rough(limit, params={"exact": True})
        except Exception as error:
            if is_refusal(error):
                return []
            raise

    def _rough(
        self,
        limit: int,
        *,
        params: Mapping[str, Any] | None = None,
        with_numbers: bool = True,
        at_least: float | None = None,
    ) -> Sequence[Point]:
        return self._searched.nearest(
            Wanted(
                direction=self._direction,
                limit=limit,
                conditions=self._question.conditions,
                params=self._searched.params(limit) if params is None else params,
                with_numbers=with_numbers,
                at_least=at_least,
            )
        )

    def _hopeful(self, rough: Sequence[Point]) -> Sequence[Point]:
        """Leave out whose rough score is so low that the first ``top_k`` are surely better."""
        if len(rough) <= self._question.top_k:
            return rough
        least = self._least(rough)
        return [one for one in rough if one.score >= least]

    def _least(self, rough: Sequence[Point]) -> float:
        return rough[self._question.top_k - 1].score - 2 * self._searched.error

    def _is_settled(self, lowest: float) -> bool:
        """Say whether whatever scored below ``lowest`` is surely worse than the best found."""
        cut = self._cut()
        return cut is not None and lowest + self._searched.error < cut

    def _cut(self) -> float | None:
        """Return the ``top_k``-th true score, once there are so many."""
        top_k = self._question.top_k
        if len(self._true) < top_k:
            return None
        return sorted((match.score for match in self._true.values()), reverse=True)[top_k - 1]

    def _score_all_that_may_tie(self, limit: int) -> None:
        cut = self._cut()
        at_least = None if cut is None else cut - 2 * self._searched.error
        while True:
            limit *= GROWTH
            rough = self._rough(limit, with_numbers=False, at_least=at_least)
            if len(rough) < limit:
                break
            if len(rough) >= self._question.top_k:
                at_least = self._least(rough)
                if rough[-1].score < at_least:
                    break
        new = [one.id for one in self._hopeful(rough) if one.id not in self._true]
        self._score(self._searched.retrieved(new))

    def _score(self, found: Sequence[Point]) -> None:
        """Score by the domain's rule, :func:`remembrancer.domain.vector.cosine`."""
        if not found:
            return
        products = dots(rows_of([one.numbers for one in found]), self._question.vector)
        for one, product in zip(found, products, strict=True):
            score = product / (self._length * float.fromhex(one.norm))
            self._true[one.id] = VectorMatch(one.id, max(-1.0, min(1.0, score)), one.version)

    def _sorted(self) -> list[VectorMatch]:
        return sorted(self._true.values(), key=lambda match: (-match.score, match.id))
