"""Counting tokens."""

from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts what a text costs in a model's context."""

    @property
    def name(self) -> str:
        """Name and version, such as ``wordllama-l2-supercat@1``; recorded with every pack."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens, 0 for an empty text."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        ...
