from typing_extensions import override

from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.application.ports import Randomness
from remembrancer.contracts.randomness import RandomnessContract, SeededRandomness


class TestSystemRandomness(RandomnessContract):
    @override
    def randomness(self) -> Randomness:
        return SystemRandomness()

    def test_two_sources_differ(self) -> None:
        assert SystemRandomness().bytes(32) != SystemRandomness().bytes(32)


class TestSeededRandomness(RandomnessContract):
    @override
    def randomness(self) -> Randomness:
        return SeededRandomness()

    def test_the_same_seed_gives_the_same(self) -> None:
        first, second = SeededRandomness(7), SeededRandomness(7)

        assert (first.bytes(32), first.uuid()) == (second.bytes(32), second.uuid())
