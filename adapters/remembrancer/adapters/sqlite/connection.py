"""One connection, set up and checked.

apsw's own defaults are ``secure_delete=0``, ``busy_timeout=0``, ``foreign_keys=0`` and
``trusted_schema=1``; every setting is made here and read back, since SQLite ignores a pragma that
it does not know.
"""

import importlib.util
import os
import time
from functools import cache
from pathlib import Path

import apsw

from remembrancer.adapters.sqlite import schema
from remembrancer.domain.errors import SettingsError, StoreForbiddenError, StoreUnavailableError

JOURNAL_KEPT_BYTES = 16 * 1024 * 1024
"""A longer write-ahead log is cut to this after it was checkpointed."""
WAL_RETRY_S = 0.01

_SETTINGS: dict[str, int] = {
    "synchronous": 2,  # FULL: an acknowledged commit survives a power cut.
    "foreign_keys": 1,
    "secure_delete": 1,
    "temp_store": 2,  # In memory: what an undone statement would need must not reach the disk.
    "trusted_schema": 0,
    "cell_size_check": 1,
}
"""Made on every connection, and checked."""
_WISHES: dict[str, int] = {
    # Mapped pages are checked again at every access while cell_size_check is on: FTS5 reads took
    # 2.5 to 4 times as long.  And a read error in a mapping is a signal, not an exception.
    "mmap_size": 0,
    "journal_size_limit": JOURNAL_KEPT_BYTES,
}
"""For speed and size only; a file system may not have them."""


def connect(path: Path, *, busy_timeout_s: float, read_only: bool) -> apsw.Connection:
    """Return a checked connection, with the schema in place.

    Raises:
        StoreError: see :meth:`Database.open`.
        apsw.Error: to be translated by the caller.
    """
    connection = _opened(path, read_only=read_only)
    try:
        busy_timeout_ms = int(busy_timeout_s * 1000)
        connection.set_busy_timeout(busy_timeout_ms)
        _load_vectors(connection)
        with connection:  # One snapshot: another process may be making the schema right now.
            current = schema.is_current(connection, store=str(path))
        if not connection.readonly("main"):
            _use_wal(connection, attempts=1 + int(busy_timeout_s / WAL_RETRY_S))
        for name, value in {**_SETTINGS, **_WISHES}.items():
            connection.pragma(name, value)
        # One plan a statement, whatever is bound to it.  Else SQLite, built with STAT4, prepares
        # some anew with each execution: a look-up in the log took three times as long.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        _check(connection, busy_timeout_ms)
        if not current:
            schema.apply(connection, store=str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def check_path(path: Path) -> None:
    """See that a file may lie there.

    Raises:
        SettingsError: it can't.
        StoreForbiddenError: the system's permissions are against it.
    """
    if str(path) == ":memory:" or "\0" in str(path):
        problem = "is not the name of a file"
    elif os.path.isdir(path):  # noqa: PTH112  # pathlib raises where it may not look
        problem = "is a folder; name a file in it"
    elif not os.path.isdir(path.parent):  # noqa: PTH112  # as above
        problem = "lies in a folder that does not exist; create it first"
    elif not exists(path) and not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreForbiddenError(store=str(path), problem="can't be made in this folder")
    elif exists(path) and not os.access(path, os.R_OK):
        raise StoreForbiddenError(store=str(path), problem="may not be read")
    elif not path.is_absolute() and not _has_folder():
        problem = "is relative, and the folder this process works in is gone"
    else:
        return
    raise SettingsError(setting="store.path", problem=f"{path} {problem}")


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # as above
    except OSError:
        return False
    return True


def exists(path: Path) -> bool:
    """Say whether something lies there; no, where we may not look."""
    return os.path.exists(path)  # noqa: PTH110 - pathlib raises where it may not look


def has_log(path: Path) -> bool:
    """Say whether a write-ahead log lies beside ``path`` that holds something."""
    try:
        return os.stat(wal_path(path)).st_size > 0  # noqa: PTH116  # as above
    except OSError:
        return False


def wal_path(path: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of ``path``."""
    return path.with_name(path.name + "-wal")


def _opened(path: Path, *, read_only: bool) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if not read_only:
        return apsw.Connection(str(path), flags=flags)
    if not exists(path):
        raise StoreUnavailableError(store=str(path), problem="there is no such file")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.pragma("user_version")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
        if has_log(path):
            raise StoreForbiddenError(
                store=str(path),
                problem="can't be read with its log (-wal) where no file may be made beside them",
                see_to="the folder's permissions, or copy both to where files may be made",
            ) from None
        # Read-only media: no log can be made beside the file, and none is needed, because it was
        # closed in order.  Database looks for a log before each snapshot and opens anew then.
        uri = f"{path.absolute().as_uri()}?immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(uri, flags=flags)
    return connection


def _use_wal(connection: apsw.Connection, *, attempts: int) -> None:
    # SQLite does not call the busy handler while it changes the journal mode,
    # which matters when several processes open a new file at the same time.
    for attempt in range(attempts):
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if attempt + 1 == attempts:
                raise
            time.sleep(WAL_RETRY_S)
        else:
            return


def _check(connection: apsw.Connection, busy_timeout_ms: int) -> None:
    expected: dict[str, int | str] = {**_SETTINGS, "busy_timeout": busy_timeout_ms}
    if not connection.readonly("main"):
        expected["journal_mode"] = "wal"
    for name, value in expected.items():
        found = connection.pragma(name)
        if found != value:
            raise RuntimeError(f"this SQLite library does not take {name}={value}: {found}")
    if not connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1):
        raise RuntimeError("this SQLite library does not keep to one plan for a statement")


def _load_vectors(connection: apsw.Connection) -> None:
    connection.enable_load_extension(True)
    try:
        connection.load_extension(_vector_library())
    finally:
        connection.enable_load_extension(False)


@cache
def _vector_library() -> str:
    # `import sqlite_vec` would import numpy, 0.2 s; its folder is all that is needed.
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("sqlite_vec is not installed", name="sqlite_vec")
    return str(Path(spec.submodule_search_locations[0]) / "vec0")
