"""Opening connections, and neutralising those that a fork has copied."""

import os
from typing import Any

import psycopg
from psycopg import conninfo

from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.translation import translated, without_values
from remembrancer.domain.errors import SettingsError

APPLICATION = "remembrancer"

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
        StoreForbiddenError: the server refuses role or password.
        StoreUnavailableError: it can't be had, now.
    """
    try:
        connection: Connection = psycopg.connect(
            dsn,
            autocommit=True,
            prepare_threshold=limits.prepare_after,
            connect_timeout=limits.connect_timeout_s,
            application_name=APPLICATION,
        )
    except psycopg.Error as error:
        without_values(error)
        known = translated(error, store=store)
        if known is None:
            raise
        raise known from error
    return connection


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
