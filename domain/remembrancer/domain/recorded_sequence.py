"""Sequences of a record that are made only if somebody looks at them.

A replay of a pack needs few of a selection's names; to make all of them takes longer than to read
the record.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

_Item = TypeVar("_Item")


class RecordedSequence(Sequence[_Item]):
    """As good as the tuple that it makes: equal to it, hashed and shown as it."""

    _made: tuple[_Item, ...] | None = None

    @abstractmethod
    def _make(self) -> tuple[_Item, ...]:
        """Take the record apart."""

    def _all(self) -> tuple[_Item, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Item, ...]: ...
    def __getitem__(self, index: int | slice) -> _Item | tuple[_Item, ...]:
        return self._all()[index]

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | RecordedSequence):
            return self._all() == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())
