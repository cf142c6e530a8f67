"""The schema: every ``*.sql`` file of this package, applied in the order of their names.

All scripts say ``IF NOT EXISTS``.  A hash over them is kept in the one row of ``schema_info``:
when it agrees, and no trigger is missing, opening runs none of them.
"""

import hashlib
import re
from functools import cache
from importlib.resources import files

import apsw

from remembrancer.domain.errors import StoreCorruptError, StoreNewerError, StoreReadOnlyError

APPLICATION_ID = 0x524D4252
"""``RMBR``, in the file's header."""
SCHEMA_VERSION = 1

_TRIGGERS = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'trigger' AND name IN ({names})"


def is_current(connection: apsw.Connection, *, store: str) -> bool:
    """Say whether the file has this release's schema already; False for an empty file.

    Raises:
        StoreCorruptError: the file is a database of another program.
        StoreNewerError: a newer release wrote it.
    """
    application_id = connection.pragma("application_id")
    version = connection.pragma("user_version")
    if application_id != APPLICATION_ID:
        tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").get
        if application_id or version or tables:
            raise StoreCorruptError(store=store, problem="is a database of another program")
        return False
    if version > SCHEMA_VERSION:
        raise StoreNewerError(store=store, found=version, known=SCHEMA_VERSION)
    if not connection.table_exists("main", "schema_info"):
        return False
    found: str | None = connection.execute("SELECT scripts_sha256 FROM schema_info").get
    is_ours = version == SCHEMA_VERSION and found == scripts_sha256()
    return is_ours and (connection.readonly("main") or _is_guarded(connection))


def apply(connection: apsw.Connection, *, store: str) -> None:
    """Bring the file to this release's schema, in one transaction; many may try at once.

    Raises:
        StoreReadOnlyError: it may not be written.
    """
    if connection.readonly("main"):
        raise StoreReadOnlyError(store=store)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not is_current(connection, store=store):  # Another process may have been first.
            run_scripts(connection)
            connection.execute(
                "INSERT INTO schema_info (id, scripts_sha256) VALUES (1, ?)"
                " ON CONFLICT (id) DO UPDATE SET scripts_sha256 = excluded.scripts_sha256",
                (scripts_sha256(),),
            )
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", SCHEMA_VERSION)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def run_scripts(connection: apsw.Connection) -> None:
    """Make whatever isn't there yet."""
    for script in _scripts():
        connection.execute(script)


def scripts_sha256() -> str:
    """Return the hash over all scripts, hexadecimal."""
    return hashlib.sha256("\0".join(_scripts()).encode()).hexdigest()


def _is_guarded(connection: apsw.Connection) -> bool:
    """Say whether the triggers that keep the log are there; nobody writes without them."""
    names = _triggers()
    marks = ", ".join("?" * len(names))
    count: int = connection.execute(_TRIGGERS.format(names=marks), names).get
    return count == len(names)


@cache
def _triggers() -> tuple[str, ...]:
    return tuple(re.findall(r"CREATE TRIGGER IF NOT EXISTS (\w+)", "\n".join(_scripts())))


@cache
def _scripts() -> tuple[str, ...]:
    found = sorted(
        (file.name, file.read_text(encoding="utf-8"))
        for file in files(__package__).iterdir()
        if file.name.endswith(".sql")
    )
    return tuple(script for _, script in found)
