"""PostgreSQL's operating errors, as the errors of the domain.

Told by SQLSTATE, not by class or words: psycopg puts locks, time limits, a full disk and a wrong
password all under one class, and words come in the server's language.  Narrow on purpose: an SQL
syntax error, a constraint that no adapter expected, a misuse of psycopg are bugs of ours and pass
as they are, but without their DETAIL, which would hold a row's values.
"""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import errors as states

from remembrancer.domain.errors import (
    StoreCorruptError,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

LOST = "the connection was lost"

_UNAVAILABLE: dict[type[psycopg.Error], str] = {
    states.LockNotAvailable: "another writer holds it",
    states.QueryCanceled: "a statement took too long, or was cancelled",
    states.DeadlockDetected: "it gave way to another writer",
    states.SerializationFailure: "it gave way to another writer",
    states.IdleInTransactionSessionTimeout: "its transaction lay idle for too long",
    states.TransactionTimeout: "its transaction took too long",
    states.TooManyConnections: "it has no free connection",
    states.OutOfMemory: "it has no free memory",
    states.ConfigurationLimitExceeded: "it has reached a limit of its configuration",
    states.CannotConnectNow: "it is starting or stopping",
    states.AdminShutdown: LOST,
    states.CrashShutdown: LOST,
    states.IdleSessionTimeout: LOST,
    states.IoError: "its disk reported an error",
}
_FORBIDDEN: dict[type[psycopg.Error], str] = {
    states.InsufficientPrivilege: "lets this role do that to nobody's rows, or not to these",
}
_CORRUPT = (states.DataCorrupted, states.IndexCorrupted)


@contextmanager
def translating(*, store: str) -> Generator[None]:
    """Translate what PostgreSQL raises in the block.

    Raises:
        StoreError: for what :func:`translated` knows.
    """
    try:
        yield
    except psycopg.Error as error:
        raise_translated(error, store=store)
        raise


def raise_translated(error: psycopg.Error, *, store: str) -> None:
    """Raise the domain's error for an operating one; return if it is to pass, without values.

    Raises:
        StoreError: for what :func:`translated` knows.
    """
    without_values(error)
    known = translated(error, store=store)
    if known is not None:
        raise known from error


def translated(error: psycopg.Error, *, store: str) -> StoreError | None:
    """Return the domain's error for an operating error; None for one that is a bug of ours."""
    kind = type(error)
    unavailable = _UNAVAILABLE.get(kind) or (LOST if _is_lost(error) else None)
    known: StoreError | None = None
    if unavailable is not None:
        known = StoreUnavailableError(store=store, problem=unavailable)
    elif kind in _FORBIDDEN:
        known = StoreForbiddenError(store=store, problem=_FORBIDDEN[kind])
    elif kind is states.DiskFull:
        known = StoreFullError(store=store)
    elif kind is states.ReadOnlySqlTransaction:
        known = StoreReadOnlyError(store=store)
    elif kind in _CORRUPT:
        known = StoreCorruptError(store=store, problem="is damaged")
    return known


def without_values(error: psycopg.Error) -> None:
    """Leave the server's sentence in an error, and drop what it says about rows."""
    if error.diag.message_primary is not None:
        error.args = (error.diag.message_primary,)


def _is_lost(error: psycopg.Error) -> bool:
    # Without a state it is psycopg's own word: nobody answered.  08 is the class of connections.
    state = error.sqlstate
    return isinstance(error, psycopg.OperationalError) and (state is None or state[:2] == "08")
