"""The exact nearest rows of a view, in three rounds that each keep all that may still win.

1. Codes against codes, every row: keep what can reach the k-th best lower bound.
2. The kept codes against the query as it is: a closer estimate, with a closer bound.
3. The float32 rows themselves: what can reach the k-th best estimate, then what else can reach
   the k-th best score of those.  What is left, some k rows, gets its exact score.

Why nothing is lost: at least k rows have a true score of at least the k-th best lower bound, so
the k-th best true score is at least that; a row whose upper bound is below it is not among the
best k and doesn't tie with them (adr/0007 has the whole argument).

Imported at the first query only, as it imports numpy.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.code_scan import CodeScan
from remembrancer.adapters.sqlite.exact_cosines import cosines
from remembrancer.adapters.sqlite.int8_codes import (
    SLACK,
    CodedQuery,
    Codes,
    Floats,
    Singles,
    coded_query,
)
from remembrancer.adapters.sqlite.resident_rows import KEY_BYTES, ResidentRows
from remembrancer.adapters.sqlite.vector_chunks import KeptVectors
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import entry_ids

Positions = npt.NDArray[np.int64]

CROWD_ROWS = 1024
"""More than this after a bound with the largest residual, and each row's own is tried."""
BATCH_ROWS = 1024
"""Rows widened to floats at a time."""
EXACT_ROWS = 64
"""Rows scored exactly at a time, so that their layers stay in the processor's cache."""
SCAN_SLACK = 1e-6
"""More than four roundings to float32 add up to, of numbers of at most 1."""
_GROUPS_MIN = 64
_KEY_DIGITS = 2 * KEY_BYTES


@dataclass(frozen=True, slots=True)
class View:
    """The rows a query is about: those at ``selected``, except the ``hidden`` ones."""

    rows: ResidentRows
    selected: slice | Positions
    hidden: Positions
    """Positions; empty unless ``selected`` is a slice from 0."""
    widest: float
    """No residual of these rows is larger."""


class _Promising(NamedTuple):
    """Rows, the most promising first, with estimates of their scores and how far off those are."""

    positions: Positions
    near: Floats
    bounds: Floats

    def some(self, which: slice | npt.NDArray[np.bool_]) -> "_Promising":
        return _Promising(self.positions[which], self.near[which], self.bounds[which])


def nearest(
    scan: CodeScan, view: View, vectors: KeptVectors, query: Singles, top_k: int
) -> list[VectorMatch]:
    """Return the best ``top_k`` of the view by (score, then key)."""
    coded = coded_query(query)
    best = _Best(view.rows, vectors, coded.unit)
    if _size(view) <= top_k:
        best.read(_by_query(view.rows, _all(view), coded.unit))
        return best.matches(query, top_k)
    promising = _by_query(view.rows, _by_codes(scan, view, coded, top_k), coded.unit)
    upper = promising.near + promising.bounds
    # An estimate is much closer to the score than its bound tells.  So what can reach the k-th of
    # them is read at once, and seldom is there more that can reach the k-th score.
    likely = upper >= promising.near[top_k - 1]
    best.read(promising.some(likely))
    best.read(promising.some(~likely & (upper >= best.kth_score(top_k))))
    return best.matches(query, top_k)


class _Best:
    """Rows whose float32 vectors were read."""

    def __init__(self, rows: ResidentRows, vectors: KeptVectors, unit: Floats) -> None:
        self._rows = rows
        self._vectors = vectors
        self._unit = unit
        self._positions: list[Positions] = []
        self._read: list[Singles] = []
        self._near: list[float] = []

    def read(self, some: _Promising) -> None:
        """Read these rows, and score them in float64, which is off by less than SLACK."""
        for batch in _batches(len(some.positions)):
            read, near = self._vectors_of(some.some(batch))
            self._near += near
            self._read.append(read)
            self._positions.append(some.positions[batch])

    def kth_score(self, k: int) -> float:
        """Return the k-th best score so far, less what float64 may be off."""
        return sorted(self._near)[-k] - SLACK

    def matches(self, query: Singles, top_k: int) -> list[VectorMatch]:
        """Score exactly what may be among the best, and return those."""
        if not self._near:
            return []
        least = self.kth_score(min(top_k, len(self._near))) - SLACK
        last = np.array([at for at, near in enumerate(self._near) if near >= least])
        read, positions = np.concatenate(self._read), np.concatenate(self._positions)
        keys = self._rows.keys[positions[last]].tobytes().hex()
        scores: list[float] = []
        for start in range(0, len(last), EXACT_ROWS):
            scores += cosines(query, read[last[start : start + EXACT_ROWS]])
        best = sorted(
            (-score, keys[at : at + _KEY_DIGITS])
            for score, at in zip(scores, range(0, len(keys), _KEY_DIGITS), strict=True)
        )[:top_k]
        ids = entry_ids([key for _, key in best])
        return [VectorMatch(id_, -negated) for id_, (negated, _) in zip(ids, best, strict=True)]

    def _vectors_of(self, some: _Promising) -> tuple[Singles, list[float]]:
        ids = self._rows.ids[some.positions].tolist()
        read = self._vectors.in_place(ids)
        if read is not None:
            near = _scores(read, self._unit)
            # sqlite-vec may keep them in another way: these must be the rows that were coded.
            if near and (np.abs(some.near - near) <= some.bounds + SLACK).all():
                return read, near
        read = self._vectors.told(ids)
        near = _scores(read, self._unit)
        if not near:
            raise StoreCorruptError(store="vector index", problem="a vector is damaged")
        return read, near


def _scores(rows: Singles, unit: Floats) -> list[float]:
    """Return the cosines of the rows, or nothing if one has no direction."""
    with np.errstate(invalid="ignore"):
        wide = rows.astype(np.float64)
        squares = np.vecdot(wide, wide).tolist()
    if not (min(squares) > 0 and math.isfinite(sum(squares))):
        return []
    dots = np.vecdot(wide, unit).tolist()
    return [dot / math.sqrt(square) for dot, square in zip(dots, squares, strict=True)]


def _batches(rows: int) -> Iterator[slice]:
    for start in range(0, rows, BATCH_ROWS):
        yield slice(start, start + BATCH_ROWS)


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
    rows, selected, step, error = view.rows, view.selected, query.step, query.error
    near = scan.dots(query.codes, _codes(rows, selected))
    near *= rows.scales[selected]  # In steps of the query.
    if len(view.hidden):
        near[view.hidden] = -np.inf
    widest = view.widest + (1 + view.widest) * error + SCAN_SLACK
    found = np.flatnonzero(near >= _kth_or_less(near, top_k) - 2 * widest / step)
    if len(found) > max(CROWD_ROWS, 4 * top_k):
        kept = near[found] * np.float64(step)
        bounds = rows.residuals[selected][found] * (1 + error) + error + SCAN_SLACK
        found = found[kept + bounds >= _kth_or_less(kept - bounds, top_k)]
    if len(view.hidden):
        found = found[near[found] > -np.inf]
    return found + selected.start if isinstance(selected, slice) else selected[found]


def _codes(rows: ResidentRows, selected: slice | Positions) -> Codes:
    return rows.codes[selected] if isinstance(selected, slice) else rows.codes.take(selected, 0)


def _by_query(rows: ResidentRows, found: Positions, unit: Floats) -> _Promising:
    """Return the rows, most promising first, with closer bounds."""
    near = np.empty(len(found))
    for batch in _batches(len(found)):
        # Not by matrix product: with that numpy wakes threads, which then spin beside the scan's.
        near[batch] = np.vecdot(rows.codes.take(found[batch], 0).astype(np.float64), unit)
    near *= rows.scales[found]
    order = np.argsort(-near)
    found = found[order]
    return _Promising(found, near[order], rows.residuals[found] + SLACK)


def _kth_or_less(values: Floats | Singles, k: int) -> float:
    """Return a number that at least ``k`` of the values reach: the k-th largest, or below it.

    The largest of each of many groups are enough for that, and are found much faster.
    """
    groups = max(_GROUPS_MIN, 64 * k)
    if len(values) >= 4 * groups:
        whole = len(values) // groups * groups
        values = values[:whole].reshape(-1, groups).max(axis=0)
    return float(np.partition(values, len(values) - k)[len(values) - k])
