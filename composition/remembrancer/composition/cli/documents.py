"""The command ``import``."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from remembrancer.application.import_documents import (
    KIND,
    ImportedSection,
    ImportReport,
    Progress,
)
from remembrancer.composition.cli.options import (
    AsJson,
    Config,
    Db,
    Owner,
    Scope,
    SensitivityName,
    Tenant,
    given,
    opened,
    sensitivity_of,
)
from remembrancer.composition.cli.output import Output, file_of
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import (
    InvalidInputError,
    RemembrancerError,
    UnreadableDocumentError,
)

_READ = ".md, .markdown, .mdown, .mkd, .txt and .text"


def import_(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Markdown and text files, or folders.")
    ],
    kind: Annotated[str, typer.Option("--kind", help="Kind of the entries.")] = KIND,
    tenant: Tenant = None,
    owner: Owner = None,
    scope: Scope = None,
    sensitivity: SensitivityName = None,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Import documents, one entry per section.

    Reads Markdown (.md, .markdown, .mdown, .mkd) and plain text (.txt, .text); hidden files and
    folders are left out.  Importing again changes nothing, also where an entry was corrected by
    hand; a section whose file was edited becomes a correction; one that vanished is reported and
    kept.  Exit status 1 if a file couldn't be read; the others are imported.
    """
    with opened(db, config, as_json=as_json, new=True) as session:
        who = session.identity
        with session.out.progress("importing") as bar, _going_on(session.out, bar) as progress:
            report = session.memory.import_documents(
                # An empty one stays so: as a Path it would be this folder, and isn't refused.
                [Path(one) if one else one for one in paths],
                tenant=given(tenant, who.tenant),
                owner=given(owner, who.owner),
                scope=given(scope, who.scope),
                sensitivity=sensitivity_of(sensitivity, who.sensitivity),
                kind=kind,
                progress=progress,
            )
        if as_json:
            session.out.data(_data(report))
        else:
            _show(session.out, report)
            if report.added:
                where = given(scope, who.scope)
                session.out.note(f'Ask with: remembrancer recall "a question" --scope {where}')
    if report.problems:
        raise typer.Exit(1)


@contextmanager
def _going_on(out: Output, bar: Progress) -> Generator[Progress]:
    """Yield a progress that remembers how far it came; say so where the import breaks off."""
    came = [0, 0]

    def progress(done: int, total: int) -> None:
        came[:] = done, total
        bar(done, total)

    def hint() -> str:
        done, total = came
        so_far = f"{done} of {counted(total, 'file')} are in" if done else "a part may be in"
        return f"{so_far}; run it again to go on"

    try:
        yield progress
    except UnreadableDocumentError:
        raise  # Nothing was begun.
    except RemembrancerError as error:
        # Paths and labels are looked at before anything is read.
        if came[0] or not isinstance(error, InvalidInputError):
            error.add_note(hint())
        raise
    except KeyboardInterrupt:
        out.note(hint())
        raise


def _show(out: Output, report: ImportReport) -> None:
    out.line(
        f"{len(report.added)} added, {len(report.corrected)} corrected, "
        f"{report.unchanged} unchanged, {len(report.vanished)} vanished, "
        f"{counted(len(report.problems), 'file')} not read."
    )
    if report.skipped:
        out.line(f"Left out: {counted(report.skipped, 'file')} of other kinds; {_READ} are read.")
    if report.repeated:
        title = "Left out: links to what was imported where it lies"
        out.shortened(title, ("link", "leads to"), report.repeated, len(report.repeated))
    if report.corrected:
        out.table("Corrected", ("entry", "path", "heading"), _rows(report.corrected))
    if report.replaced_by_hand:
        out.table(
            "Corrected by hand before; the file is newer and replaced it",
            ("entry", "path", "heading"),
            _rows(report.replaced_by_hand),
        )
    if report.vanished:
        out.table("Vanished, and kept", ("entry", "path", "heading"), _rows(report.vanished))
    if report.erased:
        out.table(
            "Erased before, not imported", ("entry", "path", "heading"), _rows(report.erased)
        )
    if report.problems:
        rows = [(file_of(one.root, one.path), one.problem) for one in report.problems]
        out.table("Not read", ("path", "why"), rows)


def _rows(sections: Iterable[ImportedSection]) -> list[tuple[object, ...]]:
    return [(one.entry_id, file_of(one.root, one.path), one.heading) for one in sections]


def _data(report: ImportReport) -> dict[str, Any]:
    return {
        "added": _sections_data(report.added),
        "corrected": _sections_data(report.corrected),
        "replaced_by_hand": _sections_data(report.replaced_by_hand),
        "unchanged": report.unchanged,
        "vanished": _sections_data(report.vanished),
        "erased": _sections_data(report.erased),
        "repeated": [{"path": link, "of": path} for link, path in report.repeated],
        "skipped": report.skipped,
        "problems": [
            {
                "path": one.path,
                "root": one.root,
                "fault": str(one.fault),
                "problem": one.problem,
            }
            for one in report.problems
        ],
    }


def _sections_data(sections: Iterable[ImportedSection]) -> list[dict[str, str]]:
    return [
        {
            "entry_id": str(one.entry_id),
            "path": one.path,
            "root": one.root,
            "heading": one.heading,
        }
        for one in sections
    ]
