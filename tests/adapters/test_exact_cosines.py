from array import array

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from remembrancer.adapters.sqlite.exact_cosines import ExactQuery
from remembrancer.domain.vector import cosine, norm

anything = st.floats(width=32, allow_nan=False, allow_infinity=False)
usual = st.floats(-1, 1, width=32)
rows_ = arrays(
    np.float32, array_shapes(min_dims=2, max_dims=2, max_side=24), elements=anything | usual
).filter(lambda rows: bool(rows.any(axis=1).all()))


@given(rows=rows_)
def test_scores_are_the_domains_to_the_last_bit(rows: npt.NDArray[np.float32]) -> None:
    query = rows[0]

    scores = ExactQuery(query).cosines(rows)

    assert scores == by_the_domain(query, rows)


def test_scores_of_usual_vectors_are_the_domains_to_the_last_bit() -> None:
    rows = np.random.default_rng(3).standard_normal((2_000, 384), dtype=np.float32)

    scores = ExactQuery(rows[7]).cosines(rows)

    assert scores == by_the_domain(rows[7], rows)


def test_scores_at_the_most_dimensions_there_may_be() -> None:
    rows = np.random.default_rng(4).standard_normal((3, 16_384), dtype=np.float32)
    rows[1] = np.nextafter(np.float32(1), np.float32(0))

    scores = ExactQuery(rows[1]).cosines(rows)

    assert scores == by_the_domain(rows[1], rows)


def by_the_domain(query: npt.NDArray[np.float32], rows: npt.NDArray[np.float32]) -> list[float]:
    asked = array("f", query.tobytes())
    return [
        cosine(asked, row, norms=norm(asked) * norm(row))
        for row in (array("f", row.tobytes()) for row in rows)
    ]
