"""A thread's own transactions in the file: a snapshot, or one that writes.

They are what :meth:`Database.read` and :meth:`Database.write` begin where there is nothing to
join.  Classes, since each entry that is remembered pays for one: as generators, nested in each
other, they cost as much as ten of its statements.

An interrupt or a signal's handler may raise wherever Python looks for signals: on the way into a
function, and out of a call of C.  So whatever must be undone is undone without a function of ours
between, and a block whose end never began is ended with its object, as a generator would be.  When
it raises out of ``acquire``, the lock may be had or not: so locks are of the kind that knows its
thread, and that refuses to be released by one that doesn't have it.  A block that another thread
ends, as one that a generator was left in may be, puts new ones in their place.
"""

import time
from threading import RLock
from types import TracebackType
from typing import NoReturn

import apsw

from remembrancer.adapters.sqlite.thread_state import JoinedWrite, ThreadState
from remembrancer.adapters.sqlite.translation import raise_translated
from remembrancer.domain.errors import StoreUnavailableError

BEGIN_RETRY_S = 0.001
"""How often a writer looks whether another process is done."""


class Writers:
    """The lock that a process's writers hold, one at a time: its threads queue there."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = RLock()
        """Those that wait for one when another takes its place are told that they have to."""


class ReadTransaction:
    """A snapshot."""

    __slots__ = ("_begun", "_mine", "_store")

    def __init__(self, mine: ThreadState, *, store: str) -> None:
        self._begun = False
        self._mine = mine
        self._store = store

    def __enter__(self) -> apsw.Connection:
        mine = self._mine
        try:
            mine.gate.acquire()
            mine.connection.execute("BEGIN")
        except BaseException as error:
            try:
                if mine.connection.in_transaction:
                    mine.connection.execute("ROLLBACK")
            finally:
                try:  # noqa: SIM105 - to suppress takes a function
                    mine.gate.release()
                except RuntimeError:
                    pass  # Not had.
            raise_translated(error, store=self._store)
            raise
        mine.inside = self._begun = True
        return mine.connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._begun = False
        mine = self._mine
        try:
            try:
                if mine.connection.in_transaction:
                    mine.connection.execute("COMMIT")
            finally:
                mine.inside = False
                mine.number += 1
                try:
                    mine.gate.release()
                except RuntimeError:  # The thread that began this has it.
                    mine.gate = RLock()
        except BaseException as failure:
            raise_translated(failure, store=self._store)
            raise
        if error is not None:
            raise_translated(error, store=self._store)

    def __del__(self) -> None:
        if getattr(self, "_begun", False):  # Unless interrupted before it was made.
            self.__exit__(None, None, None)


class WriteTransaction:
    """Committed, durably, when the block ends; rolled back when it raises or is doomed."""

    __slots__ = ("_begun", "_busy_timeout_s", "_held", "_mine", "_store", "_writers")

    def __init__(
        self, mine: ThreadState, *, writers: Writers, busy_timeout_s: float, store: str
    ) -> None:
        """Hold the lock of ``writers`` meanwhile: whoever waits for it doesn't poll SQLite."""
        self._begun = False
        self._mine = mine
        self._writers = writers
        self._held = writers.lock
        self._busy_timeout_s = busy_timeout_s
        self._store = store

    def __enter__(self) -> apsw.Connection:
        mine = self._mine
        try:
            if not self._held.acquire(timeout=self._busy_timeout_s):
                self._raise_held()
            mine.gate.acquire()
            self._begin(mine.connection)
            mine.files.require_file()
            mine.heads.begin(mine.connection.data_version())
            mine.joined_write = JoinedWrite(mine)
        except BaseException as error:
            mine.joined_write = None
            try:
                if mine.connection.in_transaction:
                    mine.connection.execute("ROLLBACK")
            finally:
                try:
                    mine.gate.release()
                except RuntimeError:
                    pass  # Not had.
                finally:
                    try:  # noqa: SIM105 - as above
                        self._held.release()
                    except RuntimeError:
                        pass  # Not had.
            raise_translated(error, store=self._store)
            raise
        mine.inside = mine.writing = self._begun = True
        return mine.connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._begun = False
        mine = self._mine
        calls = mine.calls
        try:
            try:
                if error is None:
                    mine.raise_if_doomed()
                    mine.connection.execute("COMMIT")
                    mine.heads.committed(mine.connection.data_version())
            finally:
                if mine.connection.in_transaction:
                    mine.connection.execute("ROLLBACK")
        except BaseException as failure:
            raise_translated(failure, store=self._store)
            raise
        finally:
            mine.inside = mine.writing = False
            mine.joined_write = None
            mine.doom, mine.calls = None, []
            mine.number += 1
            try:
                mine.gate.release()
            except RuntimeError:  # The thread that began this has it.
                mine.gate = RLock()
            finally:
                try:
                    self._held.release()
                except RuntimeError:  # As above.
                    self._writers.lock = RLock()
        if error is not None:
            raise_translated(error, store=self._store)
            return
        for call in calls:
            call()

    def __del__(self) -> None:
        if getattr(self, "_begun", False):  # Unless interrupted before it was made.
            lost = RuntimeError("the block's end never began")
            self.__exit__(RuntimeError, lost, None)

    def _raise_held(self) -> NoReturn:
        raise StoreUnavailableError(store=self._store, problem="another writer holds it")

    def _begin(self, connection: apsw.Connection) -> None:
        # SQLite's own busy handler backs off to 100 ms between attempts, and meanwhile the process
        # that writes takes the lock again and again: others were kept waiting for seconds.
        connection.set_busy_timeout(0)
        try:
            for _ in range(int(self._busy_timeout_s / BEGIN_RETRY_S)):
                try:
                    connection.execute("BEGIN IMMEDIATE")
                except apsw.BusyError:
                    time.sleep(BEGIN_RETRY_S)
                else:
                    return
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.set_busy_timeout(int(self._busy_timeout_s * 1000))
