"""One SQLite file as threads, processes and forked children may share it.

Each thread has a connection of its own: two threads on one would commit each other's transactions.
A connection dies with its thread, or with :meth:`Database.open`'s block.  What a fork does to
connections is told in :mod:`remembrancer.adapters.sqlite.forking`.
"""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Self
from weakref import WeakSet

import apsw

from remembrancer.adapters.sqlite import forking
from remembrancer.adapters.sqlite.connection import check_path, connect, exists, has_log
from remembrancer.adapters.sqlite.heads import Heads
from remembrancer.adapters.sqlite.scrubbing import scrub
from remembrancer.adapters.sqlite.thread_state import ThreadState
from remembrancer.adapters.sqlite.thread_transaction import (
    ReadTransaction,
    Writers,
    WriteTransaction,
)
from remembrancer.adapters.sqlite.translation import translating
from remembrancer.domain.errors import (
    StoreClosedError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

SCRUB_WAIT_MS = 250
"""How long :meth:`Database.scrub` waits for readers before it says *pending*."""


class Database:
    """The file, and this thread's transaction in it."""

    def __init__(self, path: Path, *, busy_timeout_s: float, read_only: bool) -> None:
        """Touch nothing yet; :meth:`open` sees to everything."""
        self.path = Path(os.path.realpath(path))
        """Resolved: each thread opens it for itself, also after the process changed its folder."""
        self._name = str(self.path)
        self._busy_timeout_s = busy_timeout_s
        self._read_only = read_only
        self._closed = False
        self._begin_anew()

    @classmethod
    @contextmanager
    def open(
        cls, path: Path, *, busy_timeout_s: float = 5.0, read_only: bool = False
    ) -> Generator[Self]:
        """Open ``path``, made with its schema if missing or empty; close it on the way out.

        A file that may not be written is opened for reading; then only writing fails.

        Args:
            path: the database file; ``-wal`` and ``-shm`` appear beside it while it is open.
            busy_timeout_s: how long to wait for another writer.
            read_only: open for reading even if the file may be written.

        Raises:
            SettingsError: the path names a folder, or lies in a folder that does not exist.
            StoreUnavailableError: locked for too long, not readable, or missing when read only.
            StoreFullError: no room for the schema.
            StoreReadOnlyError: it may not be written and has no (current) schema yet.
            StoreCorruptError: not a database, damaged, or another program's.
            StoreNewerError: a newer release wrote it.
        """
        check_path(path)
        database = cls(
            path,
            busy_timeout_s=busy_timeout_s,
            read_only=read_only or _may_not_be_written(path),
        )
        database.connection()
        forking.watch(database)
        try:
            yield database
        finally:
            database.close()

    @property
    def read_only(self) -> bool:
        """Whether every :meth:`write` is refused."""
        return self._read_only

    @property
    def in_write(self) -> bool:
        """Whether this thread is inside :meth:`write`."""
        mine = self._local_state()
        return mine is not None and mine.writing

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside :meth:`write` or :meth:`read`."""
        mine = self._local_state()
        return mine is not None and mine.inside

    @property
    def heads(self) -> Heads:
        """Of this thread's connection, for use inside :meth:`write`."""
        return self._mine().heads

    def connection(self) -> apsw.Connection:
        """Return this thread's own connection, opened at its first use.

        Statements on it are translated only inside :meth:`read` and :meth:`write`.
        """
        return self._mine().connection

    def write(self) -> AbstractContextManager[apsw.Connection]:
        """Begin a write transaction, or join the one that this thread has open.

        It is committed, durably, when the outermost block ends, and rolled back when that raises.
        A joined block that raises dooms the whole: even if the error is caught further out,
        the outermost block rolls back at its end and raises that first error again.  So nobody
        can commit half of what an adapter meant to do as one.

        Raises:
            StoreUnavailableError: another writer held the file too long; nothing was changed.
            StoreReadOnlyError: the file is open for reading only.
            StoreFullError: no room; rolled back.
            RuntimeError: a bug of ours: the thread is inside :meth:`read`, whose snapshot may be
                old, so that SQLite would refuse the write at random.
        """
        mine = self._mine()
        return mine.joined_write or self._write(mine)

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Run a part of this thread's write transaction that may fail alone.

        If it raises, what it did is undone, and the transaction goes on without it; unless
        SQLite has rolled back the whole, as when the disk is full: then nothing of it stands.

        Raises:
            RuntimeError: a bug of ours: no write transaction is open.
            StoreError: as :meth:`write`.
        """
        mine = self._mine()
        if not mine.writing:
            raise RuntimeError("no write transaction is open in this thread")
        connection, doom, calls = mine.connection, mine.doom, len(mine.calls)
        with self._translating():
            connection.execute("SAVEPOINT attempt")
            try:
                yield
                connection.execute("RELEASE attempt")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK TO attempt")
                    connection.execute("RELEASE attempt")
                    mine.doom = doom
                    del mine.calls[calls:]
                else:
                    mine.doom = doom or error
                raise

    def read(self) -> AbstractContextManager[apsw.Connection]:
        """Begin a snapshot, or join the snapshot or write transaction that this thread has."""
        mine = self._mine()
        if mine.inside:
            return mine.joined_read
        return ReadTransaction(mine, store=self._name)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call back once this thread's open write transaction has been committed, if it is.

        Raises:
            RuntimeError: a bug of ours: no write transaction is open.
        """
        mine = self._mine()
        if not mine.writing:
            raise RuntimeError("no write transaction is open in this thread")
        mine.calls.append(call)

    def spare(self) -> ThreadState:
        """Open a connection that is no thread's own, for :meth:`lend`.

        Raises:
            StoreError: as :meth:`open`.
        """
        if self._closed:
            raise StoreClosedError
        return self._connected()

    @contextmanager
    def lend(self, spare: ThreadState) -> Generator[None]:
        """Let this thread alone work on ``spare``, instead of on its own connection.

        Not for the main thread: an interrupt might leave it there, beside the next borrower.
        """
        own = self._local_state()
        local = self._local  # A child that is forked in the block has another, and keeps that.
        local.thread = spare
        try:
            yield
        finally:
            local.thread = own
            if self._closed and local is self._local:  # Its holder may live on.
                spare.connection.close()

    def scrub(self) -> bool:
        """Clear what erased rows left in the log and in the file; see :mod:`.scrubbing`.

        Returns:
            False while a snapshot (of this thread too) or another writer is in the way.
        """
        mine = self._mine()
        if mine.inside or self._read_only:
            return False
        writer = self._writers.lock
        try:
            if not writer.acquire(timeout=SCRUB_WAIT_MS / 1000):
                return False
            with mine.gate, self._translating():
                connection = mine.connection
                connection.set_busy_timeout(SCRUB_WAIT_MS)
                try:
                    mine.files.require_both()
                    return scrub(connection, self.path)
                finally:
                    connection.set_busy_timeout(int(self._busy_timeout_s * 1000))
        finally:
            try:  # noqa: SIM105 - to suppress takes a function, where an interrupt may be met
                writer.release()
            except RuntimeError:
                pass  # Not had.

    def close(self) -> None:
        """Close all connections that this process opened; the last one empties the log.

        A thread that is inside a transaction keeps its connection until that ends.
        """
        if self._pid != os.getpid():
            self.leave_parents_connections()
        self._closed = True
        forking.unwatch(self)
        with self._opening:
            for thread in list(self._threads):
                # What is inside may be this thread's own, whose gate would open once more.
                if not thread.inside and thread.gate.acquire(blocking=False):
                    with suppress(
                        apsw.ThreadingViolationError
                    ):  # In use: it ends with its thread.
                        thread.files.bring_home()
                        thread.connection.close()
                    thread.gate.release()

    # -- Forking: see the module of that name ------------------------------

    def pause(self, wait_s: float) -> None:
        """Before a fork: let no thread of this process begin, wait for those that are inside."""
        self._opening.acquire()
        self._paused.extend(
            thread
            for thread in list(self._threads)
            if thread is not self._local_state() and thread.gate.acquire(timeout=wait_s)
        )

    def resume(self) -> None:
        """After a fork, in the parent: go on."""
        for thread in self._paused:
            thread.gate.release()
        self._paused.clear()
        self._opening.release()

    def leave_parents_connections(self) -> None:
        """After a fork, in the child: begin with connections of its own."""
        inherited = list(self._threads)
        self._begin_anew()
        self._poisoned = not forking.let_go(
            [(thread.connection, thread.inside) for thread in inherited]
        )

    # -- Inside ------------------------------------------------------------

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._poisoned = False
        self._local = _Local()
        self._threads: WeakSet[ThreadState] = WeakSet()
        self._opening = threading.Lock()
        self._writers = Writers()
        self._paused: list[ThreadState] = []

    def _local_state(self) -> ThreadState | None:
        if self._pid != os.getpid():
            self.leave_parents_connections()
        return self._local.thread

    def _mine(self) -> ThreadState:
        # A dozen times in each write, so with as few steps as can be.
        if self._pid != os.getpid():  # Forked by something that calls no hooks.
            self.leave_parents_connections()
        if self._closed:
            raise StoreClosedError
        mine = self._local.thread
        if mine is None:
            return self._opened()
        if mine.immutable and has_log(self.path):
            mine.connection.close()  # Somebody writes to what looked like read-only media.
            return self._opened()
        return mine

    def _opened(self) -> ThreadState:
        mine = self._local.thread = self._connected()
        return mine

    def _connected(self) -> ThreadState:
        if self._poisoned:
            raise StoreUnavailableError(
                store=self._name,
                problem="this process was forked inside a transaction; start it afresh",
            )
        with self._opening, self._translating():
            for one in [one for one in self._threads if not one.immutable][:1]:
                one.files.require_both()
            connection = connect(
                self.path, busy_timeout_s=self._busy_timeout_s, read_only=self._read_only
            )
            thread = ThreadState(connection, self.path)
            self._threads.add(thread)
            return thread

    def _write(self, mine: ThreadState) -> WriteTransaction:
        if mine.inside:
            raise RuntimeError("a write transaction can't begin inside a snapshot")
        if self._read_only:
            raise StoreReadOnlyError(store=self._name)
        return WriteTransaction(
            mine,
            writers=self._writers,
            busy_timeout_s=self._busy_timeout_s,
            store=self._name,
        )

    def _translating(self) -> AbstractContextManager[None]:
        return translating(store=self._name)


class _Local(threading.local):
    """What each thread has of its own."""

    thread: ThreadState | None = None


def _may_not_be_written(path: Path) -> bool:
    return exists(path) and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
