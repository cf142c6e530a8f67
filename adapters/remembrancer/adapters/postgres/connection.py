"""Opening connections, and neutralising those that a fork has copied."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.pq import PipelineStatus

from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.tls import tls_refusal
from remembrancer.domain.errors import (
    SettingsError,
    StoreError,
    StoreForbiddenError,
    StoreUnavailableError,
)

APPLICATION = "remembrancer"

_ALIVE = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""A server that is gone without a word is found so within a minute, not in two hours; a connection
string may say otherwise."""

_REFUSALS = (
    "authentication failed",
    "pg_hba.conf",
    "does not exist",
    "not permitted to log in",
    "permission denied for database",
    "no password supplied",
)
"""For each of these waiting doesn't help.  In another language it only seems to."""

Connection = psycopg.Connection[tuple[Any, ...]]


def check_dsn(dsn: str, *, setting: str) -> str:
    """Return the name by which messages call the database: host and database, nothing else.

    Raises:
        SettingsError: it isn't a connection string.  What it was isn't told: it may hold a
            password, and psycopg's own message would print it.
    """
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        parts = None
    if parts is None:  # Outside of the handler, or the driver's error would stay as a context.
        raise SettingsError(setting=setting, problem="isn't a connection string of PostgreSQL")
    place = parts.get("host") or parts.get("hostaddr") or "the local socket"
    return f"PostgreSQL database {parts.get('dbname') or '(default)'} at {place}"


def connect(dsn: str, *, limits: Limits, store: str) -> Connection:
    """Open a connection; each statement is a transaction of its own until BEGIN.

    Raises:
        StoreForbiddenError: the server refuses role, password or database, or can't be reached
            as safely as was asked for.
        StoreUnavailableError: it can't be reached, or takes no more connections now.
    """
    try:
        connection: Connection = psycopg.connect(
            conninfo.make_conninfo(dsn, **_unless_said(dsn, _ALIVE)),
            autocommit=True,
            prepare_threshold=limits.prepare_after,
            connect_timeout=limits.connect_timeout_s,
            application_name=APPLICATION,
        )
    except psycopg.OperationalError as error:
        raise _refused(error, store=store) from error
    return connection


def is_pipelined(connection: Connection) -> bool:
    """Say whether statements are being sent without waiting for their answers."""
    return connection.pgconn.pipeline_status != PipelineStatus.OFF  # A number; no member of it.


@contextmanager
def together(connection: Connection) -> Generator[None]:
    """Send the block's statements in one round trip; their results are fetched behind it.

    As the driver's own block, but for what that writes to the log beside an error that it raises;
    inside of another it begins nothing.
    """
    if is_pipelined(connection):
        yield
        return
    pipeline = connection.pipeline()
    pipeline.__enter__()  # Not by `with`: its end must not be told of an error.
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            pipeline.__exit__(None, None, None)
        raise
    pipeline.__exit__(None, None, None)


def _unless_said(dsn: str, defaults: dict[str, str]) -> dict[str, str]:
    said = conninfo.conninfo_to_dict(dsn)
    return {name: value for name, value in defaults.items() if name not in said}


def _refused(error: psycopg.OperationalError, *, store: str) -> StoreError:
    # A refusal at this point has no SQLSTATE: only words, in the server's language, or libpq's.
    words = str(error)
    unsafe = tls_refusal(words)
    if unsafe is not None:
        return StoreForbiddenError(store=store, problem=unsafe.problem, see_to=unsafe.see_to)
    if any(one in words for one in _REFUSALS):
        return StoreForbiddenError(store=store, problem="refuses role, password or database")
    return StoreUnavailableError(store=store, problem="it takes no connection")


def neutralise(connection: Connection) -> None:
    """In a forked child: take the parent's connection away from it, without closing it.

    The server would keep a dead parent's transaction, and its locks, for as long as a child has
    the socket.
    """
    if connection.closed:
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nowhere, connection.fileno())
    finally:
        os.close(nowhere)
