"""One process's part in a database: its connections, and what each of its threads is doing."""

import os
import threading
from functools import partial

from remembrancer.adapters.postgres.bell import Bell
from remembrancer.adapters.postgres.connection import connect
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.sessions import Sessions
from remembrancer.adapters.postgres.thread_state import ThreadState


class ProcessState:
    """Nothing of it may be used in a forked child, which makes its own."""

    def __init__(self, dsn: str, *, reader_dsn: str | None, limits: Limits, store: str) -> None:
        """Open nothing yet."""
        self._pid = os.getpid()
        self._local = threading.local()
        self.sessions = Sessions(dsn, reader_dsn=reader_dsn, limits=limits, store=store)
        self.bell = Bell(
            connect=partial(connect, dsn, limits=limits, store=store),
            lent=self.sessions.app.lent,
            listens=limits.keeps_sessions,
        )

    @property
    def is_here(self) -> bool:
        """Whether this is the process that it belongs to."""
        return self._pid == os.getpid()

    @property
    def thread(self) -> ThreadState:
        """The calling thread's part."""
        mine: ThreadState | None = getattr(self._local, "mine", None)
        if mine is None:
            mine = self._local.mine = ThreadState()
        return mine

    def close(self) -> None:
        """Close all connections; one that is in use when its transaction ends."""
        self.bell.close()
        self.sessions.close()

    def leave(self) -> None:
        """In a forked child: leave what is the parent's."""
        self.bell.abandon()
        self.sessions.leave()
