"""So many of something."""

import pytest

from remembrancer.domain.counted import counted


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 entries"), (1, "1 entry"), (2, "2 entries")],
)
def test_one_is_told_in_the_singular(number: int, told: str) -> None:
    assert counted(number, "entry", "entries") == told


def test_the_plural_is_an_s_where_none_is_given() -> None:
    assert (counted(1, "pack"), counted(2, "pack")) == ("1 pack", "2 packs")
