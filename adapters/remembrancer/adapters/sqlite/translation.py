"""SQLite's operating errors, as the errors of the domain.

Narrow on purpose: an SQL syntax error, a constraint that no adapter expected, a misuse of apsw are
bugs of ours and pass as they are.
"""

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
