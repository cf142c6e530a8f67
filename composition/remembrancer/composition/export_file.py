"""An export as a file: made for its owner's eyes only, whole or not at all, packed if named so."""

import errno
import gzip
import os
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from remembrancer.application.audit.seal import LINE_BYTES_MAX as SEAL_LINE_BYTES_MAX
from remembrancer.application.export_bounds import SMALL_BYTES, bytes_max
from remembrancer.domain.errors import InvalidInputError, StoreFullError, StoreUnavailableError
from remembrancer.domain.export_errors import DamagedExportError

PACKED = ".gz"
_OWNERS_ONLY = 0o600
_GZIP_MAGIC = b"\x1f\x8b"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def created(path: Path) -> Generator[Callable[[bytes], object]]:
    """Make ``path``, which must be new, readable for its owner alone; yield what writes to it.

    Once this ends, the file has reached the disk; if it raises, there is none.

    Raises:
        InvalidInputError: there is a file already, or none can be made there; or ``-``, which
            elsewhere stands for standard output: nothing that fails could be taken back there.
        StoreFullError: no room; nothing is left behind.
        StoreUnavailableError: it couldn't be written; nothing is left behind.
    """
    require_file(path, field="out")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNERS_ONLY)
    except FileExistsError:
        problem = f"{path} is there already: name another"
        raise InvalidInputError(field="out", problem=problem) from None
    except OSError as error:
        problem = f"{path} can't be made: {error.strerror}"
        raise InvalidInputError(field="out", problem=problem) from None
    try:
        with _translating(path), os.fdopen(handle, "wb") as file:
            with ExitStack() as stack:
                yield _packing(path, file, stack).write
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def require_file(path: Path, *, field: str) -> None:
    """Refuse to take ``-`` for a file's name.

    Raises:
        InvalidInputError: it is one.
    """
    if str(path) == "-":
        raise InvalidInputError(field=field, problem="must name a file; - isn't standard output")


@contextmanager
def lines_of(path: Path) -> Generator[Iterator[bytes]]:
    """Open an export, packed or not; yield its lines with their ends.

    Raises:
        InvalidInputError: the file can't be read.
        DamagedExportError: it can't be unpacked to its end.
    """
    with _opened(path, field="file") as source:
        yield _lines(source)


@contextmanager
def seal_lines_of(path: Path) -> Generator[Iterator[bytes]]:
    """Open a seal, packed or not; yield its lines with their ends.

    Raises:
        InvalidInputError: the file can't be read, or not be unpacked to its end.
    """
    with _opened(path, field="seal") as source:
        yield _seal_lines(source)


@contextmanager
def _opened(path: Path, *, field: str) -> Generator[BinaryIO]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            packed = file.peek(2).startswith(_GZIP_MAGIC)
        except OSError as error:
            problem = f"{path} can't be read: {error.strerror}"
            raise InvalidInputError(field=field, problem=problem) from None
        source: BinaryIO = file
        if packed:
            source = stack.enter_context(gzip.open(file))  # type: ignore[assignment]  # It reads.
        yield source


# One byte more than a line of ours may have: whoever reads it sees that it isn't one.


def _lines(source: BinaryIO) -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        try:
            line = source.readline(SMALL_BYTES + 1)
            longest = bytes_max(line)
            if len(line) > SMALL_BYTES and longest > SMALL_BYTES and not line.endswith(b"\n"):
                line += source.readline(longest + 1 - len(line))
        except (OSError, EOFError, zlib.error):
            problem = "can't be unpacked or read any further"
            raise DamagedExportError(line=number, problem=problem) from None
        if not line:
            return
        yield line


def _seal_lines(source: BinaryIO) -> Iterator[bytes]:
    while True:
        try:
            line = source.readline(SEAL_LINE_BYTES_MAX + 1)
        except (OSError, EOFError, zlib.error):
            problem = "can't be unpacked or read any further"
            raise InvalidInputError(field="seal", problem=problem) from None
        if not line:
            return
        yield line


def _packing(path: Path, file: BinaryIO, stack: ExitStack) -> BinaryIO:
    if path.suffix != PACKED:
        return file
    # Without name and time, so that the same store gives the same bytes.
    packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    return stack.enter_context(packed)  # type: ignore[return-value]  # It writes bytes.


@contextmanager
def _translating(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StoreFullError(store=str(path)) from error
        raise StoreUnavailableError(
            store=str(path), problem=error.strerror or "it can't be written"
        ) from error
