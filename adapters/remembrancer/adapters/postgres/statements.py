"""What every transaction begins with: its kind, its settings, its locks.

All settings are local to the transaction: none outlives it, so none leaks through a pool, ours or
one that gives each transaction another session.
"""

from typing import Any

from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.scope import Scope

Statement = tuple[str, tuple[Any, ...]]

SCHEMA = "remembrancer"
"""Where all tables are; the only one in which names are looked up."""

WRITERS_KEY = (0x5EAD << 48) + 1
"""Advisory lock: shared by write transactions, whole by one that writes alone."""

BEGIN_WRITE: Statement = ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", ())
BEGIN_READ: Statement = ("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", ())
BEGIN_SNAPSHOT: Statement = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())

# The first asks for the transaction's number, so that it is given one before any lock that
# positions.py looks at.
IDENTITY: Statement = (
    (
        "SELECT pg_current_xact_id()::text, pg_backend_pid(),"
        " substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
    ),
    (),
)
WRITERS: Statement = ("SELECT pg_advisory_xact_lock_shared(%s)", (WRITERS_KEY,))
WRITE_ALONE: Statement = ("SELECT pg_advisory_xact_lock(%s)", (WRITERS_KEY,))

_SETTINGS = (
    "SELECT set_config('search_path', %s, true), set_config('statement_timeout', %s, true),"
    " set_config('lock_timeout', %s, true),"
    " set_config('idle_in_transaction_session_timeout', %s, true)"
)
_SCOPE = (
    "SELECT set_config('remembrancer.tenant', %s, true),"
    " set_config('remembrancer.owner', %s, true), set_config('remembrancer.reach', %s, true)"
)
_ADD_OWNER = "INSERT INTO owners (tenant, owner) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_LOCK_OWNER = "SELECT 1 FROM owners WHERE tenant = %s AND owner = %s FOR UPDATE"


def settings(limits: Limits) -> Statement:
    """Return what limits a transaction, and where it finds its tables."""
    return _SETTINGS, (
        f"{SCHEMA}, pg_temp",  # Last, or a temporary table would be taken for one of ours.
        f"{int(limits.statement_timeout_s * 1000)}ms",
        f"{int(limits.lock_timeout_s * 1000)}ms",
        f"{int(limits.idle_in_transaction_timeout_s * 1000)}ms",
    )


def acting_for(scope: Scope | None) -> Statement:
    """Return what tells row security for whom the transaction acts; for nobody if None."""
    if scope is None:
        return _SCOPE, ("", "", "")
    return _SCOPE, (scope.tenant, scope.owner or "", "" if scope.owner else "tenant")


def owners_lock(tenant: str, owner: str) -> list[Statement]:
    """Return what makes the transaction the only one that writes for this owner.

    Two statements: what isn't there can't be locked, and one statement wouldn't see its own row.
    """
    return [(_ADD_OWNER, (tenant, owner)), (_LOCK_OWNER, (tenant, owner))]
