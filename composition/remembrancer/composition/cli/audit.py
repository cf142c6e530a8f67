"""The auditor's commands: ``audit``, ``audit seal``, ``audit verify``, ``audit keygen``.

They open the store for reading alone, without the model, the index or the network, and leave
nothing behind.  Exit status 1 with findings.
"""

import re
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remembrancer.composition.auditing import require_asked, scope_of
from remembrancer.composition.cli.audit_seal import keygen, seal, verify
from remembrancer.composition.cli.audited import (
    audited_store,
    opened_source,
    report_data,
    show_findings,
)
from remembrancer.composition.cli.options import AsJson, Config, Db
from remembrancer.composition.cli.output import Output
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import (
    InvalidInputError,
    StoreError,
    StoreForbiddenError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from remembrancer.application.audit.finding import AuditReport, AuditScope
    from remembrancer.application.ports.audit_source import AuditSource
    from remembrancer.composition.report.html_report import HtmlReport
    from remembrancer.composition.settings import StoreSettings

_PLURAL = re.compile(r"(ie)?s\b")

audit_app = typer.Typer(help="Prove every rule over the log, or name what breaks it.")
audit_app.command()(seal)
audit_app.command()(verify)
audit_app.command()(keygen)


@audit_app.callback(invoke_without_command=True)
def audit(
    call: typer.Context,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Only findings about this tenant.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only findings about this owner.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only findings about events from this UTC day or time on: 2030-01-31.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page of it too; a new file.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let --html replace an earlier page.")
    ] = False,
    db: Db = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Prove every rule over log, vault and projections; exit 1 with what breaks one.

    Everything is read, nothing is written, and the store may lie on read-only media.
    """
    if call.invoked_subcommand is not None:
        return
    scope, out = scope_of(tenant, owner, _since(since)), Output(as_json=as_json)
    page = None if html is None else _page(html, replace=force)
    report = _audited(audited_store(db, config), scope, out, page)
    if as_json:
        out.data({**report_data(report), "invariants": _invariants()})
    else:
        _show(out, report)
    if not report.is_green:
        raise typer.Exit(1)


def _audited(
    store: "StoreSettings", scope: "AuditScope", out: Output, page: "HtmlReport | None"
) -> "AuditReport":
    """Audit; a store that can't be opened is a finding too, unless it is a server that is away."""
    # Here, since every other command would pay for them.
    from remembrancer.application.audit.audit import unopened  # noqa: PLC0415

    try:
        with opened_source(store) as source:
            return _run(source, scope, out, page)
    except StoreError as error:
        away = isinstance(error, StoreUnavailableError) and store.backend == "postgres"
        if away and not isinstance(error, StoreForbiddenError):  # It is there, and hides rows.
            raise
        report = unopened(store.place, error)
    if page is not None:
        _draw(page, None, report, scope, out)
    return report


def _run(
    source: "AuditSource", scope: "AuditScope", out: Output, page: "HtmlReport | None"
) -> "AuditReport":
    # As above.
    from remembrancer.adapters.eventlog.audit_reader import FastStateReader  # noqa: PLC0415
    from remembrancer.application.audit.audit import Audit  # noqa: PLC0415

    with out.progress("auditing") as progress:
        report = Audit(source=source, reader=FastStateReader())(scope, progress=progress)
    require_asked(report, scope)
    if page is not None:
        _draw(page, source, report, scope, out)
    return report


def _draw(
    page: "HtmlReport",
    source: "AuditSource | None",
    report: "AuditReport",
    scope: "AuditScope",
    out: Output,
) -> None:
    # As above.
    from remembrancer.adapters.eventlog.audit_reader import FastStateReader  # noqa: PLC0415

    with out.progress("drawing the page") as progress:
        page.write(
            source,
            report,
            scope=scope,
            at=datetime.now(UTC),
            reader=FastStateReader(),
            progress=lambda done: progress(done, report.counts.get("events", done)),
        )
    out.note(f"{page.path} shows it")


def _page(path: Path, *, replace: bool) -> "HtmlReport":
    # Loads what only the page needs.
    from remembrancer.composition.report.html_report import HtmlReport  # noqa: PLC0415

    return HtmlReport.prepare(path, replace=replace)


def _show(out: Output, report: "AuditReport") -> None:
    events, streams = report.counts.get("events", 0), report.counts.get("streams", 0)
    out.line(
        f"{report.store}: {counted(events, 'event')} in {counted(streams, 'stream')}, "
        f"up to {report.position}."
    )
    if report.asked is not None:
        out.line(f"Told are findings about who was asked for: {counted(report.asked, 'stream')}.")
    rest = {
        part: count
        for part, count in report.counts.items()
        if part not in {"events", "streams"} and count
    }
    if rest:
        out.line("Compared with the log: " + ", ".join(_much(part, n) for part, n in rest.items()))
    for note in report.notes:
        out.line(f"Note: {note}.", style="dim")
    if report.is_green:
        out.line(f"All {len(_invariants())} invariants hold.", style="green")
    else:
        show_findings(out, report)


def _much(part: str, count: int) -> str:
    """Return how much of a part was compared; parts have their names in the plural."""
    return counted(count, _PLURAL.sub(lambda word: "y" if word[1] else "", part, count=1), part)


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        pass
    else:
        return datetime.combine(day, time(), tzinfo=UTC)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            field="--since", problem="must be a UTC day or time, such as 2030-01-31T12:00"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _invariants() -> list[dict[str, Any]]:
    # As above.
    from remembrancer.application.audit.invariants import INVARIANTS  # noqa: PLC0415

    return [
        {"name": one.name, "sentence": one.sentence, "source": one.source} for one in INVARIANTS
    ]
