"""Bringing a database's schema to a revision, or writing down what would be done.

Revisions are alembic's; they are run without its command line and its environment script, so that
they work from an installed wheel and read no configuration but what they are given.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import psycopg
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from remembrancer.adapters.postgres.connection import check_dsn, connect
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.migrations.head import HEAD
from remembrancer.adapters.postgres.migrations.row_security import Roles
from remembrancer.adapters.postgres.statements import SCHEMA
from remembrancer.adapters.postgres.translation import translating
from remembrancer.domain.errors import MigrationRefusedError, SettingsError

MIGRATION_KEY = (0x5EAD << 48) + 2
"""Advisory lock: one migration at a time."""

_SETTING = "store.owner_dsn"
_LIMITS = Limits(prepare_after=None)


@dataclass(frozen=True, slots=True)
class Status:
    """Where a schema stands."""

    found: str | None
    """The revision that it is at; None if there is no schema of ours."""
    head: str
    """The revision that this release works with."""


def up(dsn: str, *, roles: Roles, to: str = HEAD) -> None:
    """Bring the schema up to a revision, in one transaction; nothing happens if it is there.

    Args:
        dsn: as the role that owns the schema, or shall.
        roles: made if they are missing and this role may do that.
        to: the revision.

    Raises:
        SettingsError: ``dsn`` isn't a connection string, or there is no such revision.
        StoreError: the server can't be had, or refuses; nothing was changed.
        MigrationRefusedError: a revision refuses, and says why; nothing was changed.
    """
    _migrate(dsn, roles=roles, to=to, upwards=True)


def down(dsn: str, *, roles: Roles, to: str) -> None:
    """Take the schema back to a revision, in one transaction; raises as :func:`up`."""
    _migrate(dsn, roles=roles, to=to, upwards=False)


def status(dsn: str) -> Status:
    """Say where the schema stands; raises as :func:`up`."""
    with _connected(dsn) as connection:
        return Status(_context(connection).get_current_revision(), HEAD)


def write_down(
    to_stream: TextIO, *, roles: Roles, to: str = HEAD, since: str | None = None
) -> None:
    """Write what :func:`up` or :func:`down` would do between two revisions, as SQL.

    Args:
        to_stream: where to.
        roles: as for :func:`up`.
        to: the revision to arrive at.
        since: the revision to leave from; None for an empty database.

    Raises:
        SettingsError: there is no such revision.
    """
    upwards = since is None or to > since
    with _environment(roles, to=to, upwards=upwards, starting=since) as environment:
        environment.configure(
            dialect_name="postgresql",
            as_sql=True,
            dialect_opts={"paramstyle": "named"},
            output_buffer=to_stream,
            version_table_schema=SCHEMA,
            transactional_ddl=True,
        )
        with environment.begin_transaction():
            if since is None:
                environment.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            environment.run_migrations()


def script_directory() -> ScriptDirectory:
    """Return where the revisions lie."""
    folder = Path(__file__).parent
    return ScriptDirectory(str(folder), version_locations=[str(folder / "revisions")])


def _migrate(dsn: str, *, roles: Roles, to: str, upwards: bool) -> None:
    with _connected(dsn) as connection, connection.begin():
        connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_KEY})"))
        if upwards:
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        with _environment(roles, to=to, upwards=upwards) as environment:
            environment.configure(connection=connection, version_table_schema=SCHEMA)
            environment.run_migrations()


@contextmanager
def _environment(
    roles: Roles, *, to: str, upwards: bool, starting: str | None = None
) -> Generator[EnvironmentContext]:
    directory = script_directory()
    known = {one.revision for one in directory.walk_revisions()}
    if to not in known:
        raise SettingsError(setting="revision", problem=f"is none of {', '.join(sorted(known))}")

    def steps(found: Any, context: MigrationContext) -> Any:
        del context
        if upwards:
            return directory._upgrade_revs(to, found or "base")  # noqa: SLF001 - as its commands
        return directory._downgrade_revs(to, found)  # noqa: SLF001 - as above

    config = Config(attributes={"roles": roles})
    options: dict[str, Any] = {"fn": steps, "as_sql": False, "destination_rev": to}
    if starting is not None:
        options["starting_rev"] = starting
    with EnvironmentContext(config, directory, **options) as environment:
        yield environment


@contextmanager
def _connected(dsn: str) -> Generator[Connection]:
    store = check_dsn(dsn, setting=_SETTING)

    def opened() -> psycopg.Connection[Any]:
        connection = connect(dsn, limits=_LIMITS, store=store)
        connection.autocommit = False
        return connection

    engine = create_engine("postgresql+psycopg://", creator=opened, poolclass=NullPool)
    try:
        with translating(store=store), _refusals(), _unwrapped(), engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _refusals() -> Generator[None]:
    try:
        yield
    except (psycopg.errors.RaiseException, psycopg.errors.InsufficientPrivilege) as error:
        said = [error.diag.message_primary, error.diag.message_hint]
        if type(error) is psycopg.errors.InsufficientPrivilege and said[1] is None:
            raise  # The server's own.
        raise MigrationRefusedError(problem="; ".join(filter(None, said))) from error


@contextmanager
def _unwrapped() -> Generator[None]:
    """Raise the driver's errors as they are: the wrapping would print whole statements."""
    found = None
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):
            raise
        found = error.orig
    if found is not None:
        found.__context__ = None
        raise found


def _context(connection: Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
