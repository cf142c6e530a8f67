"""One line of the table that ``make bench`` prints, and how its figures are taken."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured.

    Judged is ``ours / baseline`` where there is a baseline, else ``ours`` itself.  Without a
    bound a row only informs.
    """

    what: str
    ours: float
    baseline: float | None = None
    against: str = ""
    """What the baseline is."""
    unit: str = "s"
    """Of both figures: ``s``, ``B``, ``/s`` or nothing."""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def judged(self) -> float:
        """The figure that the bound is for."""
        return self.ours if self.baseline is None else self.ours / self.baseline

    @property
    def kept(self) -> bool:
        """Whether the bound, if there is one, is kept."""
        too_high = self.at_most is not None and self.judged > self.at_most
        too_low = self.at_least is not None and self.judged < self.at_least
        return not (too_high or too_low)


def seconds(work: Work) -> float:
    """Return how long ``work`` takes, once."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def interleaved(works: Sequence[Work], *, rounds: int, turn: int = 1) -> list[float]:
    """Return the median time of each work; one after the other in every round.

    So a machine that is busy for a while slows all of them, and their ratios stand.  Every second
    round goes the other way, so that none always comes behind the same one.  A ``turn`` is how
    often a work runs before the next one: more than once where one leaves something running that
    would be counted against its neighbour.
    """
    taken: list[list[float]] = [[] for _ in works]
    places = range(len(works))
    for number in range(rounds):
        for place in places if number % 2 else reversed(places):
            taken[place] += [seconds(works[place]) for _ in range(turn)]
    return [statistics.median(one) for one in taken]
