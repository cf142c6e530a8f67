"""How far an entry may travel."""

from enum import Enum
from functools import total_ordering


@total_ordering
class Sensitivity(Enum):
    """``public < internal < confidential < restricted``.

    A plain Enum: as a string it would compare by alphabet, and let secrets through.
    """

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"

    def __init__(self, word: str) -> None:
        self.rank = len(type(self).__members__)
        """Position in the order, from 0."""
        self.word = word
        """The ``value``, which an Enum looks up at every call; each text that is shown says it."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Sensitivity):
            return NotImplemented
        return self.rank < other.rank

    def __le__(self, other: object) -> bool:  # Asked of every entry that is shown.
        if not isinstance(other, Sensitivity):
            return NotImplemented
        return self.rank <= other.rank

    def at_or_under(self) -> tuple["Sensitivity", ...]:
        """Return every sensitivity that a ceiling of this one lets through."""
        return tuple(level for level in Sensitivity if level <= self)
