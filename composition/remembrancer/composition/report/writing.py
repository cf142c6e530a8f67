"""Puts the page into its file: whole or not at all, for its owner's eyes only."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from remembrancer.domain.errors import InvalidInputError

MARK = "<!doctype html>\n<!-- remembrancer audit -->\n"
"""What every page begins with.  Only a file that does so is ever replaced."""

_MODE = 0o600
_SUFFIXES = (".html", ".htm")


def require_writable(path: Path, *, replace: bool) -> None:
    """Refuse early what :func:`write_page` would refuse after the work.

    Raises:
        InvalidInputError: something is there that may not be replaced, there is no folder, or the
            name isn't a page's.
    """
    if path.suffix not in _SUFFIXES:
        # A slip of the fingers mustn't make a file that the store would take for its own.
        raise InvalidInputError(field="html", problem="must end in .html")
    if not path.parent.is_dir():
        raise InvalidInputError(field="html", problem=f"{path.parent} isn't a folder")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInputError(
            field="html", problem=f"{path} can't be made: its folder may not be written"
        )
    if not path.is_symlink() and not path.exists():
        return
    if not replace:
        raise InvalidInputError(field="html", problem=f"{path} is there already; see --force")
    if not _is_page(path):
        raise InvalidInputError(
            field="html", problem=f"{path} isn't an earlier report, so it isn't replaced"
        )


def write_page(path: Path, page: str, *, replace: bool) -> None:
    """Write ``page``, readable for its owner alone.  Interrupted, the file is as it was.

    Raises:
        InvalidInputError: as :func:`require_writable`.
        OSError: the system says no; nothing is left behind.
    """
    require_writable(path, replace=replace)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with open(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:  # noqa: PTH123  # a descriptor has no path
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        _put(part, path, replace=replace)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _put(part: Path, path: Path, *, replace: bool) -> None:
    if replace:
        part.replace(path)
        return
    try:
        path.hardlink_to(part)  # Unlike renaming, this fails if a file has appeared meanwhile.
    except FileExistsError:
        raise InvalidInputError(field="html", problem=f"{path} is there already") from None
    except OSError:  # A file system without links.
        require_writable(path, replace=False)
        part.replace(path)


def _is_page(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()
