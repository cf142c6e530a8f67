import math
from array import array
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from remembrancer.domain.errors import ImpossibleVectorError
from remembrancer.domain.vector import checked_vector, cosine, norm

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
pairs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.lists(numbers, min_size=n, max_size=n),
                        st.lists(numbers, min_size=n, max_size=n))
)  # fmt: skip
FLOAT32_MAX = 3.4028234663852886e38
SMALLEST = 1.401298464324817e-45


def _score(one: list[float], other: list[float]) -> float:
    return cosine(one, other, norms=norm(one) * norm(other))


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.0, 0.0],
        [0.0, -0.0],
        [1e-46, 0.0],  # zero once it is float32
        [math.nan, 1.0],
        [math.inf, 1.0],
        [-math.inf, 1.0],
        [1e39, 1.0],  # infinite once it is float32
        [10**400, 1.0],
        [1.0],
        [1.0, 2.0, 3.0],
        ["1.0", "2.0"],
        [None, 1.0],
        [1j, 1.0],
        "ab",
        b"abc",
        None,
        7,
    ],
    ids=str,
)
def test_what_has_no_direction_is_refused(values: object) -> None:
    with pytest.raises(ImpossibleVectorError):
        checked_vector(values, 2)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("values", [[math.nan], [math.inf], [0.0]])
def test_what_has_no_direction_is_refused_as_float32_too(values: list[float]) -> None:
    with pytest.raises(ImpossibleVectorError):
        checked_vector(array("f", values), 1)


def test_refusal_tells_no_number() -> None:
    with pytest.raises(ImpossibleVectorError) as refusal:
        checked_vector([0.125, math.nan], 2)

    assert str(refusal.value) == (
        "impossible vector: holds NaN, infinity or a number too large for float32"
    )
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    "values", [[1.0, 0.0], [FLOAT32_MAX] * 2, [SMALLEST, 0.0], [-1, 2], array("d", [1.0, 2.0])]
)
def test_every_direction_passes(values: list[float]) -> None:
    checked = checked_vector(values, 2)

    assert checked.typecode == "f"
    assert list(checked) == list(array("f", values))


def test_float32_is_not_copied() -> None:
    vector = array("f", [1.0, 2.0])

    assert checked_vector(vector, 2) is vector


@given(st.lists(numbers, min_size=1, max_size=12))
def test_finite_float32_is_refused_only_if_all_is_zero(values: list[float]) -> None:
    try:
        checked_vector(values, len(values))
    except ImpossibleVectorError:
        assert not any(values)
    else:
        assert any(values)


@given(pairs)
def test_score_is_the_same_from_both_sides(pair: tuple[list[float], list[float]]) -> None:
    one, other = pair
    assume(any(one) and any(other))

    assert _score(one, other) == _score(other, one)
    assert -1.0 <= _score(one, other) <= 1.0


@given(pairs, st.randoms(use_true_random=False))
def test_score_does_not_depend_on_the_order_of_adding(
    pair: tuple[list[float], list[float]], random: "object"
) -> None:
    one, other = pair
    assume(any(one) and any(other))
    order = list(range(len(one)))
    random.shuffle(order)  # type: ignore[attr-defined]  # Hypothesis' own Random

    shuffled = _score([one[at] for at in order], [other[at] for at in order])

    assert shuffled == _score(one, other)


@given(pairs)
@example(([1e30, 1.0, -1e30], [1.0, 1.0, 1.0]))
def test_sum_is_exact_before_it_is_rounded_once(pair: tuple[list[float], list[float]]) -> None:
    one, other = pair
    assume(any(one) and any(other))

    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(one, other, strict=True))

    assert cosine(one, other, norms=1.0) == max(-1.0, min(1.0, float(exact)))
    assert norm(one) == math.sqrt(float(sum(Fraction(a) ** 2 for a in one)))


def test_directions_have_the_scores_of_school() -> None:
    right = [1.0, 0.0]

    assert _score(right, [3.0, 0.0]) == 1.0
    assert _score(right, [0.0, 2.0]) == 0.0
    assert _score(right, [-5.0, 0.0]) == -1.0
    assert _score(right, [1.0, 1.0]) == 0.7071067811865475
