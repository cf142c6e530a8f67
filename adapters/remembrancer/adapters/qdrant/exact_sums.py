"""Sums rounded once, of many rows at a time: ``math.fsum`` without its 20 us a row of 384.

Adding and taking away a large power of two cuts numbers at a common place.  What lies above the
place has so few bits that it adds up exactly in any order; the rest is cut once more.  If nothing
is left then, each row is two exact sums, and adding those rounds once, as fsum does.  A row whose
numbers lie too far apart for that goes the long way.

Imported by what asks or writes, as it imports numpy.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from remembrancer.adapters.qdrant.rows import Rows

Floats = npt.NDArray[np.float64]
_BITS = 53


def dots(rows: Rows, asked: Sequence[float]) -> list[float]:
    """Return ``math.fsum(map(mul, row, asked))`` of each row (n, D), to the last bit."""
    other = np.array(asked, dtype=np.float64)
    return _sums(rows * other, _largest(rows) * _largest(other))


def norms(rows: Rows) -> list[float]:
    """Return :func:`remembrancer.domain.vector.norm` of each row (n, D), to the last bit."""
    wide = rows.astype(np.float64)
    return [math.sqrt(square) for square in _sums(wide * wide, _largest(rows) ** 2)]


def _largest(numbers: Rows | Floats) -> float:
    return max(float(numbers.max()), -float(numbers.min()))


def _sums(terms: Floats, largest: float) -> list[float]:
    """Return ``math.fsum`` of each row (n, D), and leave nothing of ``terms``.

    None is above ``largest``, and all are far from the ends of float64, as products of float32
    numbers.
    """
    # With 2**M at least D + 2, parts down to 53 bits below 2**M times the largest term have no
    # more than float64's 53 bits, nor has any sum of them.
    carries = (terms.shape[1] + 1).bit_length()
    _, exponent = math.frexp(largest)
    parts = np.empty_like(terms)
    above = _cut(terms, exponent + carries, parts)
    below = _cut(terms, exponent + carries + carries - _BITS, parts)
    sums: list[float] = (above + below + 0.0).tolist()  # Adding zero turns -0.0 into fsum's 0.0.
    for row in np.flatnonzero(terms.any(axis=1)).tolist():
        sums[row] = math.fsum([above[row], below[row], *terms[row].tolist()])
    return sums


def _cut(terms: Floats, exponent: int, parts: Floats) -> Floats:
    """Return the sums (n) of what lies 53 bits below ``2**exponent`` or higher; the rest stays."""
    large = math.ldexp(1.0, exponent)
    np.add(terms, large, out=parts)
    parts -= large
    terms -= parts
    found: Floats = parts.sum(axis=1)
    return found
