"""Cosines to the last bit, many at once.

The port's score is ``domain.vector.cosine``: the exact sum of products, rounded once.  Summing by
``math.fsum`` costs 20 us a row of 384.  Here the products, which float64 holds exactly, are cut
into layers; numpy adds up a layer without any rounding, and fsum joins the two or three sums of
each row.  Both round the same real number once, so both give the same bits.

Imported at the first query only, as it imports numpy.
"""

import math

import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.int8_codes import Floats

_DIGITS = 53
"""Of a float64."""


def cosines(query: npt.NDArray[np.float32], rows: npt.NDArray[np.float32]) -> list[float]:
    """Return ``domain.vector.cosine`` of the query (D) with each row (n, D); finite, none zero."""
    wide = np.empty((len(rows) + 1, len(query)))
    wide[0] = query
    wide[1:] = rows
    square, *sums = exact_sums(np.concatenate((wide * wide[0], wide[1:] * wide[1:])))
    length = math.sqrt(square)
    return [
        max(-1.0, min(1.0, dot / (length * math.sqrt(own))))
        for dot, own in zip(sums[: len(rows)], sums[len(rows) :], strict=True)
    ]


def exact_sums(numbers: Floats) -> list[float]:
    """Return the sum of each row (n, D), rounded once as by ``math.fsum``; uses ``numbers`` up.

    Let ``sigma`` be a power of two, D times as large as any of the numbers or more.  Adding and
    then subtracting it rounds a number to a multiple of ``sigma / 2**53``; D of those never add
    up to more than ``sigma``, so every sum of them, in any order, fits into a float64.  What the
    rounding took off a number is at most that unit, and makes the next layer, until nothing is
    left (Rump, Ogita and Oishi, "Accurate Floating-Point Summation", part I, 2008).

    Raises:
        ValueError: a number isn't finite.
    """
    headroom = numbers.shape[1].bit_length()
    largest = max(float(numbers.max()), -float(numbers.min()))
    if not math.isfinite(largest):
        raise ValueError("isn't finite")
    sigma = math.ldexp(1.0, math.frexp(largest)[1] + headroom)
    layer = np.empty_like(numbers)
    sums: list[list[float]] = []
    while not sums or numbers.any():
        np.add(numbers, sigma, out=layer)
        layer -= sigma
        numbers -= layer
        sums.append(layer.sum(axis=1).tolist())
        sigma = math.ldexp(sigma, headroom - _DIGITS)
    return [math.fsum(layers) for layers in zip(*sums, strict=True)]
