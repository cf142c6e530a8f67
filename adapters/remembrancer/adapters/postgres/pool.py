"""Connections that threads share by turns.

Without a thread of its own, so that a fork finds nothing half done: a connection is opened by the
thread that needs it and found dead, if it is, when it is taken out again.
"""

import select
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from remembrancer.adapters.postgres.connection import Connection, neutralise
from remembrancer.domain.errors import StoreClosedError, StoreUnavailableError

_INHERITED = list[Connection]()
"""A parent's, in a forked child: never used, and never collected."""


class Pool:
    """At most so many connections of one role; the one that was used last is taken first."""

    def __init__(
        self, *, connect: Callable[[], Connection], size: int, wait_s: float, store: str
    ) -> None:
        self._connect = connect
        self._wait_s = wait_s
        self._store = store
        self._size = size
        self._closed = False
        self._idle = list[Connection]()
        self._all = set[Connection]()
        self._places = threading.Semaphore(size)

    def take(self) -> Connection:
        """Return a connection that is outside any transaction, for :meth:`give_back`.

        Raises:
            StoreUnavailableError: all are in use for too long, or the server can't be had.
            StoreForbiddenError: the server refuses the role.
            StoreClosedError: the pool was closed.
        """
        if not self._places.acquire(timeout=self._wait_s):
            problem = f"all {self._size} connections are in use"
            raise StoreUnavailableError(store=self._store, problem=problem)
        try:
            return self._idle_one() or self.fresh()
        except BaseException:
            self._places.release()
            raise

    def fresh(self) -> Connection:
        """Open a connection in the place of one that was taken and has been found dead."""
        if self._closed:
            raise StoreClosedError
        connection = self._connect()
        self._all.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Let others have it, or drop it if it isn't in order."""
        try:
            if self._closed or connection.closed or _is_busy(connection):
                self.drop(connection)
            else:
                self._idle.append(connection)
        finally:
            self._places.release()

    @contextmanager
    def lent(self) -> Generator[Connection]:
        """Take a connection for the block."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def drop(self, connection: Connection) -> None:
        """Close it; the server rolls back what it had begun."""
        self._all.discard(connection)
        with suppress(psycopg.Error):
            connection.close()

    def close(self) -> None:
        """Close those that nobody uses; the others as they are given back."""
        self._closed = True
        while self._idle:
            self.drop(self._idle.pop())

    def leave(self) -> None:
        """In a forked child: forget the parent's connections."""
        for connection in self._all:
            neutralise(connection)
            _INHERITED.append(connection)
        self._all.clear()
        self._idle.clear()

    def _idle_one(self) -> Connection | None:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not _has_word(connection):
                    return connection
                self.drop(connection)
        return None


def _is_busy(connection: Connection) -> bool:
    # A number; no member of it.
    return connection.pgconn.transaction_status != TransactionStatus.IDLE


def _has_word(connection: Connection) -> bool:
    """Say whether the server has said something to an idle connection: that it ends."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
