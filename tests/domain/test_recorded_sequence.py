import pickle

import pytest

from remembrancer.domain.recorded_sequence import RecordedSequence


class Squares(RecordedSequence[int]):
    """Counts how often it was taken apart."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.times_made = 0

    def _make(self) -> tuple[int, ...]:
        self.times_made += 1
        return tuple(number * number for number in range(self._count))


def test_nothing_is_made_before_somebody_looks_and_then_once() -> None:
    squares = Squares(4)
    before = squares.times_made

    looks = [squares[2], len(squares), list(squares), squares == (), hash(squares)]

    assert (before, squares.times_made) == (0, 1)
    assert looks[:3] == [4, 4, [0, 1, 4, 9]]


def test_it_is_as_good_as_its_tuple() -> None:
    squares = Squares(4)

    assert squares == (0, 1, 4, 9)
    assert squares == Squares(4)
    assert squares != (0, 1, 4)
    assert squares != [0, 1, 4, 9]
    assert hash(squares) == hash((0, 1, 4, 9))
    assert repr(squares) == "(0, 1, 4, 9)"
    assert squares[1:3] == (1, 4)
    assert 9 in squares


def test_it_can_be_sent_elsewhere() -> None:
    assert pickle.loads(pickle.dumps(Squares(3))) == (0, 1, 4)  # noqa: S301  # Our own bytes.


def test_place_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError):
        Squares(2)[2]
