"""Cosines to the last bit, many at once.

The port's score is ``domain.vector.cosine``: the exact sum of products, rounded once.  Summing by
``math.fsum`` costs 20 us a row of 384; here the numbers are cut into three whole numbers of 19
bits, whose products BLAS adds up exactly in any order (2**38 times 16,384 is below 2**53), and
fsum only joins the nine sums.  Both round the same real number once, so both give the same bits.
A row that doesn't fit into 57 bits below its largest number goes the long way.

Imported at the first query only, as it imports numpy.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.int8_codes import Floats
from remembrancer.domain.vector import cosine, norm

_BITS = 19
_PARTS = 3
# Part i times part j weighs 2**-(19 (i + j)).
_WEIGHTS = np.ldexp(1.0, -_BITS * np.add.outer(np.arange(_PARTS), np.arange(_PARTS))).reshape(-1)


class ExactQuery:
    """One query, to be compared with many rows."""

    def __init__(self, vector: npt.NDArray[np.float32]) -> None:
        self._vector = vector
        parts, [self._exponent], [self._fits] = _cut(vector[np.newaxis])
        self._parts = np.ascontiguousarray(parts[0].T)
        [square] = _squares(parts)
        self._norm = _length(square, self._exponent) if self._fits else norm(vector.tolist())

    def cosines(self, rows: npt.NDArray[np.float32]) -> list[float]:
        """Return ``domain.vector.cosine`` of the query with each row (n, D) of float32."""
        parts, exponents, fits = _cut(rows)
        dots = _joined((parts.reshape(-1, rows.shape[1]) @ self._parts).reshape(-1, _PARTS**2))
        squares = _squares(parts)
        return [
            self._score(dot, square, exponent)
            if fit and self._fits
            else self._slowly(rows[number].tolist())
            for number, (dot, square, exponent, fit) in enumerate(
                zip(dots, squares, exponents, fits, strict=True)
            )
        ]

    def _score(self, dot: float, square: float, exponent: int) -> float:
        # Scaling by powers of two changes no digit, as long as nothing is near the ends.
        norms = self._norm * _length(square, exponent)
        return max(-1.0, min(1.0, math.ldexp(dot, exponent + self._exponent) / norms))

    def _slowly(self, row: Sequence[float]) -> float:
        return cosine(self._vector.tolist(), row, norms=self._norm * norm(row))


def _cut(rows: npt.NDArray[np.float32]) -> tuple[Floats, list[int], list[bool]]:
    """Return parts (n, 3, D), exponents (n) and whether nothing was left over (n)."""
    wide = rows.astype(np.float64)
    _, exponents = np.frexp(np.abs(wide).max(axis=1))
    rest = wide * np.ldexp(1.0, _BITS - exponents)[:, np.newaxis]
    parts = np.empty((len(rows), _PARTS, rows.shape[1]))
    for part in range(_PARTS):
        whole = np.trunc(rest, out=parts[:, part])
        rest -= whole
        rest *= 2.0**_BITS
    return parts, (exponents - _BITS).tolist(), (~rest.any(axis=1)).tolist()


def _squares(parts: Floats) -> list[float]:
    return _joined(np.einsum("nid,njd->nij", parts, parts).reshape(-1, _PARTS**2))


def _length(square: float, exponent: int) -> float:
    return math.sqrt(math.ldexp(square, 2 * exponent))


def _joined(products: Floats) -> list[float]:
    """Add up the nine exact sums of each row (n, 9), rounding once."""
    return [math.fsum(nine) for nine in (products * _WEIGHTS).tolist()]
