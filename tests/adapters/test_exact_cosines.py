import math
from array import array

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from remembrancer.adapters.sqlite.exact_cosines import cosines, exact_sums
from remembrancer.domain.vector import cosine, norm

anything = st.floats(width=32, allow_nan=False, allow_infinity=False)
usual = st.floats(-1, 1, width=32)
rows_ = arrays(
    np.float32, array_shapes(min_dims=2, max_dims=2, max_side=24), elements=anything | usual
).filter(lambda rows: bool(rows.any(axis=1).all()))


@given(rows=rows_)
def test_scores_are_the_domains_to_the_last_bit(rows: npt.NDArray[np.float32]) -> None:
    query = rows[0]

    scores = cosines(query, rows)

    assert scores == by_the_domain(query, rows)


def test_scores_of_usual_vectors_are_the_domains_to_the_last_bit() -> None:
    rows = np.random.default_rng(3).standard_normal((2_000, 384), dtype=np.float32)

    scores = cosines(rows[7], rows)

    assert scores == by_the_domain(rows[7], rows)


def test_scores_at_the_most_dimensions_there_may_be() -> None:
    rows = np.random.default_rng(4).standard_normal((3, 16_384), dtype=np.float32)
    rows[1] = np.nextafter(np.float32(1), np.float32(0))

    scores = cosines(rows[1], rows)

    assert scores == by_the_domain(rows[1], rows)


@given(rows=rows_, other=rows_)
def test_sums_of_products_are_rounded_once(
    rows: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> None:
    products = np.multiply.outer(rows[0].astype(np.float64), other[0].astype(np.float64))

    sums = exact_sums(products.copy())

    assert sums == [math.fsum(row) for row in products.tolist()]


def test_a_sum_keeps_what_is_far_below_its_largest_number() -> None:
    numbers = np.array([[2.0**255, 1.0, 2.0**-298, -(2.0**255)], [2.0**-298] * 4])

    sums = exact_sums(numbers)

    assert sums == [1.0, 2.0**-296]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_has_no_sum(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        exact_sums(np.array([[1.0, number]]))


def by_the_domain(query: npt.NDArray[np.float32], rows: npt.NDArray[np.float32]) -> list[float]:
    asked = array("f", query.tobytes())
    return [
        cosine(asked, row, norms=norm(asked) * norm(row))
        for row in (array("f", row.tobytes()) for row in rows)
    ]
