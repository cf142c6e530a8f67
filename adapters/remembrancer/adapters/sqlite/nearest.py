"""The exact nearest rows of a view, in three rounds that each keep all that may still win.

1. Codes against codes, every row: keep what can reach the k-th best lower bound.
2. The kept codes against the query as it is: the same with a closer bound.
3. The float32 rows themselves: the k most promising first, then those that can still reach the
   k-th best of them.  What is left, some k rows, gets its exact score.

Why nothing is lost: at least k rows have a true score of at least the k-th best lower bound, so
the k-th best true score is at least that; a row whose upper bound is below it is not among the
best k and doesn't tie with them (adr/0007 has the whole argument).

Imported at the first query only, as it imports numpy.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.code_scan import CodeScan
from remembrancer.adapters.sqlite.exact_cosines import ExactQuery
from remembrancer.adapters.sqlite.int8_codes import SLACK, CodedQuery, Codes, Floats, coded_query
from remembrancer.adapters.sqlite.resident_rows import ResidentRows
from remembrancer.adapters.sqlite.vector_chunks import floats
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId

Positions = npt.NDArray[np.int64]
Vectors = Callable[[list[int]], list[bytes]]
"""Reads float32 rows by their numbers, in order."""

CROWD_ROWS = 1024
"""More than this after a bound with the largest residual, and each row's own is tried."""
BATCH_ROWS = 1024
"""Rows widened to floats at a time."""
_GROUPS_MIN = 64


@dataclass(frozen=True, slots=True)
class View:
    """The rows a query is about: those at ``selected``, except the ``hidden`` ones."""

    rows: ResidentRows
    selected: slice | Positions
    hidden: Positions
    """Positions; empty unless ``selected`` is a slice from 0."""
    widest: float
    """No residual of these rows is larger."""


def nearest(
    scan: CodeScan, view: View, vectors: Vectors, query: npt.NDArray[np.float32], top_k: int
) -> list[VectorMatch]:
    """Return the best ``top_k`` of the view by (score, then key)."""
    coded = coded_query(query)
    best = _Best(view.rows, vectors, coded)
    if _size(view) <= top_k:
        best.read(_all(view))
    else:
        found = _by_codes(scan, view, coded, top_k)
        found, upper = _by_query(view.rows, found, coded, top_k)
        best.read(found[:top_k])
        best.read(found[top_k:][upper[top_k:] >= best.kth_score(top_k)])
    return best.matches(ExactQuery(query), top_k)


class _Best:
    """Rows whose float32 vectors were read."""

    def __init__(self, rows: ResidentRows, vectors: Vectors, query: CodedQuery) -> None:
        self._rows = rows
        self._vectors = vectors
        self._unit = query.unit
        self._positions: list[int] = []
        self._read: list[bytes] = []
        self._near: list[float] = []

    def read(self, positions: Positions) -> None:
        """Read these rows, and score them in float64, which is off by less than SLACK."""
        for batch in _batches(positions):
            read = self._vectors(self._rows.ids[batch].tolist())
            if len(read) != len(batch) or not all(read):
                raise StoreCorruptError(store="vector index", problem="a vector is missing")
            with np.errstate(divide="ignore", invalid="ignore"):
                wide = floats(read).astype(np.float64)
                lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
                near = (wide @ self._unit) / lengths
            if not np.isfinite(near).all():
                raise StoreCorruptError(store="vector index", problem="a vector is damaged")
            self._near += near.tolist()
            self._read += read
            self._positions += batch.tolist()

    def kth_score(self, k: int) -> float:
        """Return the k-th best score so far, less what float64 may be off."""
        near = np.array(self._near)
        return float(np.partition(near, len(near) - k)[len(near) - k]) - SLACK

    def matches(self, query: ExactQuery, top_k: int) -> list[VectorMatch]:
        """Score exactly what may be among the best, and return those."""
        least = self.kth_score(min(top_k, len(self._near))) - SLACK if self._near else 0.0
        last = np.flatnonzero(np.array(self._near) >= least)
        scored: list[tuple[float, bytes]] = []
        for batch in _batches(last):
            scores = query.cosines(floats([self._read[at] for at in batch]))
            keys = self._rows.keys[[self._positions[at] for at in batch]]
            scored += ((-score, key.tobytes()) for score, key in zip(scores, keys, strict=True))
        scored.sort()
        return [VectorMatch(EntryId(UUID(bytes=key)), -negated) for negated, key in scored[:top_k]]


def _batches(positions: Positions) -> Iterator[Positions]:
    for start in range(0, len(positions), BATCH_ROWS):
        yield positions[start : start + BATCH_ROWS]


def _size(view: View) -> int:
    selected = view.selected
    size = selected.stop - selected.start if isinstance(selected, slice) else len(selected)
    return size - len(view.hidden)


def _all(view: View) -> Positions:
    if not isinstance(view.selected, slice):
        return view.selected
    return np.setdiff1d(np.arange(view.selected.start, view.selected.stop), view.hidden)


def _by_codes(scan: CodeScan, view: View, query: CodedQuery, top_k: int) -> Positions:
    """Return the positions that may be among the best, from codes alone; at least ``top_k``."""
    rows, selected = view.rows, view.selected
    near = scan.dots(query.codes, _codes(rows, selected))
    near *= rows.scales[selected]
    near *= query.step
    near[view.hidden] = -np.inf
    residuals = rows.residuals[selected]
    widest = view.widest
    within = 2 * (widest + (1 + widest) * query.error + SLACK)
    found = np.flatnonzero(near >= _kth_or_less(near, top_k) - within)
    if len(found) > max(CROWD_ROWS, 4 * top_k):
        bounds = residuals[found] * (1 + query.error) + query.error + SLACK
        kept = near[found]
        found = found[kept + bounds >= _kth_or_less(kept - bounds, top_k)]
    found = found[near[found] > -np.inf]
    return found + selected.start if isinstance(selected, slice) else selected[found]


def _codes(rows: ResidentRows, selected: slice | Positions) -> Codes:
    return rows.codes[selected] if isinstance(selected, slice) else rows.codes.take(selected, 0)


def _by_query(
    rows: ResidentRows, found: Positions, query: CodedQuery, top_k: int
) -> tuple[Positions, Floats]:
    """Return the positions that still may, most promising first, and their upper bounds."""
    near = np.empty(len(found))
    for start in range(0, len(found), BATCH_ROWS):
        batch = slice(start, start + BATCH_ROWS)
        near[batch] = rows.codes[found[batch]].astype(np.float64) @ query.unit
    near *= rows.scales[found]
    bounds = rows.residuals[found] + SLACK
    kth = np.partition(near - bounds, len(near) - top_k)[len(near) - top_k]
    kept = np.flatnonzero(near + bounds >= kth)
    kept = kept[np.argsort(-near[kept], kind="stable")]
    return found[kept], (near + bounds)[kept]


def _kth_or_less(values: Floats, k: int) -> float:
    """Return a number that at least ``k`` of the values reach: the k-th largest, or below it.

    The largest of each of many groups are enough for that, and are found much faster.
    """
    groups = max(_GROUPS_MIN, 64 * k)
    if len(values) >= 4 * groups:
        whole = len(values) // groups * groups
        values = values[:whole].reshape(-1, groups).max(axis=0)
    return float(np.partition(values, len(values) - k)[len(values) - k])
