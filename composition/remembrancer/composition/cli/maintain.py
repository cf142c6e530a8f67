"""Commands for the owner of a PostgreSQL schema: ``maintain clear`` and ``maintain vectors``."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from remembrancer.composition.cli.options import AsJson, Config, read_settings
from remembrancer.composition.cli.output import Output
from remembrancer.composition.settings_postgres import required_connection_string
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from types import ModuleType

maintain_app = typer.Typer(
    help="What only the owner of a PostgreSQL schema can do.", no_args_is_help=True
)


@maintain_app.command()
def clear(config: Config = None, as_json: AsJson = False) -> None:
    """Write the tables anew without what was erased from them.  Locks each meanwhile.

    The write-ahead log, replicas and backups keep what they have until they expire.  Exit status 1
    if a transaction may still see erased rows.
    """
    cleared = _maintenance().clear(_owner(config))
    out = Output(as_json=as_json)
    if as_json:
        out.data({"erasures": cleared.erasures, "kept_rows": cleared.kept_rows})
    elif cleared.kept_rows:
        out.line(
            f"{counted(cleared.kept_rows, 'erased row')} had to be kept: a transaction may still "
            "see what is in it. End it and run again."
        )
    else:
        out.line(
            f"The tables are clear: {counted(cleared.erasures, 'erasure')} since the last time."
        )
    if cleared.kept_rows:
        raise typer.Exit(1)


@maintain_app.command()
def vectors(
    drop: Annotated[
        bool, typer.Option("--drop", help="Drop the approximate indexes instead.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make an approximate index for owners of very many entries; others are answered exactly."""
    maintenance = _maintenance()
    dsn = _owner(config)
    names = maintenance.drop_approximate(dsn) if drop else maintenance.make_approximate(dsn)
    out = Output(as_json=as_json)
    if as_json:
        out.data({"dropped" if drop else "there": names})
    else:
        done = "Dropped" if drop else "There now"
        out.line(f"{done}: {', '.join(names) or 'none'}.")


def _owner(config: Config) -> str:
    store = read_settings(None, config).store
    if store.backend != "postgres":
        raise SettingsError(
            setting="store.backend", problem=f"is {store.backend}: only postgres needs this"
        )
    return required_connection_string(store, "owner_dsn", os.environ)


def _maintenance() -> "ModuleType":
    try:
        # Here, since it needs packages that other backends do without.
        from remembrancer.adapters.postgres import maintenance  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SettingsError(
            setting="store.backend",
            problem=f"postgres needs the package {error.name}; install remembrancer[postgres]",
        ) from None
    return maintenance
