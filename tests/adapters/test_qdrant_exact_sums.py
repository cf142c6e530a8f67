"""Sums of many rows at once are those of the domain, to the last bit."""

import math
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from remembrancer.adapters.qdrant.exact_sums import dots, norms
from remembrancer.adapters.qdrant.rows import Rows
from remembrancer.domain.vector import norm

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
LIKE_EMBEDDINGS = st.floats(-1, 1, width=32)


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Draw rows of any float32 numbers, or of such as embeddings have, or of a few that repeat."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=9))
    one_of = draw(st.sampled_from([FLOATS, LIKE_EMBEDDINGS, st.sampled_from([0, 1, -1, 1e30])]))
    return draw(arrays(np.float32, shape, elements=one_of))


@given(tables(), st.data())
def test_dots_are_fsums(rows: Rows, data: st.DataObject) -> None:
    asked = data.draw(arrays(np.float32, rows.shape[1], elements=FLOATS)).tolist()

    found = dots(rows, asked)

    assert list(map(repr, found)) == [
        repr(math.fsum(map(mul, row.tolist(), asked))) for row in rows
    ]


@given(tables())
def test_norms_are_those_of_the_domain(rows: Rows) -> None:
    found = norms(rows)

    assert list(map(repr, found)) == [repr(norm(row.tolist())) for row in rows]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 384, 1_536, 4_096])
@pytest.mark.parametrize("spread", [0, 3, 30])
def test_long_rows_are_summed_exactly_however_far_their_numbers_lie_apart(
    dimensions: int, spread: int
) -> None:
    chance = np.random.default_rng(dimensions)
    wide = chance.standard_normal((20, dimensions))
    rows = (wide * 10.0 ** -chance.integers(0, spread + 1, wide.shape)).astype(np.float32)
    asked = rows[0].tolist()

    found = dots(rows, asked)

    assert found == [math.fsum(map(mul, row.tolist(), asked)) for row in rows]


def test_what_cancels_out_leaves_the_smallest() -> None:
    rows = np.array([[1e30, 1e-30, -1e30], [1, 2.0**-24, -1], [3e38, 1e-44, -3e38]], np.float32)

    found = dots(rows, [1.0, 1.0, 1.0])

    assert found == [math.fsum(row.tolist()) for row in rows]
    assert all(found)
