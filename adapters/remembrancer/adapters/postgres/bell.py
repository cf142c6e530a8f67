"""Telling followers, in all processes, that the log has grown.

PostgreSQL takes one lock of the whole server for a NOTIFY at its commit, so none is sent in a
writer's transaction: a thread of its own sends one after the commit, for all commits since its
last.  It says nothing but that there is something.  Who misses one, or can't listen because a
pooler gives each transaction another session, finds the events by looking from time to time.
"""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial

import psycopg

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.domain.errors import StoreError

CHANNEL = "remembrancer_events"
REST_S = 0.02
"""Between two notifications of one process."""
AGAIN_S = 1.0
"""How long after it has failed a listener tries again."""

_RING = f"NOTIFY {CHANNEL}"
_LISTEN = f"LISTEN {CHANNEL}"


class Bell:
    """Rung after commits; wakes the followers of this process at once, others by the server."""

    def __init__(
        self,
        *,
        connect: Callable[[], Connection],
        lent: Callable[[], AbstractContextManager[Connection]],
        listens: bool = True,
    ) -> None:
        """Start nothing yet.

        Args:
            connect: opens a connection to listen on.
            lent: lends one to ring with.
            listens: whether a session that listens is kept; nobody else should be given it.
        """
        self._listens = listens
        self._connect = connect
        self._lent = lent
        self._guard = threading.Lock()
        self._rung = threading.Event()
        self._closed = threading.Event()
        self._ends: tuple[socket.socket, socket.socket] | None = None
        """What a listener waits on besides the server, and what wakes it there."""
        self._followers = set[threading.Event]()
        self._ringer: threading.Thread | None = None
        self._listener: threading.Thread | None = None

    def ring(self) -> None:
        """Say that something was committed."""
        self._wake()
        if not self._rung.is_set():  # Else the ringer hasn't begun to tell of the one before.
            self._rung.set()
        if self._ringer is None:
            with self._guard:
                if self._ringer is None and not self._closed.is_set():
                    self._ringer = self._started(self._send, "remembrancer-notify")

    def follow(self, event: threading.Event) -> None:
        """Set ``event`` whenever the log may have grown."""
        with self._guard:
            self._followers.add(event)
            if self._listens and self._listener is None and not self._closed.is_set():
                self._ends = socket.socketpair()
                listen = partial(self._listen, self._ends[0])
                self._listener = self._started(listen, "remembrancer-listen")

    def leave(self, event: threading.Event) -> None:
        """Set it no more."""
        with self._guard:
            self._followers.discard(event)

    def close(self) -> None:
        """End, and wait for what is being sent."""
        self._closed.set()
        self._rung.set()
        if self._ends is not None:
            self._ends[1].close()
        for thread in (self._ringer, self._listener):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        self.abandon()

    def abandon(self) -> None:
        """Close what a forked child has a copy of; the threads stayed with the parent."""
        for end in self._ends or ():
            end.close()

    def _wake(self) -> None:
        for event in list(self._followers):
            if not event.is_set():  # Who clears it looks at the log only then.
                event.set()

    def _send(self) -> None:
        while not self._closed.is_set():
            self._rung.wait()
            self._rung.clear()
            with suppress(psycopg.Error, StoreError), self._lent() as connection:
                connection.execute(_RING)
            self._closed.wait(REST_S)

    def _listen(self, ending: socket.socket) -> None:
        while not self._closed.is_set():
            with suppress(psycopg.Error, StoreError), self._connect() as connection:
                connection.execute(_LISTEN)
                self._wake()  # For what was committed before.
                while not self._closed.is_set():
                    select.select([connection.fileno(), ending.fileno()], [], [])
                    for _ in connection.notifies(timeout=0):
                        self._wake()
            self._closed.wait(AGAIN_S)

    @staticmethod
    def _started(call: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=call, name=name, daemon=True)
        thread.start()
        return thread
