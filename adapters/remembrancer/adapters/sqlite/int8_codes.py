"""Vectors as one byte a number, with a proven bound on what that costs (adr/0007).

A row v is kept as codes c (whole numbers from -127 to 127), a scale s and a residual r with

    | v/|v| - s c |  <=  r

and a query q, of length 1, as codes d, a step t and an error e with ``|q - t d| <= e``.  By
Cauchy and Schwarz, with ``|s c| <= 1 + r``, the cosine of v and q lies within

    s t (c . d)  +-  ( r + (1 + r) e )          the dot product of codes is exact
    s (c . q)    +-  r                          where the query is taken as it is

Imported at the first query only, as it imports numpy.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CODE_MAX = 127
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int8]

_FLOAT32_EPSILON = 2.0**-24
SLACK = 1e-9
"""More than all rounding in float64 here can add up to: 16,384 numbers of at most 1."""


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Some rows: codes (n, dimensions), scales (n) and residuals (n)."""

    codes: Codes
    scales: Singles
    residuals: Floats


@dataclass(frozen=True, slots=True)
class CodedQuery:
    """A query: exactly (float64, length 1), and as codes (1, dimensions)."""

    unit: Floats
    codes: Codes
    step: float
    error: float


def coded_rows(vectors: npt.NDArray[np.float32]) -> CodedRows:
    """Code float32 rows; one that is zero or not finite gets a residual that isn't finite.

    Each row is first divided by its largest number, so that nothing overflows and its length is
    at least 1.  All that follows is in float32 for speed, and what rounding may do is in the
    residual: a sum of D squares is off by less than (D + 8) epsilon of itself in any order, a
    number of the rest by less than 4 epsilon, and the scale by one, which is at most 2 of a row.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return _coded_rows(vectors)


def _coded_rows(vectors: npt.NDArray[np.float32]) -> CodedRows:
    dimensions = vectors.shape[1]
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    rows = vectors / largest[:, np.newaxis]
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows).astype(np.float64))
    rounded = rows * np.float32(CODE_MAX)
    np.rint(rounded, out=rounded)
    codes = rounded.astype(np.int8)
    rounded *= np.float32(1 / CODE_MAX)
    np.subtract(rows, rounded, out=rounded)
    rests = np.sqrt(np.einsum("ij,ij->i", rounded, rounded).astype(np.float64))
    residuals = (
        1.002 * rests + 4 * _FLOAT32_EPSILON * math.sqrt(dimensions)
    ) / lengths + _FLOAT32_EPSILON * (dimensions + 10)
    scales = (1 / (CODE_MAX * lengths)).astype(np.float32)
    return CodedRows(codes, scales, residuals)


def coded_query(vector: npt.NDArray[np.float32]) -> CodedQuery:
    """Code a query, which isn't zero."""
    unit = vector.astype(np.float64)
    unit /= math.sqrt(float(unit @ unit))  # No float32 number is too large or small for that.
    step = float(np.abs(unit).max()) / CODE_MAX
    codes = np.rint(unit * (1 / step))
    rest = unit - step * codes
    error = math.sqrt(float(rest @ rest)) + SLACK
    return CodedQuery(unit, codes.astype(np.int8)[np.newaxis], step, error)
