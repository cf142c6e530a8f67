"""Whether the files that a connection has open still lie where they were opened.

A file that was moved, deleted, or replaced by a backup under an open memory would take every write
and acknowledge it, and nobody would find it again; the next thread's connection would open
whatever lies there instead, beside the first one's log.  SQLite knows how to look, but does so
only before it writes with a rollback journal.  So every write asks it, for a hundredth of what it
costs; and every further connection looks for the log too, of which SQLite can't be asked.  What is
read meanwhile is the file that was opened.
"""

import os
from array import array
from contextlib import suppress
from pathlib import Path

import apsw

from remembrancer.adapters.sqlite.connection import wal_path
from remembrancer.domain.errors import StoreMovedError

_HAS_MOVED = apsw.SQLITE_FCNTL_HAS_MOVED


class FilesInPlace:
    """The database file and its write-ahead log, as one connection has just opened them.

    SQLite keeps both as long as the connection is open.  Only their numbers in the file system
    are compared, as SQLite does: those of devices change with a mount.
    """

    __slots__ = ("_answer", "_answer_at", "_connection", "_log", "_numbers", "_path")

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = str(path)
        self._log = str(wal_path(path))
        self._numbers = self._found()
        # A C int for SQLite to write to; ctypes would take 5 ms to import.
        self._answer = array("i", [0])
        self._answer_at = self._answer.buffer_info()[0]

    def require_file(self) -> None:
        """See that the file lies where it did.

        Raises:
            StoreMovedError: it doesn't.
        """
        self._connection.file_control("main", _HAS_MOVED, self._answer_at)
        if self._answer[0]:
            raise StoreMovedError(store=self._path)

    def require_both(self) -> None:
        """See that both lie where they did.

        Raises:
            StoreMovedError: they don't.
        """
        if self._found() != self._numbers:
            raise StoreMovedError(store=self._path)

    def bring_home(self) -> None:
        """Before closing, put what is in the log into a file that lies elsewhere now.

        SQLite itself leaves such a log as it is, where it is: what it holds would be lost with
        the one file, and would spoil another that lies there now.
        """
        if self._found()[0] != self._numbers[0]:
            with suppress(apsw.Error):  # A reader is in the way, or it is for reading only.
                self._connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _found(self) -> tuple[int | None, int | None]:
        return _number(self._path), _number(self._log)


def _number(path: str) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - pathlib raises where it may not look
    except OSError:
        return None
