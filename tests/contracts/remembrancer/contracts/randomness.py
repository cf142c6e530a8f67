"""What every source of chance promises, and one for tests that repeats itself.

Enrol an adapter by subclassing :class:`RandomnessContract`::

    class TestMyRandomness(RandomnessContract):
        def randomness(self) -> Randomness:
            return MyRandomness()
"""

import random
from abc import ABC, abstractmethod
from uuid import RFC_4122, UUID

import pytest
from typing_extensions import override

from remembrancer.application.ports.randomness import Randomness

DRAWS = 1_000


class RandomnessContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the source."""

    @abstractmethod
    def randomness(self) -> Randomness:
        """Make a source of chance."""

    @pytest.mark.parametrize("count", [0, 1, 12, 32, 4096])
    def test_gives_as_many_bytes_as_asked(self, count: int) -> None:
        assert len(self.randomness().bytes(count)) == count

    def test_bytes_do_not_repeat(self) -> None:
        randomness = self.randomness()

        drawn = {randomness.bytes(16) for _ in range(DRAWS)}

        assert len(drawn) == DRAWS

    def test_every_bit_is_sometimes_set_and_sometimes_not(self) -> None:
        randomness = self.randomness()

        drawn = [int.from_bytes(randomness.bytes(32)) for _ in range(DRAWS)]

        for bit in range(256):
            assert {number >> bit & 1 for number in drawn} == {0, 1}

    def test_uuids_are_of_version_4(self) -> None:
        drawn = self.randomness().uuid()

        assert (drawn.version, drawn.variant) == (4, RFC_4122)

    def test_uuids_do_not_repeat(self) -> None:
        randomness = self.randomness()

        assert len({randomness.uuid() for _ in range(DRAWS)}) == DRAWS


class SeededRandomness(Randomness):
    """For tests: the same seed gives the same bytes and ids, in order."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311  # Predictable is the point.

    @override
    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    @override
    def uuid(self) -> UUID:
        return UUID(bytes=self._random.randbytes(16), version=4)
