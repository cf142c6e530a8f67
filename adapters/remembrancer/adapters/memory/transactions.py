"""Transactions of the in-process store: one lock, and a list of undo steps.

Adapters change their own dictionaries at once and register how to undo each change.  A block that
raises, at any depth, dooms the whole transaction, as in the SQLite adapter: half of what belongs
together is never kept, even if an outer block swallows the inner error.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from typing_extensions import override

from remembrancer.application.ports.transactions import Transactions

_ANYBODY = nullcontext()


class MemoryTransactions(Transactions):
    """One writer at a time over every memory adapter that shares this object.

    Readers of other threads wait as well where they use :meth:`snapshot` or :meth:`begin`.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # What follows is only touched by the thread that holds the lock.
        self._undos: list[Callable[[], None]] = []
        self._doom: BaseException | None = None
        self._writes = 0
        self._reads = 0
        self._writer: int | None = None

    @override
    @contextmanager
    def begin(self, *, alone: bool = False) -> Generator[None]:
        del alone  # One transaction writes at a time anyway.
        with self._lock:
            if self._reads and not self._writes:
                raise RuntimeError("a write transaction can't begin inside a snapshot")
            self._writes += 1
            self._writer = threading.get_ident()
            try:
                yield
                if self._writes == 1:
                    self._raise_if_doomed()
            except BaseException as error:
                self._doom = self._doom or error
                raise
            finally:
                self._writes -= 1
                if not self._writes:
                    self._end()

    @override
    @contextmanager
    def snapshot(self) -> Generator[None]:
        with self._lock:
            self._reads += 1
            try:
                yield
            finally:
                self._reads -= 1

    @override
    def acting_for(self, tenant: str, owner: str | None = None) -> AbstractContextManager[None]:
        return _ANYBODY  # Dictionaries have no row security.

    @override
    def over_all_tenants(self) -> AbstractContextManager[None]:
        return _ANYBODY

    @override
    def scrub(self) -> bool:
        return True  # Dropped objects leave no file behind.

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside :meth:`begin`."""
        return self._writer == threading.get_ident()

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Register how to undo a change just made in this thread's open transaction.

        Undo steps run newest first; they must not raise.

        Raises:
            RuntimeError: this thread has no open transaction: the caller's bug.
        """
        if not self.in_transaction:
            raise RuntimeError("no transaction is open in this thread")
        self._undos.append(undo)

    def _raise_if_doomed(self) -> None:
        if self._doom is not None:
            raise self._doom  # Somebody further out swallowed it.

    def _end(self) -> None:
        undos, doomed = self._undos, self._doom is not None
        self._undos, self._doom, self._writer = [], None, None
        if doomed:
            for undo in reversed(undos):
                undo()
