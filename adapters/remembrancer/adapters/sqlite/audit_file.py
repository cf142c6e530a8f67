"""Opening a file to be audited, so that nothing of it, or beside it, changes.

SQLite's plain reading makes ``-wal`` and ``-shm`` beside a file in WAL mode, and refuses where it
can't.  What is safe instead depends on who else may be at the file (adr/0021):

- *nobody has it open, and its log is empty or gone*: as immutable, the file alone;
- *nobody has it open, and its log holds commits* (a crashed host, a copy with its log): through
  SQLite's file system without locks, the log's index in memory;
- *somebody has it open*: as any other reader, under its locks.  Only the ``-shm`` is written to
  then, which holds them.

Where locks weren't taken, :meth:`AuditFile.was_written` tells afterwards whether somebody came.
"""

import os
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from remembrancer.adapters.sqlite.connection import check_path, exists, wal_path
from remembrancer.adapters.sqlite.translation import translating
from remembrancer.domain.errors import StoreUnavailableError

_READING: Final = apsw.SQLITE_OPEN_READONLY
_WITHOUT_LOCKS: Final = "unix-none"
_SHM_LOCKS: Final = (120, 9)
"""First byte and number of bytes of a ``-shm`` that SQLite locks while a file is open."""
_FLOCK: Final = "hhqqi4x"
"""Linux's ``struct flock`` on 64 bits."""
_CACHE_KIB: Final = 16 * 1024
"""Of pages: what is read all over the file is seldom met again, and more memory than stays in the
processor's own cache makes reading slower (adr/0021)."""
_SETTINGS: Final = {
    "query_only": 1,
    "temp_store": 2,
    "trusted_schema": 0,
    "cell_size_check": 1,
    # The map of a file would count as our memory.
    "cache_size": -_CACHE_KIB,
    "mmap_size": 0,
}

_State = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class AuditFile:
    """An open file, and how it looked from outside when it was opened."""

    connection: apsw.Connection
    path: Path
    before: _State | None
    """None where locks keep writers from what is being read."""

    def was_written(self) -> bool:
        """Say whether somebody wrote while no lock was held."""
        return self.before is not None and self.before != _state(self.path)


@contextmanager
def open_for_audit(
    path: Path, *, busy_timeout_s: float = 5.0, is_ours: bool = False
) -> Generator[AuditFile]:
    """Open ``path`` for reading one state of it; leave no trace.

    Args:
        path: the database file.
        busy_timeout_s: how long to wait for another process's lock.
        is_ours: this process has it open already.  Then it isn't looked at whether somebody has:
            closing a file drops all locks that this process has on it.

    Raises:
        SettingsError: the path names a folder, or lies in a folder that does not exist.
        StoreUnavailableError: it is missing, or can't be opened.
        StoreForbiddenError: it may not be read.
        StoreCorruptError: it isn't a database, or damaged.
    """
    path = Path(os.path.realpath(path))
    check_path(path)
    if not exists(path):
        raise StoreUnavailableError(store=str(path), problem="there is no such file")
    with translating(store=str(path)):
        is_live = exists(_shm_path(path)) and (is_ours or _is_locked(_shm_path(path)))
        connection, before = _opened(path, is_live=is_live)
    try:
        with translating(store=str(path)):
            connection.set_busy_timeout(int(busy_timeout_s * 1000))
            for name, value in _SETTINGS.items():
                connection.pragma(name, value)
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # As connection.py says.
            connection.execute("BEGIN")
            connection.pragma("user_version")  # From here on it is one state.
        yield AuditFile(connection, path, before)
    finally:
        connection.close()


def _opened(path: Path, *, is_live: bool) -> tuple[apsw.Connection, _State | None]:
    if is_live:
        return apsw.Connection(str(path), flags=_READING), None
    before = _state(path)
    if not before[1] or not before[1][0]:  # No log, or an empty one.
        uri = f"{path.as_uri()}?immutable=1"
        return apsw.Connection(uri, flags=_READING | apsw.SQLITE_OPEN_URI), before
    connection = apsw.Connection(str(path), flags=_READING, vfs=_WITHOUT_LOCKS)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    # So the log's index is in memory, and no -shm is needed.
    connection.pragma("locking_mode", "exclusive")
    return connection, before


def _is_locked(shm: Path) -> bool:
    """Say whether some process has the store open; where that can't be known, yes."""
    if sys.platform != "linux":
        return True
    import fcntl  # noqa: PLC0415  # not on every system

    try:
        file = os.open(shm, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        start, length = _SHM_LOCKS
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
        return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
    except OSError:
        return True
    finally:
        os.close(file)


def _shm_path(path: Path) -> Path:
    return path.with_name(path.name + "-shm")


def _state(path: Path) -> _State:
    """Return size and time of change of the file and of its log."""
    found: list[tuple[int, int] | None] = []
    for one in (path, wal_path(path)):
        try:
            status = os.stat(one)  # noqa: PTH116 - pathlib raises where it may not look
        except OSError:
            found.append(None)
        else:
            found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)
