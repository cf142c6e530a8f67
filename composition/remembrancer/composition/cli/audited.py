"""A store opened for the auditor's commands, and what they show."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remembrancer.composition.cli.options import read_settings
from remembrancer.composition.cli.output import Output
from remembrancer.composition.settings import StoreSettings
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Generator

    from remembrancer.application.audit.finding import AuditReport, Finding
    from remembrancer.application.ports.audit_source import AuditSource


def audited_store(db: Path | None, config: Path | None) -> StoreSettings:
    """Return where the store is.

    Raises:
        SettingsError: there is none.
    """
    store = read_settings(db, config, read_only=True).store
    if store.backend == "sqlite" and not _is_there(store.path):
        raise SettingsError(
            setting="store.path",
            problem=f"there is no memory at {store.path}; name another file with --db",
        )
    return store


@contextmanager
def opened_source(store: StoreSettings) -> "Generator[AuditSource]":
    """Open the store for reading alone.

    Raises:
        StoreError: it can't be opened; the error says why.
    """
    # The backend's parts load when something is opened.
    from remembrancer.composition.store import open_audit_source  # noqa: PLC0415

    with open_audit_source(store) as source:
        yield source


def show_findings(out: Output, report: "AuditReport") -> None:
    """Show each finding, and how many more there are than were kept."""
    out.table(
        counted(report.findings_count, "finding"),
        ("invariant", "where", "expected", "found"),
        [(one.invariant, _where(one), one.expected, one.found) for one in report.findings],
    )
    more = report.findings_count - len(report.findings)
    if more:
        out.line(f"... and {more} more, which weren't kept", style="dim")


def report_data(report: "AuditReport") -> dict[str, Any]:
    """Return a report for a program."""
    return {
        "store": report.store,
        "green": report.is_green,
        "findings": [_finding_data(one) for one in report.findings],
        "findings_count": report.findings_count,
        "notes": list(report.notes),
        "counts": report.counts,
        "position": report.position,
        "asked_streams": report.asked,
    }


def _finding_data(finding: "Finding") -> dict[str, Any]:
    return {
        "invariant": finding.invariant,
        "stream": None if finding.stream is None else str(finding.stream),
        "version": finding.version,
        "about": finding.about,
        "expected": finding.expected,
        "found": finding.found,
        "position": finding.position,
        "at": None if finding.at is None else finding.at.isoformat(),
        "tenant": finding.tenant,
        "owner": finding.owner,
    }


def _where(finding: "Finding") -> str:
    stream = "" if finding.stream is None else f"stream {finding.stream}"
    version = "" if finding.version is None else f"version {finding.version}"
    return ", ".join(filter(None, (finding.about, stream, version))) or "the store"


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # Opening it says what is wrong.
