"""Vectors and their similarity, defined once so that every index gives the same answer.

A score is the cosine of two float32 vectors, computed exactly: products of float32 numbers are
exact in float64 and ``math.fsum`` rounds their sum once. Adapters may search as they like; the
scores they return are these, to the last bit, on every machine (adr/0007).
"""

import math
from array import array
from collections.abc import Sequence
from operator import mul

from remembrancer.domain.errors import ImpossibleVectorError

Vector = Sequence[float]
"""Float32 numbers; ``array('f')`` is the form that costs no copy."""


def checked_vector(values: Vector, dimensions: int) -> "array[float]":
    """Return ``values`` as float32, if they have a direction in a space of ``dimensions``.

    Raises:
        ImpossibleVectorError: wrong dimension, NaN, infinite (also by overflow), or zero.
    """
    try:
        vector = (
            values if isinstance(values, array) and values.typecode == "f" else array("f", values)
        )
    except (TypeError, ValueError, OverflowError):
        raise ImpossibleVectorError("holds what isn't a float32 number") from None
    if len(vector) != dimensions:
        raise ImpossibleVectorError(f"has {len(vector)} dimensions, the space has {dimensions}")
    if not math.isfinite(sum(vector)):  # Finite numbers of float32 never add up to infinity here.
        raise ImpossibleVectorError("holds NaN, infinity or a number too large for float32")
    if not any(vector):
        raise ImpossibleVectorError("is zero, so it has no direction")
    return vector


def norm(vector: Vector) -> float:
    """Return the length of ``vector``: the root of its exact, once rounded sum of squares."""
    return math.sqrt(math.fsum(map(mul, vector, vector)))


def cosine(one: Vector, other: Vector, *, norms: float) -> float:
    """Return the score of two vectors whose :func:`norm` values multiply to ``norms``.

    -1.0 to 1.0, higher is more alike.
    """
    return max(-1.0, min(1.0, math.fsum(map(mul, one, other)) / norms))
