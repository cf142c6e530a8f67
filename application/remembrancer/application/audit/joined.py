"""Facts that need another stream's: what is wanted must have been offered, in the right order.

A selection wants versions of entries, prepared vectors want a settled reservation.  Streams are
read one after the other, so neither side can be looked up; each fact is kept as three numbers of
eight bytes, and both sides are compared at the end.  A store with more than fits is read several
times, a share of the facts each (adr/0021).
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

FACTS_MAX = 2_000_000
"""Facts kept at once, on both sides together: some 48 MB."""

ABSENT, LATER, EARLIER, TWICE = "absent", "later", "earlier", "twice"

Fact = tuple[str | int, ...]
"""What is offered and wanted; begins with a name or an id."""

Offer = tuple[int, int]
"""Where what was offered began, and where it was done."""

_PARTS = 256
_PART = _PARTS - 1
_WIDTH = 3
_SPELT: Final = Struct("qqq").pack
"""A fact's three numbers; bytes are added to bytes twice as fast as numbers to an array."""


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of the facts is looked at in one reading."""

    number: int = 0
    of: int = 1

    @classmethod
    def nothing(cls) -> "Share":
        """Return the share of a reading that is after something else."""
        return cls(number=1)

    @classmethod
    def all_of(cls, events: int) -> "list[Share]":
        """Return the shares that a log of so many events needs."""
        of = max(1, -(-events // FACTS_MAX))
        return [cls(number, of) for number in range(of)]


class Joined:
    """One relation between streams.

    An offer names two positions: of what had to begin after the wish's beginning, and of what
    had to be there before the wish.
    """

    def __init__(self, share: Share, *, once: bool) -> None:
        """With ``once``, being wanted twice is wrong as well."""
        self._share, self._of = share.number, share.of
        self._once = once
        self._offered = [bytearray() for _ in range(_PARTS)]
        self._wanted = [bytearray() for _ in range(_PARTS)]
        self._wanted_since_thinned = 0

    def offer(self, fact: Fact, began: int, done: int) -> None:
        """A fact that may be wanted."""
        number = hash(fact)
        if self._of == 1 or (number >> 8) % self._of == self._share:
            self._offered[number & _PART] += _SPELT(number, began, done)

    def want(self, fact: Fact, began: int, at: int) -> None:
        """A fact that must have been offered: begun after ``began``, done before ``at``."""
        number = hash(fact)
        if (number >> 8) % self._of == self._share:
            self._wanted[number & _PART] += _SPELT(number, began, at)
            self._wanted_since_thinned += 1
            if self._wanted_since_thinned > FACTS_MAX // 2 and not self._once:
                self._thin_out()

    def want_all(self, facts: Sequence[Fact], began: int, at: int) -> None:
        """As :meth:`want`, for each of ``facts``."""
        share, of, wanted = self._share, self._of, self._wanted
        for number in map(hash, facts):
            if of == 1 or (number >> 8) % of == share:
                wanted[number & _PART] += _SPELT(number, began, at)
        self._wanted_since_thinned += len(facts)
        if self._wanted_since_thinned > FACTS_MAX // 2 and not self._once:
            self._thin_out()

    def unmet(self) -> dict[int, Offer | None]:
        """Return the wishes that aren't met, by their record's hash: what was offered, if any."""
        unmet: dict[int, Offer | None] = {}
        for offered, wanted in zip(self._offered, self._wanted, strict=True):
            if not wanted:
                continue
            facts = {
                number: (began, done) for number, began, done in reversed(triples_of(offered))
            }
            offer_of = facts.get
            for number, began, at in triples_of(wanted):
                offer = offer_of(number)
                if offer is None or offer[1] >= at or offer[0] <= began:
                    unmet[number] = offer
            if self._once:
                numbers = array("q", bytes(wanted))[0::_WIDTH]
                unmet |= {one: facts.get(one) for one, n in Counter(numbers).items() if n > 1}
        return unmet

    def _thin_out(self) -> None:
        """Keep of equal wishes the earliest: popular entries are selected again and again."""
        for place, wanted in enumerate(self._wanted):
            earliest: dict[tuple[int, int], int] = {}
            for number, began, at in triples_of(wanted):
                key = (number, began)
                earliest[key] = min(at, earliest.get(key, at))
            self._wanted[place] = bytearray(
                b"".join(_SPELT(*key, at) for key, at in earliest.items())
            )
        self._wanted_since_thinned = 0


def problem_of(offer: Offer | None, began: int, at: int) -> str:
    """Say why a wish isn't met, in a word; nothing where it is."""
    if offer is None:
        return ABSENT
    if offer[1] >= at:
        return LATER
    return EARLIER if offer[0] <= began else ""


def triples_of(facts: bytearray) -> list[tuple[int, int, int]]:
    """Return facts as they were spelt: hash, and two numbers."""
    parts = iter(array("q", bytes(facts)))
    return list(zip(parts, parts, parts, strict=True))
