"""Clearing what erased rows left in the files: the write-ahead log, and stale copies in pages.

``secure_delete`` overwrites a row where it lies.  But when SQLite splits or joins pages it moves
rows, and what it moved stays in the unused part of the old page until something else needs it.
Our own tables never let a row move (adr/0003).  FTS5 and sqlite-vec keep tables of their own, in
which rows do: one word of 130,000 erased ones was still readable.  So the unused parts of those
tables' pages are overwritten here, in the file itself.  That is safe because

- this connection has the write lock and the log is empty: nobody else can change the file;
- only bytes that belong to no row are written, and those that are zero already aren't: a reader
  who comes by, or a power cut, sees the same rows before, meanwhile and after;
- the file is opened by SQLite's own file system, which keeps its locks (adr/0002).

What other connections remember of the pages they forget at the commit that follows.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from remembrancer.adapters.sqlite.connection import wal_path

ATTEMPTS = 3
"""How often it begins anew because another process wrote in between."""

# Tables whose names begin with a virtual table's are those that it keeps for itself.
_ROOTS = (
    "SELECT own.rootpage FROM sqlite_schema AS own JOIN sqlite_schema AS virtual"
    " ON own.name GLOB virtual.name || '_*'"
    " WHERE virtual.type = 'table' AND virtual.rootpage = 0 AND own.rootpage > 0"
)
_NEWS = "UPDATE schema_info SET scripts_sha256 = scripts_sha256"
"""Changes nothing, but makes every connection read its pages again."""

_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE = 2, 5, 10, 13
_INTERIOR = (_INTERIOR_INDEX, _INTERIOR_TABLE)
_PAGES = (*_INTERIOR, _LEAF_INDEX, _LEAF_TABLE)


def scrub(connection: apsw.Connection, path: Path) -> bool:
    """Empty the log and the unused parts of pages; False if a snapshot or a writer is in the way.

    The caller keeps other threads of this process from writing.
    """
    try:
        for _ in range(ATTEMPTS):
            if not _truncated(connection, path):
                return False
            connection.execute("BEGIN IMMEDIATE")
            try:
                if _size(wal_path(path)) == 0:
                    found = _cleared(connection, path)
                    if not found:
                        return True
                    connection.execute(_NEWS)
                    connection.execute("COMMIT")
                    connection.pragma("shrink_memory")  # As news is for the others.
                    return _truncated(connection, path)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
    except apsw.BusyError:
        return False
    return False


def _truncated(connection: apsw.Connection, path: Path) -> bool:
    frames, copied = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    if not frames == 0 == copied:
        return False
    log = wal_path(path)
    if log.exists():
        # SQLite needs no sync here, but after a power cut the old log would be there again.
        with closing(_File(_opened(log, apsw.SQLITE_OPEN_WAL), 0)) as file:
            file.sync()
    return True


def _opened(path: Path, kind: int) -> apsw.VFSFile:
    return apsw.VFSFile("", str(path), [kind | apsw.SQLITE_OPEN_READWRITE, 0])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _cleared(connection: apsw.Connection, path: Path) -> bool:
    """Overwrite unused bytes; say whether there were any that held something."""
    page_bytes: int = connection.pragma("page_size")
    roots = [root for (root,) in connection.execute(_ROOTS)]
    found = False
    with closing(_File(_opened(path, apsw.SQLITE_OPEN_MAIN_DB), page_bytes)) as file:
        while roots:
            number = roots.pop()
            page = file.page(number)
            if len(page) < page_bytes or page[0] not in _PAGES:
                raise apsw.CorruptError(f"page {number} is none of a table")
            for start, end in _unused(page):
                if page.count(0, start, end) < end - start:
                    file.wipe(number, start, end)
                    found = True
            if page[0] in _INTERIOR:
                roots += _children(page)
        if found:
            file.sync()
    return found


class _File:
    """The database file, by pages."""

    def __init__(self, file: apsw.VFSFile, page_bytes: int) -> None:
        self._file = file
        self._page_bytes = page_bytes

    def page(self, number: int) -> bytes:
        return self._file.xRead(self._page_bytes, (number - 1) * self._page_bytes)

    def wipe(self, number: int, start: int, end: int) -> None:
        self._file.xWrite(bytes(end - start), (number - 1) * self._page_bytes + start)

    def sync(self) -> None:
        self._file.xSync(apsw.SQLITE_SYNC_FULL)

    def close(self) -> None:
        self._file.xClose()


def _unused(page: bytes) -> Iterator[tuple[int, int]]:
    """Yield where no row is, before the first one and between rows (SQLite's file format, 1.6)."""
    yield _cells(page)[1], _number(page, 5) or 65536
    block = _number(page, 1)
    while block:
        # The first four bytes of a free block say where the next is and how long this one.
        following, length = _number(page, block), _number(page, block + 2)
        yield block + 4, block + length
        if following and following <= block:
            raise apsw.CorruptError("free blocks of a page are out of order")
        block = following


def _children(page: bytes) -> Iterator[int]:
    start, end = _cells(page)
    for pointer in range(start, end, 2):
        yield int.from_bytes(page[(cell := _number(page, pointer)) : cell + 4], "big")
    yield int.from_bytes(page[8:12], "big")


def _cells(page: bytes) -> tuple[int, int]:
    """Return where the pointers to a page's rows begin and end."""
    start = 12 if page[0] in _INTERIOR else 8
    return start, start + 2 * _number(page, 3)


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 2], "big")
