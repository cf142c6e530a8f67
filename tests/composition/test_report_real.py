"""The page of a real memory: everything that happened is in it, and no text of it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.composition.shell import Shell

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.application.audit.audit import Audit
from remembrancer.application.audit.finding import AuditScope
from remembrancer.composition.report.html_report import HtmlReport

QUESTION = "whitherthecanary"
TEXT = "the invoice service of the canarybird"


@pytest.fixture
def page(shell: Shell, tmp_path: Path) -> str:
    shell.json("remember", TEXT)
    gone = shell.json("remember", f"{TEXT}, again")
    shell.json("pack", "s-1", "plan", QUESTION, "--budget", "400")
    shell.json("erase", gone["entry_id"], "--reason", "outdated")
    [database] = tmp_path.glob("*.db")
    with SqliteAuditSource.open(database) as source:
        report = Audit(source=source, reader=FastStateReader())(AuditScope())
        made = HtmlReport.prepare(tmp_path / "report.html", replace=False)
        made.write(
            source,
            report,
            scope=AuditScope(),
            at=datetime(2032, 1, 1, tzinfo=UTC),
            reader=FastStateReader(),
        )
    return (tmp_path / "report.html").read_text()


def test_no_text_and_no_question_is_in_the_page(page: str) -> None:
    assert "canary" not in page


def test_what_happened_is_in_the_page(page: str) -> None:
    assert "every rule holds" in page
    for part in ('"session":"s-1"', '"reason":"outdated"', '"number":1', '"mode":"'):
        assert part in page, part
