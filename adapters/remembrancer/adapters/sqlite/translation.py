"""SQLite's operating errors, as the errors of the domain.

Narrow on purpose: an SQL syntax error, a constraint that no adapter expected, a misuse of apsw
are bugs of ours and pass as they are.
"""

from collections.abc import Generator
from contextlib import contextmanager

import apsw

from remembrancer.domain.errors import (
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

_UNAVAILABLE: dict[type[apsw.Error], str] = {
    apsw.BusyError: "another writer holds it",
    apsw.LockedError: "another statement holds it",
    apsw.ProtocolError: "its lock could not be had",
    apsw.CantOpenError: "it, or a file beside it, can't be opened",
    apsw.PermissionsError: "its permissions forbid it",
    apsw.IOError: "the disk reported an error",
    apsw.InterruptError: "it was interrupted",
}
_CORRUPT: dict[type[apsw.Error], str] = {
    apsw.NotADBError: "is not a SQLite database",
    apsw.CorruptError: "is damaged",
    apsw.FormatError: "is damaged",
}

OPERATING_ERRORS: tuple[type[apsw.Error], ...] = (
    *_UNAVAILABLE,
    *_CORRUPT,
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.ConnectionClosedError,
)
"""What :func:`translated` knows; every other error of apsw passes."""

_DAMAGED = {
    "Could not fetch vector data": "its vectors are damaged",
    "Internal sqlite-vec error": "its vectors are damaged",
    "vec0 constructor error": "its vectors are damaged",
    "vtable constructor failed": "a table isn't as it was made",
    "no such table": "a table is missing",
    "no such column": "a table isn't as it was made",
    "has no column named": "a table isn't as it was made",
}
"""What SQL errors say that come of the file: sqlite-vec has no other kind, and the schema may
have been changed by hand.  All others come of our statements."""


@contextmanager
def translating(*, store: str) -> Generator[None]:
    """Translate what SQLite raises in the block, in a database that may be damaged.

    Raises:
        StoreError: for one of :data:`OPERATING_ERRORS`, for a text that isn't one any more, and
            for tables and vectors that aren't where they were put.
    """
    try:
        yield
    except OPERATING_ERRORS as error:
        raise translated(error, store=store) from error
    except apsw.SQLError as error:
        for said, problem in _DAMAGED.items():
            if said in str(error):
                raise StoreCorruptError(store=store, problem=problem) from error
        raise
    except UnicodeDecodeError as error:
        error.object = b""  # It was the text, and it would stay with the error that follows.
        raise StoreCorruptError(store=store, problem="a text in it is damaged") from None


def translated(error: apsw.Error, *, store: str) -> StoreError:
    """Return the domain's error for one of :data:`OPERATING_ERRORS`."""
    kind = type(error)
    if kind in _UNAVAILABLE:
        return StoreUnavailableError(store=store, problem=_UNAVAILABLE[kind])
    if kind in _CORRUPT:
        return StoreCorruptError(store=store, problem=_CORRUPT[kind])
    if kind is apsw.FullError:
        return StoreFullError(store=store)
    if kind is apsw.ReadOnlyError:
        return StoreReadOnlyError(store=store)
    return StoreClosedError()
