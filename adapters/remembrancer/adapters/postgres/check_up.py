"""What an operator should know of a database that is in use, and what to do about it.

That the role is bound by row security, that this is forced on every table, and that the schema is
this release's, was seen when the database was opened: it is refused otherwise.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.migrations.head import HEAD
from remembrancer.adapters.postgres.nearest import approximate_index

APPROXIMATE = "approximate index"
CLOCKS_MAY_DIFFER_S = 2.0
VECTOR_MIN = (0, 8)
"""From here on pgvector filters while it scans an approximate index."""

_SERVER = "SELECT current_user::text, current_setting('server_version'), pg_backend_pid()"
_VECTOR = "SELECT extversion::text FROM pg_extension WHERE extname = 'vector'"
_ANSWERS = "SELECT number FROM vector_indexes WHERE state = 'active' AND place = 'local'"
_MADE = (
    "SELECT relname::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
    " WHERE indrelid = 'vectors'::regclass AND indisvalid AND relname LIKE 'vectors\\_near\\_%'"
)
_ERASED = "SELECT count(*), min(erased_at) FROM pending_clearing"
_NOW = "SELECT clock_timestamp()"
_ROOM = "SELECT current_setting('max_connections')::integer"
_LOGGING = """
    SELECT current_setting('log_parameter_max_length_on_error') <> '0',
        current_setting('log_parameter_max_length') <> '0' AND (
            current_setting('log_statement') <> 'none'
            OR current_setting('log_min_duration_statement') <> '-1'
            OR current_setting('log_min_duration_sample') <> '-1'
            OR current_setting('log_transaction_sample_rate') <> '0'
        )
"""


class Checked(NamedTuple):
    """One thing that was looked at."""

    what: str
    ok: bool
    found: str
    advice: str = ""


def check_up(database: Database, *, now: Callable[[], datetime]) -> list[Checked]:
    """Look at an open database; changes nothing.

    Raises:
        StoreUnavailableError: it can't be had.
    """
    with database.read_common() as connection:
        role, version, backend = _row(connection, _SERVER)
        return [
            Checked("server", ok=True, found=f"PostgreSQL {version}, {database.name}"),
            Checked(
                "row security",
                ok=True,
                found=f"forced on every table; role {role} is bound by it, and owns nothing",
            ),
            Checked("schema", ok=True, found=f"revision {HEAD}, as this release needs"),
            _reader(database),
            _vector(connection),
            *_approximate(connection),
            _erased(connection),
            _clocks(connection, now),
            _pooler(database, connection, backend),
            _room(database, connection),
            _logging(connection, role),
        ]


def _reader(database: Database) -> Checked:
    if database.reads_over_all_tenants:
        return Checked("auditor's role", ok=True, found="reads all tenants, writes nothing")
    return Checked(
        "auditor's role",
        ok=False,
        found="isn't there: status, reindex and audit can't read over all tenants",
        advice="put its connection string where store.reader_dsn_variable or "
        "store.reader_dsn_file says",
    )


def _vector(connection: Connection) -> Checked:
    row = connection.execute(_VECTOR).fetchone()
    version = "missing" if row is None else str(row[0])
    fits = row is not None and tuple(map(int, version.split(".")[:2])) >= VECTOR_MIN
    return Checked(
        "pgvector",
        ok=fits,
        found=version,
        advice="" if fits else "install pgvector 0.8 or later, then ALTER EXTENSION vector UPDATE",
    )


def _approximate(connection: Connection) -> list[Checked]:
    """Say where one was made once, but not for the vectors that answer now."""
    active = connection.execute(_ANSWERS).fetchone()
    names = {str(name) for (name,) in connection.execute(_MADE)}
    if active is None or not names:
        return []
    fits = approximate_index(int(active[0])) in names
    return [
        Checked(
            APPROXIMATE,
            ok=True,
            found="there" if fits else "there for another vector index than the one that answers",
            advice="" if fits else "`remembrancer maintain vectors`, as the owner, makes it anew",
        )
    ]


def _erased(connection: Connection) -> Checked:
    """Say whether somebody still has to see to what was erased (adr/0027)."""
    waiting, since = _row(connection, _ERASED)
    if not waiting:
        return Checked("erasures", ok=True, found="nothing of any is left in the server's tables")
    return Checked(
        "erasures",
        ok=True,
        found=f"dead rows of {waiting} lie in the server's files, the oldest of {since:%Y-%m-%d}",
        advice="`remembrancer maintain clear`, as the owner, writes the tables anew without them",
    )


def _clocks(connection: Connection, now: Callable[[], datetime]) -> Checked:
    before = now()
    (theirs,) = _row(connection, _NOW)
    after = now()
    ahead = max((theirs - after).total_seconds(), 0.0)
    behind = max((before - theirs).total_seconds(), 0.0)
    fits = max(ahead, behind) <= CLOCKS_MAY_DIFFER_S
    found = (
        f"the server's is {ahead:.1f} s ahead"
        if ahead
        else f"the server's is {behind:.1f} s behind"
    )
    return Checked(
        "clocks",
        ok=fits,
        found="alike" if not ahead and not behind else found,
        advice=""
        if fits
        else "money goes by the server's, times of entries by this machine's: set them alike",
    )


def _pooler(database: Database, connection: Connection, backend: int) -> Checked:
    # A pooler makes up the number that it gives a client.
    pooled = connection.info.backend_pid != backend
    fits = not pooled or not database.limits.keeps_sessions
    return Checked(
        "pooler",
        ok=fits,
        found="one stands between" if pooled else "none stands between",
        advice="" if fits else "set store.pooler = true, so that no statement is kept prepared",
    )


def _room(database: Database, connection: Connection) -> Checked:
    (most,) = _row(connection, _ROOM)
    ours = database.limits.connections * (2 if database.reads_over_all_tenants else 1)
    fits = ours < most
    return Checked(
        "connections",
        ok=fits,
        found=f"up to {ours} for each process of ours (store.connections for each of its roles), "
        f"{most} for all at the server",
        advice="" if fits else "lower store.connections, or put PgBouncer between",
    )


def _logging(connection: Connection, role: str) -> Checked:
    on_error, with_statements = _row(connection, _LOGGING)
    settings = [
        *(["log_parameter_max_length_on_error"] if on_error else []),
        *(["log_parameter_max_length"] if with_statements else []),
    ]
    commands = "; ".join(f'ALTER ROLE "{role}" SET {name} = 0' for name in settings)
    return Checked(
        "server's log",
        ok=not settings,
        found="gets no values of statements"
        if not settings
        else "gets texts as values of statements",
        advice=f"let an administrator run: {commands}" if settings else "",
    )


def _row(connection: Connection, statement: str) -> tuple[Any, ...]:
    row: Any = connection.execute(statement).fetchone()
    found: tuple[Any, ...] = row
    return found
