import operator
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from remembrancer.domain.sensitivity import Sensitivity

ORDER = ("public", "internal", "confidential", "restricted")
PAIRS = list(product(Sensitivity, repeat=2))


def test_order_is_of_secrecy_not_of_the_alphabet() -> None:
    assert tuple(level.value for level in sorted(Sensitivity)) == ORDER
    assert [level.rank for level in Sensitivity] == [0, 1, 2, 3]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_every_comparison_follows_the_order(
    one: Sensitivity, other: Sensitivity, compare: Callable[[object, object], bool]
) -> None:
    by_place = compare(ORDER.index(one.value), ORDER.index(other.value))

    assert compare(one, other) is by_place


@pytest.mark.parametrize("stranger", ["public", 0, None])
def test_only_sensitivities_compare(stranger: Any) -> None:
    with pytest.raises(TypeError):
        operator.lt(Sensitivity.PUBLIC, stranger)
    assert stranger != Sensitivity.PUBLIC


@pytest.mark.parametrize("ceiling", Sensitivity)
def test_ceiling_lets_through_what_is_at_or_under_it(ceiling: Sensitivity) -> None:
    assert ceiling.at_or_under() == tuple(level for level in Sensitivity if level <= ceiling)
    assert max(ceiling.at_or_under()) is ceiling


def test_level_is_one_object_also_after_pickling() -> None:
    revived = pickle.loads(pickle.dumps(Sensitivity.PUBLIC))  # noqa: S301  # pickled on this line

    assert revived is Sensitivity.PUBLIC
