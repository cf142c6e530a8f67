"""SQLite's operating errors, as the errors of the domain.

Narrow on purpose: an SQL syntax error, a constraint that no adapter expected, a misuse of apsw
are bugs of ours and pass as they are.
"""

from types import TracebackType

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


class translating:  # noqa: N801  # used as a function
    """Translate what SQLite raises in the block, in a database that may be damaged.

    A class, since every transaction passes here, most without any error.

    Raises:
        StoreError: as :func:`raise_translated`.
    """

    __slots__ = ("_store",)

    def __init__(self, *, store: str) -> None:
        self._store = store

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            raise_translated(error, store=self._store)


def raise_translated(error: BaseException, *, store: str) -> None:
    """Raise the domain's error in the place of SQLite's; return where ``error`` shall pass.

    Raises:
        StoreError: for one of :data:`OPERATING_ERRORS`, for a text that isn't one any more, and
            for tables and vectors that aren't where they were put.
    """
    if isinstance(error, OPERATING_ERRORS):
        raise translated(error, store=store) from error
    if isinstance(error, apsw.SQLError):
        for said, problem in _DAMAGED.items():
            if said in str(error):
                raise StoreCorruptError(store=store, problem=problem) from error
    if isinstance(error, UnicodeDecodeError):
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
