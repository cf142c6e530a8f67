"""Commands that take a memory elsewhere: ``export`` and ``restore``."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from remembrancer.composition.cli.options import AsJson, Config, Db, given, opened, read_settings
from remembrancer.composition.export_file import lines_of
from remembrancer.composition.settings import StoreSettings
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.export_errors import (
    DamagedExportError,
    StoreNotEmptyError,
    UnreadableExportError,
)
from remembrancer.domain.identity import parse_entry_id

if TYPE_CHECKING:
    from remembrancer.application.export import Exported
    from remembrancer.application.restore import Restored

_ANOTHER = {
    False: "name another file with --db",
    True: "name another database in the settings, or with --config settings that name a file",
}
"""Where to restore, by whether it was to be a server."""


def export(
    out: Annotated[
        Path, typer.Option("--out", help="A new file; one that ends in .gz is packed.")
    ],
    stream: Annotated[str | None, typer.Option("--stream", help="One stream, by its id.")] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="One tenant; everything by default.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help="One owner, of --tenant or the settings' tenant.")
    ] = None,
    with_originals: Annotated[
        bool | None,
        typer.Option(
            "--with-originals/--without-originals",
            help="Texts, salts, packs' items and keys too; by default only of everything.",
        ),
    ] = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write the log, and what belongs to it, to a file that any kind of store can restore."""
    with opened(db, config, as_json=as_json, read_only=True) as session:
        with session.out.progress("exporting") as progress:
            done = session.memory.export(
                out,
                # An owner is of one tenant; everything is of all.
                tenant=tenant if owner is None else given(tenant, session.identity.tenant),
                owner=owner,
                stream=None if stream is None else _stream(stream),
                originals=with_originals,
                progress=progress,
            )
        if as_json:
            session.out.data(
                {
                    "file": str(out),
                    "events": done.events,
                    "originals": done.originals,
                    "sessions": done.sessions,
                    "holds_originals": done.holds_originals,
                    "sha256": done.sha256,
                }
            )
            return
        session.out.line(f"{out}: {_much(done)}.")
        if done.holds_originals:
            session.out.line(
                "The file holds texts, their salts and sessions' keys, unencrypted: what is "
                "erased here later stays in it. Only you may read it; keep it so.",
                style="yellow",
            )
        else:
            session.out.line("No text is in it (--with-originals).")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `remembrancer export` wrote.")
    ],
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Restore an export into an empty memory, made if missing: all of it, or nothing.

    Exit status 1 if the file is damaged.
    """
    with lines_of(file):
        pass  # One that can't be read shouldn't leave an empty memory.
    store = read_settings(db, config).store
    is_new = store.backend == "sqlite" and not store.path.exists()
    with opened(db, config, as_json=as_json, new=True) as session:
        with session.out.progress("restoring") as progress, _with_what_to_do(store, is_new=is_new):
            done = session.memory.restore(file, progress=progress)
        if as_json:
            session.out.data(
                {
                    "events": done.events,
                    "originals": done.originals,
                    "sessions": done.sessions,
                    "owners": done.owners,
                    "holds_originals": done.holds_originals,
                    "versions_by_words": done.versions_by_words,
                }
            )
            return
        session.out.line(
            f"Restored: {_much(done)}; of {counted(done.owners, 'owner')}. "
            f"Found by words: {counted(done.versions_by_words, 'version')}."
        )
        if done.holds_originals:
            session.out.line("Vectors aren't exported: `remembrancer reindex` makes them.")
        else:
            session.out.line(
                "The export held no texts: nothing can be recalled or replayed from it.",
                style="yellow",
            )


@contextmanager
def _with_what_to_do(store: StoreSettings, *, is_new: bool) -> Generator[None]:
    """Say what is left where a restore failed: no file is deleted that another may have opened."""
    try:
        yield
    except StoreNotEmptyError as error:
        error.add_note(_ANOTHER[store.backend == "postgres"])
        raise
    except (DamagedExportError, UnreadableExportError) as error:
        if is_new:
            error.add_note(f"{store.path} was made for it, and is empty")
        raise


def _much(done: "Exported | Restored") -> str:
    return (
        f"{counted(done.events, 'event')}, {counted(done.originals, 'original')}, "
        f"content of {counted(done.sessions, 'selection')}"
    )


def _stream(text: str) -> UUID:
    try:
        return parse_entry_id(text)
    except InvalidInputError as error:
        raise InvalidInputError(field="--stream", problem=error.problem) from None
