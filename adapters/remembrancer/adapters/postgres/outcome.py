"""What became of a commit whose answer was lost."""

import time
from collections.abc import Callable
from enum import Enum

import psycopg

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.thread_state import Identity
from remembrancer.domain.errors import StoreError

POLL_S = 0.05
PATIENCE = 10
"""How many polls a transaction may be in progress until its backend is ended: it has lost us."""

_ASK = (
    "SELECT pg_xact_status(%s::text::xid8),"
    " substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
)
# A pooler may have given the backend to somebody else by now.
_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid = %s AND backend_xid::text::bigint = (%s::text)::bigint %% 4294967296"
)


class Outcome(Enum):
    """What a server says of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """It can't say, or isn't the server that ran it, or couldn't be asked in time."""


def find_out(identity: Identity, *, connect: Callable[[], Connection], wait_s: float) -> Outcome:
    """Ask until the transaction is over, on connections of their own.

    It may be in progress still: the server hasn't noticed yet that we are gone, and its locks keep
    the owner waiting.  Then its backend is ended, which decides the matter.
    """
    polls = max(1, int(wait_s / POLL_S))
    connection = None
    try:
        for poll in range(polls):
            try:
                connection = connection or connect()
                status = _status(connection, identity)
                if isinstance(status, Outcome):
                    return status
                if poll == PATIENCE:
                    connection.execute(_END, (identity.backend, identity.xid))
            except (psycopg.OperationalError, StoreError):  # It may be starting again.
                if connection is not None:
                    connection.close()
                connection = None
            time.sleep(POLL_S)
    except psycopg.Error:  # Such as a number that this server hasn't given out yet.
        return Outcome.UNKNOWN
    finally:
        if connection is not None:
            connection.close()
    return Outcome.UNKNOWN


def _status(connection: Connection, identity: Identity) -> Outcome | None:
    """Return what became of it; None while it is in progress."""
    row = connection.execute(_ASK, (identity.xid,)).fetchone()
    status, timeline = row or (None, None)
    if timeline != identity.timeline or status is None:
        return Outcome.UNKNOWN
    if status == "in progress":
        return None
    return Outcome(status)
