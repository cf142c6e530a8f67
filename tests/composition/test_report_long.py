"""A log of 100,000 events: the page stays of bounded size, and answers at once."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.composition.report_browser import browser
from tests.composition.report_world import long_log, report_of

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.composition.report.charts import chart_library
from remembrancer.composition.report.collecting import collect
from remembrancer.composition.report.page import Cover, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import CDPSession, Page

EVENTS = 100_000
PAGE_BYTES_MAX = 6_000_000
ELEMENTS_MAX = 8_000
BUSY_MS_MAX = 1_000
"""Of the page's own thread, however many others want the processor; measured: 20 to 250."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(
        page_of(
            collect(long_log(EVENTS), reader=FastStateReader()),
            report_of(12_000),
            cover=Cover(made_at=datetime(2032, 1, 1, tzinfo=UTC), version="0.1.0", scope=""),
            library=chart_library(),
            sentences={},
        )
    )
    return path


@pytest.fixture(scope="module")
def page(report: Path) -> "Iterator[Page]":
    with browser() as started:
        page = started.new_page()
        page.goto(report.as_uri())
        page.wait_for_selector("main[aria-busy=false]")
        yield page


def _busy_ms(page: "Page", change: str) -> float:
    """Return how long the page's thread works on a change of the filters, charts included."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _worked_s(session)
    page.evaluate(
        f"""() => {{
            {change};
            document.getElementById("filters").dispatchEvent(new Event("input"));
        }}"""
    )
    page.wait_for_selector("main[aria-busy=false]")
    worked = _worked_s(session) - before
    session.detach()
    return 1_000 * worked


def _worked_s(session: "CDPSession") -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def test_the_page_is_of_bounded_size(report: Path) -> None:
    assert report.stat().st_size < PAGE_BYTES_MAX


def test_only_a_bounded_part_is_in_the_document(page: "Page") -> None:
    assert page.evaluate("document.querySelectorAll('*').length") < ELEMENTS_MAX


def test_it_says_what_is_shown_of_how_many(page: "Page") -> None:
    said = {
        one: page.inner_text(f"#{one} .shown")
        for one in ("findings", "spend", "reservations", "selections", "erasures")
    }

    assert "the latest 1,000 of 12,000" in said["findings"]
    assert "the latest 20,000 of 29,200" in said["spend"]
    assert "the latest 2,000 of 40,000" in said["reservations"]
    assert "the latest 300 of 5,000" in said["selections"]
    assert "the latest 1,000 of 5,000" in said["erasures"]


@pytest.mark.parametrize(
    "change",
    [
        "document.getElementById('f-owner').value = '3'",
        "document.getElementById('f-outcome').value = 'unknown'",
        "document.getElementById('f-text').value = 'a1'",
        "document.getElementById('f-from').value = '2031-12-01'",
        "document.getElementById('f-rows').value = '500'",
        "document.getElementById('filters').reset()",
    ],
)
def test_filters_answer_at_once(page: "Page", change: str) -> None:
    assert 0 < _busy_ms(page, change) < BUSY_MS_MAX


def test_long_times_are_drawn_by_month(page: "Page") -> None:
    assert page.inner_text("#chart-spend figcaption").startswith("Charged per UTC month")


def test_the_last_page_is_one_step_away(page: "Page") -> None:
    page.get_by_role("button", name="Last page of owner days").click()

    assert page.inner_text("#spend .shown").startswith("Rows 19,976 to 20,000 of 20,000")
