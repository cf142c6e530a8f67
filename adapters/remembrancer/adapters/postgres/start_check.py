"""What a role may be, and how the schema must stand, before a memory is opened on them."""

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.migrations.head import HEAD
from remembrancer.adapters.postgres.statements import SCHEMA
from remembrancer.domain.errors import SettingsError, StoreNewerError

_ROLE = """
    SELECT rolsuper, rolbypassrls, rolcreaterole, rolreplication
    FROM pg_roles WHERE rolname = current_user
"""
# Membership counts as well: SET ROLE is one statement away.
_MEMBER_OF = """
    SELECT rolname FROM pg_roles
    WHERE rolname <> current_user
    AND pg_has_role(current_user, oid, 'MEMBER')
    AND (rolsuper OR rolbypassrls OR oid = ANY (ARRAY(
        SELECT relowner FROM pg_class WHERE relnamespace = %s::regnamespace
    )))
    LIMIT 1
"""
_OWNED = """
    SELECT relname FROM pg_class
    WHERE relnamespace = %s::regnamespace AND relowner = current_user::regrole LIMIT 1
"""
_UNFORCED = """
    SELECT relname FROM pg_class
    WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')
    AND NOT (relrowsecurity AND relforcerowsecurity)
    AND EXISTS (
        SELECT 1 FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attname = 'tenant' AND NOT attisdropped
    )
    LIMIT 1
"""
_SEES_ALL = """
    SELECT polname FROM pg_policy
    JOIN pg_class ON pg_class.oid = polrelid AND relnamespace = %s::regnamespace
    WHERE pg_get_expr(polqual, polrelid) = 'true'
    AND EXISTS (
        SELECT FROM unnest(polroles) AS role
        WHERE role = 0 OR pg_has_role(current_user, role, 'MEMBER')
    )
    LIMIT 1
"""
_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
_REVISION = "SELECT version_num FROM remembrancer.alembic_version"
_WRITABLE = """
    SELECT relname FROM pg_class
    WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')
    AND has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE') LIMIT 1
"""
_ENCODING = "SHOW server_encoding"


def check_application(connection: Connection, *, store: str) -> None:
    """See that row security binds the application's role, and that the schema is this release's.

    Raises:
        SettingsError: it doesn't, or the schema is missing or behind; and what to do.
        StoreNewerError: the schema is a newer release's.
    """
    check_schema(connection, store=store)
    _check_no_power(connection, setting="store.dsn", instead="the application's role")
    if _one(connection, _SEES_ALL, SCHEMA) is not None:
        raise SettingsError(
            setting="store.dsn",
            problem="the role may see every tenant's rows, as the auditor's does; name the "
            "application's role, which `remembrancer migrate up` makes",
        )
    table = _one(connection, _UNFORCED, SCHEMA)
    if table is not None:
        raise SettingsError(
            setting="store.dsn",
            problem=f"row security isn't forced on table {table}; run `remembrancer migrate up`, "
            "or ALTER TABLE ... ENABLE, then FORCE ROW LEVEL SECURITY as its owner",
        )


def check_reader(connection: Connection) -> None:
    """See that the auditor's role can't write.

    Raises:
        SettingsError: it can.
    """
    _check_no_power(connection, setting="store.reader_dsn", instead="the auditor's role")
    table = _one(connection, _WRITABLE, SCHEMA)
    if table is not None:
        raise SettingsError(
            setting="store.reader_dsn",
            problem=f"the role may write to table {table}; name the auditor's role, "
            "which only reads",
        )


def check_schema(connection: Connection, *, store: str) -> None:
    """See that the schema is the one that this release works with.

    Raises:
        SettingsError: it is missing or behind.
        StoreNewerError: a newer release has migrated it.
    """
    found = None
    if _one(connection, _SCHEMA, SCHEMA) is not None:
        found = _one(connection, _REVISION)
    if found is None:
        problem = "the database has no schema of ours yet; run `remembrancer migrate up`"
        raise SettingsError(setting="store.dsn", problem=problem)
    if int(found) > int(HEAD):
        raise StoreNewerError(store=store, found=int(found), known=int(HEAD))
    if found != HEAD:
        raise SettingsError(
            setting="store.dsn",
            problem=f"the schema is at revision {found}, this release needs {HEAD}; "
            "run `remembrancer migrate up`",
        )
    if _one(connection, _ENCODING) != "UTF8":
        problem = "the database isn't in UTF8; create one that is, and migrate that"
        raise SettingsError(setting="store.dsn", problem=problem)


def _check_no_power(connection: Connection, *, setting: str, instead: str) -> None:
    row = connection.execute(_ROLE).fetchone()
    superuser, bypasses, creates_roles, replicates = row or (None,) * 4
    powers = {
        "is a superuser": superuser,
        "has BYPASSRLS": bypasses,
        "has CREATEROLE": creates_roles,
        "has REPLICATION": replicates,
    }
    problems = [said for said, has in powers.items() if has]
    table = _one(connection, _OWNED, SCHEMA)
    if table is not None:
        problems.append(f"owns table {table}")
    other = _one(connection, _MEMBER_OF, SCHEMA)
    if other is not None:
        problems.append(f"is a member of role {other}, which is no better bound")
    if problems:
        raise SettingsError(
            setting=setting,
            problem=f"the role {problems[0]}, so that row security doesn't bind it; name "
            f"{instead}, which `remembrancer migrate up` makes",
        )


def _one(connection: Connection, statement: str, *values: str) -> str | None:
    row = connection.execute(statement, values).fetchone()
    return None if row is None else str(row[0])
