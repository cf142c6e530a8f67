"""The page in a real browser: drawn, filtered by keyboard, read by machines, printed.

A browser that isn't there fails these tests and says what to do; they are never skipped.
"""

from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.composition.report_browser import browser
from tests.composition.report_world import HOSTILE, report_of, small_log

from remembrancer.application.audit.reading import StateReader
from remembrancer.composition.report.charts import chart_library
from remembrancer.composition.report.collecting import collect
from remembrancer.composition.report.page import Cover, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

IDLE = "main[aria-busy=false]"


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    page = page_of(
        collect(small_log(), reader=StateReader()),
        report_of(len(HOSTILE) + 1, names=("acme", *HOSTILE)),
        cover=Cover(made_at=datetime(2032, 1, 1, tzinfo=UTC), version="0.1.0", scope=""),
        library=chart_library(),
        sentences={"within-ceilings": "Money stays within."},
    )
    path.write_text(page)
    return path


@contextmanager
def shown(chromium: "Browser", report: Path, **options: Any) -> "Iterator[Page]":
    """Open the page; whatever it complains of, or asks the network for, fails the test."""
    said: list[str] = []
    asked: list[str] = []
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
    context.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(report.as_uri())
    if options.get("java_script_enabled", True):
        page.wait_for_selector(IDLE)
    yield page
    context.close()
    assert said == []
    assert asked == [report.as_uri()]


def _redrawn(page: "Page") -> None:
    """Wait until the filters' latest change is drawn."""
    page.wait_for_selector(IDLE)


def _rows(page: "Page", section: str) -> list[str]:
    return page.locator(f"#{section} .rows tbody tr").all_inner_texts()


def _focused(page: "Page") -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.innerText"))


def test_it_is_drawn_without_a_complaint_and_without_the_network(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report, offline=True) as page:
        bars = page.locator("#chart-spend svg .mark-rect.role-mark path").count()
        shares = page.locator("#chart-share svg .mark-rect.role-mark path").count()
        points = page.locator("#chart-reservations svg .mark-symbol.role-mark path").count()

    assert (bars, shares, points) == (16, 17, 29)


def test_hostile_names_do_nothing_but_stand_there(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        for mark in page.locator("#chart-share .mark-rect.role-mark path").all()[:14]:
            mark.dispatch_event("mousemove")
        page.fill("#f-text", HOSTILE[0])
        _redrawn(page)
        owners = page.locator("#f-owner option").all_inner_texts()
        strangers = page.locator("main :is(b, img, script, iframe)").count()
        pwned = page.evaluate("globalThis.pwned ?? Object.prototype.pwned ?? null")

    assert f"{HOSTILE[0]} / {HOSTILE[0]}" in owners
    assert (strangers, pwned) == (0, None)


def test_the_policy_lets_no_other_script_run(chromium: "Browser", report: Path) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "globalThis.ran = 1";
            document.body.append(script);
            const image = "<img src=x onerror='globalThis.ran = 1'>";
            document.body.insertAdjacentHTML("beforeend", image);
        }"""
    )
    page.wait_for_timeout(100)
    ran = page.evaluate("globalThis.ran ?? null")
    context.close()

    assert ran is None


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report) as page:
        met = list[str]()
        for _ in range(20):
            page.keyboard.press("Tab")
            met.append(_focused(page))

    assert met[:6] == ["Skip to the findings", "Findings", "Spend", "Reservations",
                       "Selections and packs", "Erasures"]  # fmt: skip
    filters = list(dict.fromkeys(one for one in met[6:] if one.startswith("f-")))
    assert filters == ["f-owner", "f-from", "f-to", "f-kind", "f-outcome", "f-text",
                       "f-rows"]  # fmt: skip


def test_the_skip_link_leads_to_the_findings(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#findings:focus")


def test_an_owner_is_chosen_by_keyboard(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        page.focus("#f-owner")
        page.keyboard.type("acme / b")
        _redrawn(page)
        told = page.inner_text("#told")
        spend, reservations = _rows(page, "spend"), _rows(page, "reservations")
        caption = page.inner_text("#chart-reservations figcaption")

    assert "1 owner days, 1 reservations, 0 selections, 3 erasures" in told
    assert len(spend) == len(reservations) == 1
    assert "80.0 %" in spend[0]
    assert "1 reservations" in caption


def test_an_id_is_searched_by_keyboard_and_forgotten_again(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report) as page:
        page.focus("#f-text")
        page.keyboard.type("SESSION-07")
        _redrawn(page)
        found = page.locator("#selections summary").all_inner_texts()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        _redrawn(page)
        everything = page.inner_text("#selections .shown")
        text = page.input_value("#f-text")

    assert len(found) == 1
    assert found[0].startswith("session-07 / plan")
    assert everything.startswith("Rows 1 to 24 of 24 selections")
    assert text == ""


def test_days_kind_and_outcome_narrow_together(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        page.fill("#f-from", "2030-02-01")
        page.fill("#f-to", "2030-02-02")
        page.select_option("#f-kind", "reservation:query")
        page.select_option("#f-outcome", "unknown")
        _redrawn(page)
        reservations = _rows(page, "reservations")
        spend = _rows(page, "spend")
        said = page.inner_text("#erasures .shown")

    assert len(reservations) == 2
    assert all("unknown" in row and "timeout" in row for row in reservations)
    assert ["0.000900" in row for row in spend] == [True, True]
    assert "Not touched by kind, outcome." in said


def test_pages_are_turned_by_keyboard_and_the_focus_stays(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report) as page:
        following = page.get_by_role("button", name="Next page of reservations")
        following.focus()
        page.keyboard.press("Enter")
        shown_now = page.inner_text("#reservations .shown")
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        is_off = following.get_attribute("aria-disabled")

    assert shown_now.startswith("Rows 26 to 29 of 29 reservations")
    assert (focused, is_off) == ("Next page of reservations", "true")


def test_a_page_can_be_made_long_to_print_or_search_it(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        page.select_option("#f-rows", "100")
        _redrawn(page)
        rows = len(_rows(page, "reservations"))
        pages = page.locator(".pages").count()

    assert (rows, pages) == (29, 0)


def test_a_selection_opens_by_keyboard_and_tells_all_about_it(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report) as page:
        page.fill("#f-text", "session-03")
        _redrawn(page)
        page.focus("#selections summary")
        page.keyboard.press("Enter")
        page.wait_for_selector("#selections details[open] table")
        told = page.inner_text("#selections details")

    for part in ("Left out: 4", "because of rank", "Pack 1", "640 of 800 tokens", "rules",
                 "not in it, because of budget", "deliberate", "dense (no_words)"):  # fmt: skip
        assert part in told, part


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_no_rule_of_accessibility_is_broken(
    chromium: "Browser", report: Path, scheme: str, width: int
) -> None:
    view = {"width": width, "height": 900}
    with shown(chromium, report, color_scheme=scheme, viewport=view) as page:
        page.evaluate("document.querySelector('#selections details').open = true")
        page.wait_for_selector("#selections details[open] table")
        broken = [
            (one["id"], [node["html"] for node in one["nodes"]])
            for one in Axe().run(page).response["violations"]
        ]

    assert broken == []


def test_every_chart_says_what_it_shows_and_has_a_table_beside_it(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report) as page:
        charts = page.get_by_role("img").all()
        told = [str(chart.get_attribute("aria-label")) for chart in charts]
        beside = [
            chart.locator("xpath=ancestor::section//table/caption").count() for chart in charts
        ]
        hidden = page.locator("figure [aria-hidden=true] svg").count()

    assert ["2030-01-31 to 2030-02-03" in one for one in told] == [True, True, False]
    assert "29 reservations" in told[2]
    assert all(one.endswith("The table below has the numbers.") for one in told)
    assert (beside, hidden) == ([1, 1, 1], 3)


def test_landmarks_headings_and_captions_are_there(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        landmarks = {
            role: page.get_by_role(role).count()
            for role in ("banner", "navigation", "search", "main", "contentinfo")
        }
        headings = page.locator("h1, h2").all_inner_texts()
        tables, captions = page.locator("table").count(), page.locator("table > caption").count()
        language = page.get_attribute("html", "lang")

    assert set(landmarks.values()) == {1}
    assert headings == ["Audit of memory.db", "Findings", "Spend per owner and day",
                        "Reservations on a time line", "Selections and packs",
                        "Erasures"]  # fmt: skip
    assert tables == captions == 4
    assert language == "en"


def test_dark_and_light_follow_the_reader_and_colour_the_charts(
    chromium: "Browser", report: Path
) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        with shown(chromium, report, color_scheme=scheme) as page:
            seen[scheme] = page.evaluate(
                """() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(
                    document.querySelector("#chart-spend .mark-rect.role-mark path")).fill]"""
            )

    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert seen["dark"][0] == "rgb(20, 23, 27)"
    assert seen["light"][1] != seen["dark"][1]


def test_paper_is_white_and_shows_what_could_be_opened(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report, color_scheme="dark") as page:
        page.emulate_media(media="print")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        controls = [page.is_visible(one) for one in ("nav", "#filters", ".pages")]
        printed = page.pdf()
        opened = page.locator("#selections details[open] table").count()

    assert ground == "rgb(255, 255, 255)"
    assert controls == [False, False, False]
    assert printed.startswith(b"%PDF")
    assert opened == 24


def test_nothing_moves_for_who_wants_no_motion(chromium: "Browser", report: Path) -> None:
    behaviour = {}
    for motion in ("no-preference", "reduce"):
        with shown(chromium, report, reduced_motion=motion) as page:
            behaviour[motion] = page.evaluate(
                "getComputedStyle(document.documentElement).scrollBehavior"
            )

    assert behaviour == {"no-preference": "smooth", "reduce": "auto"}


def test_it_fits_a_narrow_screen(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report, viewport={"width": 360, "height": 740}) as page:
        widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")

    assert widths[0] <= widths[1]


def test_without_scripts_the_verdict_and_the_findings_are_there(
    chromium: "Browser", report: Path
) -> None:
    with shown(chromium, report, java_script_enabled=False) as page:
        text = page.inner_text("body")
        rows = len(_rows(page, "findings"))

    assert "13 findings: something isn't as the rules say." in text
    assert "Without scripts" in text
    assert rows == 13


def test_a_window_of_another_width_keeps_what_was_asked(chromium: "Browser", report: Path) -> None:
    with shown(chromium, report) as page:
        page.fill("#f-text", "session-03")
        page.set_viewport_size({"width": 700, "height": 900})
        _redrawn(page)
        found = page.locator("#selections summary").count()
        width = page.locator("#chart-spend svg").bounding_box()

    assert found == 1
    assert width is not None
    assert width["width"] < 700
