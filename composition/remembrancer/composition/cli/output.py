"""What a command shows: a table that a person likes to read, or JSON for a program."""

import json
import os
import re
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from remembrancer.application.remember import Progress as OnProgress
from remembrancer.domain.errors import InvalidInputError, RemembrancerError
from remembrancer.domain.fences import escaped
from remembrancer.domain.parsed import plain

PREVIEW_CHARACTERS = 160
ROWS_MAX = 10
"""Rows of what was left out; the rest is only counted."""
WHOLE_COLUMNS = frozenset({"#", "entry", "id"})
"""Columns that are never wrapped: an id is there to be copied."""


_WIDE = 10_000
"""Columns where no terminal is: a program, or a file, gets each row on one line."""
_CLASS = re.compile(r"^[A-Z]\w*\.")
"""The value object in a field such as ``RecallQuery.limit``: nothing that a person typed."""


_OPTIONS = {
    "as_of": "--as-of",
    "read_ceiling": "--ceiling",
    "scopes": "--scope",
    "subjects": "--subject",
}
"""Fields of value objects that are called otherwise where they are typed."""


class _Console(Console):
    """A console that leaves a broken pipe to the command line, and wraps for people only."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _WIDE

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Output:
    """Writes results to standard output, and progress and errors to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = _Console(soft_wrap=True, highlight=False)
        self._err = _Console(stderr=True, highlight=False)

    def data(self, value: Any) -> None:
        """Show ``value`` as JSON; only called where JSON was asked for."""
        utf8 = sys.stdout.encoding.lower().startswith("utf")
        self.verbatim(json.dumps(value, ensure_ascii=not utf8, indent=2, default=str))

    def verbatim(self, text: str) -> None:
        """Write ``text`` as it is, tabs and all."""
        sys.stdout.write(f"{text}\n")

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """Show a line; nothing in ``text`` is taken for markup."""
        self._out.print(text, style=style, markup=False, emoji=False)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Show a table."""
        table = _table(title)
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column in WHOLE_COLUMNS)
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self._out.print(table, emoji=False)

    def shortened(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], count: int
    ) -> None:
        """Show the first rows of a table, and how many more of ``count`` there are."""
        self.table(title, columns, rows[:ROWS_MAX])
        if count > ROWS_MAX:
            self.line(f"  ... and {count - ROWS_MAX} more (--json lists them)", style="dim")

    def entries(self, title: str, entries: Iterable[tuple[str, Sequence[object]]]) -> None:
        """Show texts, numbered, each with a line of facts under it."""
        table = _table(title)
        table.add_column("#", no_wrap=True)
        table.add_column("entry", overflow="fold")
        for number, (text, facts) in enumerate(entries, start=1):
            told = " · ".join(str(fact) for fact in facts if fact)
            table.add_row(str(number), Text.assemble(text, "\n", (told, "dim")))
        self._out.print(table, emoji=False)

    def error(self, error: RemembrancerError) -> None:
        """Show what was wrong and what to do."""
        if self.as_json:
            fields = {name: value for name, value in vars(error).items() if name[0] != "_"}
            report = {"type": type(error).__name__, "message": _said(error), "retry": error.retry}
            self.data({"error": {**report, "fields": fields}})
        else:
            shown = escape(_said(error))
            self._err.print(f"[bold red]error:[/] {shown}", emoji=False, soft_wrap=True)

    def wrong_use(self, error: Any) -> None:
        """Show which option or argument was wrong; ``error`` is one of Click's."""
        if not error.format_message() and not self.as_json:
            return  # A group without a command: its help was the answer.
        if hasattr(error, "message"):  # Typer leaves pydantic's words in it.
            error.message = plain(error.message)
        if self.as_json:
            report = {"type": type(error).__name__, "message": error.format_message()}
            self.data({"error": {**report, "retry": "never", "fields": {}}})
        elif self._err.is_terminal:
            error.show()
        else:
            call = getattr(error, "ctx", None)
            usage = f"{call.get_usage()}\n" if call is not None else ""
            sys.stderr.write(f"{usage}error: {error.format_message()}\n")

    def flush(self) -> None:
        """Write out what is still held back, while a broken pipe can be answered."""
        sys.stdout.flush()

    def hang_up(self) -> None:
        """Whoever read our output has seen enough: write no more of it."""
        with suppress(OSError):  # A test's, or a host's: no file of the system.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def failed(self, error: OSError) -> None:
        """Show what the system said no to."""
        with suppress(OSError):  # It may have been this very stream.
            name = f"{error.filename}: " if error.filename else ""
            told = escape(f"{name}{error.strerror or error}")
            self._err.print(f"[bold red]error:[/] {told}", emoji=False, soft_wrap=True)

    def interrupted(self) -> None:
        """Tell what an interrupt has left."""
        told = "interrupted: what was committed before stays, the rest was undone"
        if self.as_json:
            report = {"type": "Interrupted", "message": told, "retry": "later", "fields": {}}
            self.data({"error": report})
        else:
            self.note(told)

    def note(self, text: str) -> None:
        """Tell a person something beside the result."""
        if not self.as_json:
            self._err.print(escape(text), style="dim", emoji=False, soft_wrap=True)

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


def _said(error: RemembrancerError) -> str:
    """Return the message in the words of who typed the command, with what was noted on the way."""
    message = str(error)
    if isinstance(error, InvalidInputError):
        field = _CLASS.sub("", error.field)
        message = f"{_OPTIONS.get(field, field)}: {error.problem}"
    return "; ".join([message, *getattr(error, "__notes__", ())])


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )


def preview(text: str) -> str:
    """Return the beginning of a text on one line, without characters that hide or reorder."""
    flat = escaped(" ".join(text[: 4 * PREVIEW_CHARACTERS].split()))
    return flat if len(flat) <= PREVIEW_CHARACTERS else flat[: PREVIEW_CHARACTERS - 1] + "…"


def file_of(root: str | None, path: str) -> str:
    """Return a file's path as one finds it from here: paths below several roots may be alike."""
    if not root:
        return path
    try:
        return Path(root, path).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):  # It lies elsewhere, or this folder is gone.
        return Path(root, path).as_posix()
