"""Chance."""

from typing import Protocol
from uuid import UUID


class Randomness(Protocol):
    """The only source of chance; good enough for keys and salts."""

    def bytes(self, count: int) -> bytes:
        """Return ``count`` unpredictable bytes."""
        ...

    def uuid(self) -> UUID:
        """Return a new random UUID (version 4)."""
        ...
