"""What a fork does to connections: the child has a copy of each socket, and must use none.

psycopg ends no session from a process that didn't open it.  The child leaves its parent's
connections at once and opens its own.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """What holds connections."""

    def leave_parents_connections(self) -> None:
        """After a fork, in the child."""
        ...


class _Watched:
    """All open databases of this process; the interpreter's hooks can't be taken back."""

    def __init__(self) -> None:
        self.all: WeakSet[Forked] = WeakSet()
        self.hooked = False

    def in_child(self) -> None:
        for one in list(self.all):
            one.leave_parents_connections()


_WATCHED = _Watched()


def watch(one: Forked) -> None:
    """Tell ``one`` of every fork from now on."""
    if not _WATCHED.hooked:
        os.register_at_fork(after_in_child=_WATCHED.in_child)
        _WATCHED.hooked = True
    _WATCHED.all.add(one)


def unwatch(one: Forked) -> None:
    """Stop telling it."""
    _WATCHED.all.discard(one)
