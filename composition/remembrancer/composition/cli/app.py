"""The commands put together, and what every failure becomes."""

import io
import os
import sys
import warnings
from importlib.metadata import version
from typing import Annotated, Any

import typer

from remembrancer.composition.cli import (
    INTERRUPTED,
    audit,
    documents,
    entries,
    erasing,
    gates,
    looking_back,
    maintain,
    migrate,
    moving,
    questions,
    spending,
    upkeep,
)
from remembrancer.composition.cli.output import Output
from remembrancer.domain.errors import RefusedError, RemembrancerError, SettingsError

OK, FINDING, WRONG_USE = 0, 1, 2

# The base of Click's errors.  Newer releases of Typer bring a Click of their own, so it can't be
# had by `import click`; no name of it is public in both.
_ClickError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="remembrancer",
    help="Memory for agents: recall that can be replayed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # Typer calls it so
    if wanted:
        typer.echo(version("remembrancer"))
        raise typer.Exit


@app.callback()
def _about(
    *,
    show: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and end."
        ),
    ] = False,
) -> None:
    """Memory for agents: recall that can be replayed."""


app.command()(entries.init)
app.command(name="import")(documents.import_)
app.command()(entries.remember)
app.command()(entries.correct)
app.command()(erasing.erase)
app.command(name="erase-session")(erasing.erase_session)
app.command(name="erase-owner")(erasing.erase_owner)
app.command()(questions.recall)
app.command()(questions.pack)
app.command()(questions.replay)
app.command()(looking_back.explain)
app.command()(looking_back.history)
app.command()(looking_back.timeline)
app.command()(moving.export)
app.command()(moving.restore)
app.command()(spending.prepare)
app.add_typer(spending.spend_app, name="spend")
app.add_typer(gates.gates_app, name="gates")
app.add_typer(audit.audit_app, name="audit")
app.command()(upkeep.reindex)
app.command()(upkeep.project)
app.command()(upkeep.status)
app.command()(upkeep.doctor)
app.add_typer(maintain.maintain_app, name="maintain")
app.add_typer(migrate.migrate_app, name="migrate")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line as a process does; return its exit status."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that can't show a character gets its escape, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    # Of a folder with many vectors, at each command, with a line of its source; README says so.
    warnings.filterwarnings("ignore", message="Local mode is not recommended")
    given = sys.argv[1:] if arguments is None else arguments
    return run(given)


def run(arguments: list[str]) -> int:
    """Run one command; return its exit status.  Never a traceback for what a user can cause."""
    out = Output(as_json="--json" in arguments)
    try:
        # Without standalone mode, Click returns the status that a command ends with.
        status = app(arguments, standalone_mode=False)
        out.flush()
    except RemembrancerError as error:
        out.error(error)
        return WRONG_USE if isinstance(error, RefusedError | SettingsError) else FINDING
    except _ClickError as error:
        out.wrong_use(error)
        return WRONG_USE
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except BrokenPipeError:
        out.hang_up()
        return OK
    except (
        OSError
    ) as error:  # Nobody translated it: what we write to, or read from, is full, gone.
        out.hang_up()
        out.failed(error)
        return FINDING
    if status == INTERRUPTED:
        out.interrupted()
    return status if isinstance(status, int) else OK


def _open_streams() -> None:
    """Put something in the place of streams that a parent had closed, as a service may."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  # for the process's life
