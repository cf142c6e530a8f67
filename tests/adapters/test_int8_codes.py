from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from remembrancer.adapters.sqlite.int8_codes import coded_query, coded_rows

anything = st.floats(width=32, allow_nan=False, allow_infinity=False)
usual = st.floats(-1, 1, width=32)
rows_ = arrays(
    np.float32, array_shapes(min_dims=2, max_dims=2, max_side=24), elements=anything | usual
).filter(lambda rows: bool(rows.any(axis=1).all()))


@given(rows=rows_)
def test_no_row_is_further_from_its_codes_than_its_residual(
    rows: npt.NDArray[np.float32],
) -> None:
    coded = coded_rows(rows)

    for row, codes, scale, residual in zip(
        rows, coded.codes, coded.scales, coded.residuals, strict=True
    ):
        assert distance_from_unit(row, codes, float(scale)) <= residual


@given(query=rows_.map(lambda rows: rows[0]))
def test_no_query_is_further_from_its_codes_than_its_error(query: npt.NDArray[np.float32]) -> None:
    coded = coded_query(query)

    assert distance_from_unit(query, coded.codes[0], coded.step) <= coded.error


def test_the_bound_is_close_to_the_truth() -> None:
    rows = np.random.default_rng(1).standard_normal((50, 384), dtype=np.float32)

    coded = coded_rows(rows)

    true = [
        distance_from_unit(row, codes, float(scale))
        for row, codes, scale in zip(rows, coded.codes, coded.scales, strict=True)
    ]
    assert all(coded.residuals < 1.02 * np.array(true))


def test_the_bound_holds_at_the_most_dimensions_there_may_be() -> None:
    rows = np.random.default_rng(2).standard_normal((2, 16_384), dtype=np.float32)

    coded = coded_rows(rows)

    for row, codes, scale, residual in zip(
        rows, coded.codes, coded.scales, coded.residuals, strict=True
    ):
        assert distance_from_unit(row, codes, float(scale)) <= residual


def distance_from_unit(
    row: npt.NDArray[np.float32], codes: npt.NDArray[np.int8], scale: float
) -> float:
    """Return | row/|row| - scale codes |, with rounding far below what is asserted.

    Computed from exact sums: 1 - 2 scale (row . codes) / |row| + scale^2 (codes . codes).
    """
    numbers = [Fraction(float(x)) for x in row]
    squares = sum(x * x for x in numbers)
    products = sum(x * int(c) for x, c in zip(numbers, codes, strict=True))
    codes_squared = sum(int(c) ** 2 for c in codes)
    # 200 bits of the root are kept, so that the difference of near numbers keeps its digits.
    length = Fraction(_root(squares.numerator << 800, squares.denominator), 1 << 400)
    distance2 = 1 - 2 * Fraction(scale) * products / length + Fraction(scale) ** 2 * codes_squared
    return float(
        Fraction(_root(max(distance2.numerator, 0) << 400, distance2.denominator), 1 << 200)
    )


def _root(numerator: int, denominator: int) -> int:

    return isqrt(numerator // denominator)
