"""Commands that change a PostgreSQL schema: ``migrate up``, ``migrate down``, ``migrate status``.

They connect as the owner of the tables (``store.owner_dsn_variable`` or ``_file``), which a
memory at work never does.  With ``--sql`` they write what an administrator can run, and connect to
nothing.
"""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from remembrancer.composition.cli.options import AsJson, Config, read_settings
from remembrancer.composition.cli.output import Output
from remembrancer.composition.settings_postgres import required_connection_string
from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from types import ModuleType

    from remembrancer.adapters.postgres.migrations.row_security import Roles
    from remembrancer.composition.settings import StoreSettings

migrate_app = typer.Typer(
    help="Bring a PostgreSQL schema to a revision, or take it back.", no_args_is_help=True
)

Sql = Annotated[
    bool, typer.Option("--sql", help="Write the SQL instead of running it; connects to nothing.")
]


@migrate_app.command()
def up(
    to: Annotated[
        str | None, typer.Option("--to", help="A revision; by default this release's.")
    ] = None,
    sql: Sql = False,
    since: Annotated[
        str | None,
        typer.Option("--since", help="With --sql: the revision it is at; else an empty database."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make the schema and its roles, or bring them up; nothing happens if they are there."""
    migrations, store = _migrations(), _store(config)
    target = to or migrations.HEAD
    if sql:
        migrations.write_down(sys.stdout, roles=_roles(store), to=target, since=since)
        return
    _refuse_since(since)
    dsn = required_connection_string(store, "owner_dsn", os.environ)
    migrations.up(dsn, roles=_roles(store), to=target)
    _show(migrations, dsn, as_json=as_json)


@migrate_app.command()
def down(
    to: Annotated[str, typer.Option("--to", help="The revision to arrive at.")],
    sql: Sql = False,
    since: Annotated[
        str | None,
        typer.Option("--since", help="With --sql: the revision it is at; else this release's."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Take the schema back.  Every charge stays; refused while queries are pending.

    Needs a role from which row security hides nothing: it would find nothing pending otherwise.
    """
    migrations, store = _migrations(), _store(config)
    if sql:
        migrations.write_down(
            sys.stdout, roles=_roles(store), to=to, since=since or migrations.HEAD
        )
        return
    _refuse_since(since)
    dsn = required_connection_string(store, "owner_dsn", os.environ)
    migrations.down(dsn, roles=_roles(store), to=to)
    _show(migrations, dsn, as_json=as_json)


@migrate_app.command()
def status(config: Config = None, as_json: AsJson = False) -> None:
    """Say at which revision the schema is.  Exit status 1 unless it is this release's."""
    migrations, store = _migrations(), _store(config)
    dsn = required_connection_string(store, "owner_dsn", os.environ)
    if not _show(migrations, dsn, as_json=as_json):
        raise typer.Exit(1)


def _show(migrations: "ModuleType", dsn: str, *, as_json: bool) -> bool:
    """Show where the schema stands; return whether that is where this release needs it."""
    found = migrations.status(dsn)
    is_current: bool = found.found == found.head
    out = Output(as_json=as_json)
    if as_json:
        out.data({"found": found.found, "head": found.head, "is_current": is_current})
    elif is_current:
        out.line(f"The schema is at revision {found.found}, as this release needs it.")
    else:
        at = "There is no schema yet" if found.found is None else f"It is at {found.found}"
        out.line(f"{at}; this release needs revision {found.head}: `remembrancer migrate up`.")
    return is_current


def _refuse_since(since: str | None) -> None:
    if since is not None:
        raise SettingsError(setting="--since", problem="is for --sql: else the schema is asked")


def _store(config: Config) -> "StoreSettings":
    store = read_settings(None, config).store
    if store.backend != "postgres":
        raise SettingsError(
            setting="store.backend",
            problem=f"is {store.backend}: only postgres has a schema that is migrated by hand",
        )
    return store


def _roles(store: "StoreSettings") -> "Roles":
    from remembrancer.adapters.postgres.migrations.row_security import (  # noqa: PLC0415  # below
        Roles,
    )

    return Roles(application=store.application_role, auditor=store.auditor_role)


def _migrations() -> "ModuleType":
    # Here, since it needs packages that other backends do without.
    try:
        from remembrancer.adapters.postgres.migrations import migrate  # noqa: PLC0415  # as above
    except ModuleNotFoundError as error:
        raise SettingsError(
            setting="store.backend",
            problem=f"postgres needs the package {error.name}; install remembrancer[postgres]",
        ) from None
    return migrate
