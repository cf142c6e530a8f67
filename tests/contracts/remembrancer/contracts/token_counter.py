"""What every token counter promises, and one for tests.

Enrol an adapter by subclassing :class:`TokenCounterContract`::

    class TestMyTokenCounter(TokenCounterContract):
        def token_counter(self) -> TokenCounter:
            return MyTokenCounter()
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

import pytest
from typing_extensions import override

from remembrancer.application.ports.token_counter import TokenCounter

TEXTS = (
    "",
    "one",
    "The invoice service retries three times before it gives up.",
    "naïve café, coöperate",
    "速度 と 品質",
    "rocket \N{ROCKET} launch at 9:00",
    "a  text\n\nwith\todd   spaces ",
    "<s> and </s> written out",
)
THREADS = 8


class TokenCounterContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the counter."""

    @abstractmethod
    def token_counter(self) -> TokenCounter:
        """Make a counter."""

    def test_its_name_says_the_version(self) -> None:
        name, at, version = self.token_counter().name.rpartition("@")

        assert name
        assert at
        assert version

    def test_an_empty_text_costs_nothing(self) -> None:
        assert self.token_counter().count("") == 0

    def test_a_text_that_says_something_costs_something(self) -> None:
        counter = self.token_counter()

        assert all(counter.count(text) > 0 for text in TEXTS[1:])

    def test_many_are_counted_like_each_of_them(self) -> None:
        counter = self.token_counter()

        assert counter.count_many(TEXTS) == [counter.count(text) for text in TEXTS]
        assert counter.count_many([]) == []

    def test_a_longer_text_does_not_cost_less(self) -> None:
        counter = self.token_counter()

        counts = [counter.count("remember this " * times) for times in range(1, 20)]

        assert counts == sorted(counts)

    def test_threads_count_the_same(self) -> None:
        counter = self.token_counter()
        answers: list[list[int]] = []
        together = threading.Barrier(THREADS)

        def count() -> None:
            together.wait()
            answers.append(counter.count_many(TEXTS))

        threads = [threading.Thread(target=count) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert answers == [self.token_counter().count_many(TEXTS)] * THREADS

    @pytest.mark.parametrize("unit", ["memory ", "x", "記", " ", "\n"], ids=ascii)
    def test_a_text_of_a_mebibyte_is_no_trouble(self, unit: str) -> None:
        assert self.token_counter().count(unit * (1_048_576 // len(unit.encode()))) > 0

    def test_a_lone_surrogate_raises_nothing(self) -> None:
        assert self.token_counter().count("half \ud83d of a pair") > 0


class WordCounter(TokenCounter):
    """For tests: a word costs a token for each four characters that it begins.

    White space by itself costs one token, so that no text but the empty one is free.
    """

    @property
    @override
    def name(self) -> str:
        return "words@1"

    @override
    def count(self, text: str) -> int:
        return sum(-(-len(word) // 4) for word in text.split()) or min(len(text), 1)

    @override
    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]
