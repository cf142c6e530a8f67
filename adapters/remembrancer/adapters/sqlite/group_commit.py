"""Several threads' work in one durable commit.

A durable commit waits for the disk, and the disk does one at a time.  So the first thread that
comes leads: it runs what is waiting, its own first, in one transaction, and commits once; what
arrives meanwhile is the next group.  Sixteen owners get twice the throughput of one this way, and
nobody waits for more than the commit that was under way and the own one.

There is no thread of its own to start, stop or fork: whoever waits can lead.
"""

import copy
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import apsw

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.translation import translating
from remembrancer.domain.errors import OutcomeUnknownError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from remembrancer.adapters.sqlite.thread_state import ThreadState

GROUP_MAX = 64
"""Pieces of work in one commit: nobody's commit becomes long by others' work."""

_Result = TypeVar("_Result")


class Batch(Protocol):
    """What the calls of one group gather, to be written together."""

    def begin(self, connection: apsw.Connection) -> None:
        """Begin with nothing, in a transaction that has just begun."""
        ...

    def write(self) -> None:
        """Write what the calls have gathered; the commit comes next."""
        ...


class GroupCommit:
    """One process's queue to the write lock of one database.

    A forked child must make its own: the parent's leader doesn't live there.
    """

    def __init__(self, *, database: Database, batch: Batch | None = None) -> None:
        self._database = database
        self._store = str(database.path)
        self._batch = batch
        # What follows is only touched by who leads.
        self._spare: ThreadState | None = None
        self._last_size = 0
        self._mutex = threading.Lock()
        # What follows is only touched under the mutex.
        self._queue: deque[_Work[Any]] = deque()
        self._leader: _Work[Any] | None = None

    def run(self, call: Callable[[apsw.Connection], _Result]) -> _Result:
        """Run ``call`` in a write transaction, perhaps with others' and in another thread.

        It is committed durably when this returns, and has been undone when it raised.  An error
        of one leaves the others alone.  It runs once at most.

        Raises:
            OutcomeUnknownError: the commit was not confirmed.
            StoreError: nothing of it was committed.
            RuntimeError: a bug of ours: this thread is inside a transaction already.
        """
        if self._database.in_transaction:
            raise RuntimeError("what is inside a transaction can't be committed durably by itself")
        # Signals reach the main thread only: there, an interrupt must not meet others' work.
        alone = threading.current_thread() is threading.main_thread()
        work = _Work(call, alone=alone)
        try:
            leads = self._leads(work, comes=True)
            while not work.done:
                if leads:
                    self._lead(work)
                else:
                    work.wait()
                    leads = self._leads(work)
        except BaseException:  # Interrupted: let no one wait for this thread.
            self._hand_over(work)
            raise
        return work.outcome()

    def _leads(self, work: "_Work[Any]", *, comes: bool = False) -> bool:
        with self._mutex:
            if comes:
                self._queue.append(work)
            if self._leader is None and not work.done:
                self._leader = work
            return self._leader is work

    def _hand_over(self, work: "_Work[Any]") -> None:
        with self._mutex:
            if self._leader is work:
                self._leader = None
            if work in self._queue:
                self._queue.remove(work)
            if self._leader is None and self._queue:
                self._queue[0].ring()

    def _lead(self, mine: "_Work[Any]") -> None:
        group: list[_Work[Any]] = []
        committing = False
        try:
            # Taken before the lock is waited for, so that all who waited for it fail together.
            self._take(mine, group)
            with self._connection(mine), self._database.write() as connection:
                if self._batch:
                    self._batch.begin(connection)
                for work in group:  # It grows meanwhile.
                    work.run(connection, store=self._store)
                    if not connection.in_transaction:
                        break  # SQLite has rolled all of it back, and says so at the end.
                    if work is group[-1]:
                        self._gather(mine, group)
                self._last_size = len(group)
                if self._batch and connection.in_transaction:
                    self._batch.write()
                committing = connection.in_transaction
        except BaseException as error:  # noqa: BLE001 - each of the group raises it, or its like
            unknown = committing and isinstance(error, StoreError)
            for work in group:
                own = work is mine and not unknown
                work.fail(error if own else self._failed(error, committing=committing))
        finally:
            self._hand_over(mine)  # The next group goes to the disk before this one is told.
            for work in group:
                work.finish()

    def _connection(self, mine: "_Work[Any]") -> AbstractContextManager[None]:
        """Let whoever leads work on one connection, whose cache each commit leaves warm."""
        if mine.alone:
            return nullcontext()
        if self._spare is None:
            self._spare = self._database.spare()
        return self._database.lend(self._spare)

    def _take(self, mine: "_Work[Any]", group: "list[_Work[Any]]") -> None:
        with self._mutex:
            if not group:
                self._queue.remove(mine)
                group.append(mine)
            while not mine.alone and self._queue and len(group) < GROUP_MAX:
                group.append(self._queue.popleft())

    def _gather(self, mine: "_Work[Any]", group: "list[_Work[Any]]") -> None:
        """Take what has come meanwhile, and what is about to come.

        Those of the last group who are awake need the interpreter for some microseconds to come
        again.  Let them have it once: they would wait for a whole commit, and the disk for them.
        """
        self._take(mine, group)
        if len(group) < self._last_size and not mine.alone:
            time.sleep(0)
            self._take(mine, group)

    def _failed(self, error: BaseException, *, committing: bool) -> StoreError:
        if committing:
            failed: StoreError = OutcomeUnknownError(store=self._store)
        elif isinstance(error, StoreError):
            failed = copy.copy(error)  # An exception raised in two threads mixes their tracebacks.
        else:
            failed = StoreUnavailableError(
                store=self._store,
                problem="the thread that was to commit was stopped before it did",
            )
        failed.__cause__ = error
        return failed


class _Work(Generic[_Result]):
    """One call and what became of it."""

    def __init__(self, call: Callable[[apsw.Connection], _Result], *, alone: bool) -> None:
        self.alone = alone
        """Whether nobody else's work may be committed together with it."""
        self.done = False
        self._call = call
        self._bell: SimpleQueue[None] = SimpleQueue()  # Far cheaper than an Event.
        self._result: _Result | None = None
        self._error: BaseException | None = None

    def run(self, connection: apsw.Connection, *, store: str) -> None:
        try:
            with translating(store=store):
                self._result = self._call(connection)
        except BaseException as error:  # noqa: BLE001 - raised again where the caller waits
            self._error = error

    def fail(self, error: BaseException) -> None:
        # What the call itself raised is closer to its caller, except for an interrupt.
        if self._error is None or not isinstance(error, Exception):
            self._error = error

    def wait(self) -> None:
        """Wait until it is done, or until somebody should lead."""
        self._bell.get()

    def ring(self) -> None:
        self._bell.put(None)

    def finish(self) -> None:
        self.done = True
        self._bell.put(None)

    def outcome(self) -> _Result:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # It holds this frame, which holds it.
        return cast("_Result", self._result)
