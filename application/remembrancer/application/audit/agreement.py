"""Whether two lists of any length say the same, in any order, in a few megabytes.

Each record is spelt as one string and hashed with Python's own keyed hash (SipHash, under a key
drawn for the process: nobody can have prepared a record that collides).  What the log says is
added to the sum of the record's bucket, what the store holds is subtracted.  Equal lists leave
every sum at zero.  Where one isn't, a second reading collects the records of that bucket alone
and names what differs (adr/0021).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

BUCKETS = 1 << 12
_BUCKET = BUCKETS - 1
BUCKETS_NAMED_MAX = 64
"""Buckets whose records are collected; a store with more damage than that is told so."""
SEPARATOR = "\x1f"
"""Between the fields of a record; no name holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One key about which the two lists differ; None where a list doesn't have it."""

    key: tuple[str, ...]
    expected: dict[str, str] | None
    found: dict[str, str] | None


class Agreement:
    """Two lists of records: what is expected, and what is found."""

    def __init__(self, fields: tuple[str, ...], *, keys: int) -> None:
        """``fields`` names the parts of a record; the first ``keys`` say what it is about."""
        self._fields = fields
        self._keys = keys
        self._sums = [0] * BUCKETS

    def expect(self, record: str) -> int:
        """The log says this; return what :meth:`withdraw` takes it back by."""
        number = hash(record)
        self._sums[number & _BUCKET] += number
        return number

    def withdraw(self, number: int) -> None:
        """What was expected isn't so any more."""
        self._sums[number & _BUCKET] -= number

    def find(self, record: str) -> None:
        """The store holds this, or the log says that it isn't so any more."""
        number = hash(record)
        self._sums[number & _BUCKET] -= number

    @property
    def differing(self) -> int:
        """How many buckets differ; 0 if and only if the lists are the same."""
        return sum(map(bool, self._sums))

    def naming(self) -> "NamedAgreement":
        """Return what collects the differing records during a second reading."""
        wanted = [number for number, total in enumerate(self._sums) if total]
        return NamedAgreement(self._fields, self._keys, frozenset(wanted[:BUCKETS_NAMED_MAX]))


class NamedAgreement(Agreement):
    """As the first, but keeps the records of some buckets."""

    def __init__(self, fields: tuple[str, ...], keys: int, buckets: frozenset[int]) -> None:
        super().__init__(fields, keys=keys)
        self._naming = buckets
        self._named: Counter[str] = Counter()
        self._spelt: dict[int, str] = {}

    @override
    def expect(self, record: str) -> int:
        number = hash(record)
        if number & _BUCKET in self._naming:
            self._spelt[number] = record
            self._count(record, 1)
        return number

    @override
    def withdraw(self, number: int) -> None:
        if number & _BUCKET in self._naming:
            self._count(self._spelt[number], -1)

    @override
    def find(self, record: str) -> None:
        if hash(record) & _BUCKET in self._naming:
            self._count(record, -1)

    def differences(self) -> Iterator[Difference]:
        """Iterate over what differs, by key."""
        expected: dict[tuple[str, ...], dict[str, str]] = {}
        found: dict[tuple[str, ...], dict[str, str]] = {}
        for record, count in self._named.items():
            parts = record.split(SEPARATOR)
            side = expected if count > 0 else found
            side[tuple(parts[: self._keys])] = dict(zip(self._fields, parts, strict=False))
        for key in sorted(expected.keys() | found.keys()):
            yield Difference(key=key, expected=expected.get(key), found=found.get(key))

    def _count(self, record: str, change: int) -> None:
        count = self._named[record] + change
        if count:
            self._named[record] = count
        else:
            del self._named[record]
