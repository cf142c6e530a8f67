"""What a command shows: a table that a person likes to read, or JSON for a program."""

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from remembrancer.application.remember import Progress as OnProgress
from remembrancer.domain.errors import RemembrancerError
from remembrancer.domain.fences import escaped

PREVIEW_CHARACTERS = 160


class Output:
    """Writes results to standard output, and progress and errors to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = Console(soft_wrap=True, highlight=False)
        self._err = Console(stderr=True, highlight=False)

    def data(self, value: Any) -> None:
        """Show ``value`` as JSON; only called where JSON was asked for."""
        self._out.print(
            json.dumps(value, ensure_ascii=False, indent=2, default=str),
            markup=False,
            emoji=False,
            soft_wrap=True,
        )

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """Show a line; ``text`` is taken as it is, markup and all."""
        self._out.print(escape(text), style=style, emoji=False)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Show a table."""
        table = Table(title=title, title_justify="left", header_style="bold", expand=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self._out.print(table, emoji=False)

    def error(self, error: RemembrancerError) -> None:
        """Show what was wrong and what to do."""
        if self.as_json:
            fields = {name: value for name, value in vars(error).items() if name[0] != "_"}
            report = {"type": type(error).__name__, "message": str(error), "retry": error.retry}
            self.data({"error": {**report, "fields": fields}})
        else:
            self._err.print(f"[bold red]error:[/] {escape(str(error))}", emoji=False)

    def note(self, text: str) -> None:
        """Tell a person something beside the result."""
        if not self.as_json:
            self._err.print(escape(text), style="dim", emoji=False)

    @contextmanager
    def progress(self, what: str) -> Generator[OnProgress]:
        """Show a bar on standard error while long work goes on; yields the callback."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        hidden = self.as_json or not self._err.is_terminal
        with Progress(*columns, console=self._err, disable=hidden, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


def preview(text: str) -> str:
    """Return the beginning of a text on one line, without characters that hide or reorder."""
    flat = escaped(" ".join(text[: 4 * PREVIEW_CHARACTERS].split()))
    return flat if len(flat) <= PREVIEW_CHARACTERS else flat[: PREVIEW_CHARACTERS - 1] + "…"
