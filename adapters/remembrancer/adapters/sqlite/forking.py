"""What a fork does to SQLite, and what is done about it.

Locks of a file belong to a process and a child does not inherit them, but SQLite keeps its account
of them in memory, which the child does inherit.  A connection that the child opens beside
inherited ones would believe that the process holds locks which only the parent has: the parent's
closing, or its end, would then delete the write-ahead log under the child and acknowledged commits
would be lost (adr/0002).  Closing the inherited ones in the child repairs the account, and is
harmless while none of them is inside a transaction: the parent's locks stop SQLite from touching
the file.  So a fork waits for other threads' transactions, and if one is still open (the forking
thread's own, or a very long one) the child refuses to use the store.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet

import apsw

FORK_WAIT_S = 1.0
"""How long a fork waits for a transaction of another thread."""


class Forked(Protocol):
    """What holds connections."""

    def pause(self, wait_s: float) -> None:
        """Before a fork."""
        ...

    def resume(self) -> None:
        """After it, in the parent."""
        ...

    def leave_parents_connections(self) -> None:
        """After it, in the child."""
        ...


class _Watched:
    """All open databases of this process; the interpreter's hooks can't be taken back."""

    def __init__(self) -> None:
        self.all: WeakSet[Forked] = WeakSet()
        self.forking: list[Forked] = []
        self.hooked = False
        self.one_fork = threading.Lock()
        """Held from before a fork until after it: two at once would resume each other's."""

    def before(self) -> None:
        self.one_fork.acquire()
        self.forking = list(self.all)
        for one in self.forking:
            one.pause(FORK_WAIT_S)

    def in_parent(self) -> None:
        for one in reversed(self.forking):
            one.resume()
        self.forking = []
        self.one_fork.release()

    def in_child(self) -> None:
        for one in self.forking:
            one.leave_parents_connections()
        self.forking = []
        self.one_fork = threading.Lock()


_WATCHED = _Watched()


def watch(one: Forked) -> None:
    """Tell ``one`` of every fork from now on."""
    if not _WATCHED.hooked:
        os.register_at_fork(
            before=_WATCHED.before,
            after_in_parent=_WATCHED.in_parent,
            after_in_child=_WATCHED.in_child,
        )
        _WATCHED.hooked = True
    _WATCHED.all.add(one)


def unwatch(one: Forked) -> None:
    """Stop telling it."""
    _WATCHED.all.discard(one)


def let_go(inherited: list[tuple[apsw.Connection, bool]]) -> bool:
    """Close a parent's connections in the child, each with whether it is inside a transaction.

    Returns:
        False if one can't be closed without touching the parent's transaction.
    """
    all_closed = True
    for connection, in_transaction in inherited:
        if in_transaction or not _closed(connection):
            _keep_for_ever(connection)
            all_closed = False
    return all_closed


def _closed(connection: apsw.Connection) -> bool:
    try:
        connection.close()
    except apsw.Error:  # Another thread of the parent was using it outside a transaction.
        return False
    return True


def _keep_for_ever(connection: apsw.Connection) -> None:
    # Freed at the child's exit, it would roll the parent's transaction back.
    import ctypes  # noqa: PLC0415 - needed in a child that was forked at a bad time only

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
