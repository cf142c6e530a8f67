"""Transactions of the in-process store: one lock, and a list of undo steps.

Adapters change their own dictionaries at once and register how to undo each change.  A block that
raises, at any depth, dooms the whole transaction, as in the SQLite adapter: half of what belongs
together is never kept, even if an outer block swallows the inner error.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from typing_extensions import override

from remembrancer.application.ports.transactions import Transactions


class MemoryTransactions(Transactions):
    """One writer at a time over every memory adapter that shares this object.

    Readers of other threads wait as well where they use :meth:`snapshot` or :meth:`begin`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # What follows is only touched by the thread that holds the lock.
        self._undos: list[Callable[[], None]] = []
        self._depth = 0
        self._doomed = False
        self._writer: int | None = None

    @override
    @contextmanager
    def begin(self) -> Generator[None]:
        with self._lock:
            self._enter()
            try:
                yield
            except BaseException:
                self._doomed = True
                raise
            finally:
                doomed = self._leave()
            if doomed:
                raise RuntimeError(
                    "a nested transaction block failed and its error was swallowed: "
                    "everything was rolled back"
                )

    @override
    @contextmanager
    def snapshot(self) -> Generator[None]:
        with self._lock:
            yield

    @override
    def scrub(self) -> bool:
        return True  # Dropped objects leave no file behind.

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Register how to undo a change just made in this thread's open transaction.

        Undo steps run newest first; they must not raise.

        Raises:
            RuntimeError: this thread has no open transaction: the caller's bug.
        """
        if self._writer != threading.get_ident():
            raise RuntimeError("no transaction is open in this thread")
        self._undos.append(undo)

    def _enter(self) -> None:
        self._depth += 1
        self._writer = threading.get_ident()

    def _leave(self) -> bool:
        """Close one block; return whether the outermost one had to roll back."""
        self._depth -= 1
        if self._depth:
            return False
        undos, doomed = self._undos, self._doomed
        self._undos, self._doomed, self._writer = [], False, None
        if doomed:
            for undo in reversed(undos):
                undo()
        return doomed
