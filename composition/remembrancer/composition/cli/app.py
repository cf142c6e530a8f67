"""The commands put together, and what every failure becomes."""

import sys

import click
import typer

from remembrancer.composition.cli import documents, entries, questions, upkeep
from remembrancer.composition.cli.output import Output
from remembrancer.domain.errors import RefusedError, RemembrancerError, SettingsError

OK, FINDING, WRONG_USE = 0, 1, 2

app = typer.Typer(
    name="remembrancer",
    help="Memory for agents: recall that can be replayed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(entries.init)
app.command(name="import")(documents.import_)
app.command()(entries.remember)
app.command()(entries.correct)
app.command()(entries.erase)
app.command()(questions.recall)
app.command()(questions.pack)
app.command()(questions.replay)
app.command()(upkeep.reindex)
app.command()(upkeep.status)
app.command()(upkeep.doctor)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ends the process with its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run(given))


def run(arguments: list[str]) -> int:
    """Run one command; return its exit status.  Never a traceback for what a user can cause."""
    out = Output(as_json="--json" in arguments)
    try:
        app(arguments, standalone_mode=False)
    except RemembrancerError as error:
        out.error(error)
        return WRONG_USE if isinstance(error, RefusedError | SettingsError) else FINDING
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return WRONG_USE
    except (click.Abort, KeyboardInterrupt):
        out.note("interrupted; nothing was left half done")
        return FINDING
    except BrokenPipeError:
        # Whoever reads our output has seen enough.
        sys.stderr.close()
        return OK
    return OK
