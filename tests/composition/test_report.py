"""The page as a file: what may be in it, and how it gets to its place."""

import base64
import hashlib
import html
import json
import os
import re
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.composition.report_world import HOSTILE, report_of, small_log

from remembrancer.application.audit.finding import AuditScope
from remembrancer.application.audit.reading import StateReader
from remembrancer.composition.report.charts import ChartLibrary, alone, chart_library
from remembrancer.composition.report.collecting import collect
from remembrancer.composition.report.html_report import HtmlReport, in_words
from remembrancer.composition.report.page import FINDINGS_MAX, Cover, page_of
from remembrancer.composition.report.writing import MARK, write_page
from remembrancer.domain.errors import InvalidInputError, SettingsError

AT = datetime(2032, 1, 1, tzinfo=UTC)
NO_CHARTS = ChartLibrary(script=alone("window.vegaEmbed = null;"), versions="0")
CSS = Path(__file__).parents[2] / "composition/remembrancer/composition/report/page.css"


def _page(findings: int = 3, *, names: tuple[str, ...] = ("acme", *HOSTILE)) -> str:
    return page_of(
        collect(small_log(), reader=StateReader()),
        report_of(findings, names=names),
        cover=Cover(made_at=AT, version="0.1.0", scope=""),
        library=NO_CHARTS,
        sentences={"within-ceilings": "Money stays within."},
    )


def test_every_script_and_style_of_the_page_is_named_by_its_hash_in_the_policy() -> None:
    page = _page()

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for content in [*re.findall(r"<script>(.*?)</script>", page, re.DOTALL),
                    *re.findall(r"<style>(.*?)</style>", page, re.DOTALL)]:  # fmt: skip
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe-eval" not in policy[1]


def test_nothing_in_the_page_names_another_place() -> None:
    page = _page(names=("acme",))

    assert not re.findall(r"(?:src|href)=[\"'](?!#)[^\"']*", page.partition("<script")[0])
    assert "@import" not in page
    assert "url(" not in page


def test_hostile_names_are_text_wherever_they_stand() -> None:
    page = _page(findings=len(HOSTILE))

    before, _, rest = page.partition('<script type="application/json" id="data">')
    data, _, _ = rest.partition("</script>")
    for name in HOSTILE[:5]:
        assert name not in before
        assert html.escape(name) in before
    assert not set("<>&\u2028\u2029") & set(data)
    assert {tenant for tenant, _ in json.loads(data)["owners"]} >= set(HOSTILE[:5])


def test_a_name_that_looks_like_a_hole_of_the_template_stays_a_name() -> None:
    page = _page(findings=len(HOSTILE) + 1)

    static = page.partition('id="data"')[0]
    assert "<td>{{data}}: 100001 quanta</td>" in static


def test_findings_come_before_everything_else() -> None:
    page = _page()

    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["findings", "spend", "reservations", "selections", "erasures"]
    assert page.index("3 findings") < page.index("<main>")


def test_more_findings_than_the_page_holds_are_counted() -> None:
    page = _page(findings=FINDINGS_MAX + 500)

    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert (data["findings"]["count"], len(data["findings"]["rows"])) == (1_500, FINDINGS_MAX)
    assert "1,500 findings" in page


def test_a_green_audit_says_so() -> None:
    assert "every rule holds" in _page(findings=0)


def test_a_script_cannot_end_its_own_element() -> None:
    closed = alone("a = '</script><!--';")

    assert "</script" not in closed
    assert "<!--" not in closed


def test_the_charts_library_comes_whole_out_of_its_package() -> None:
    library = chart_library()

    assert "vegaEmbed" in library.script
    assert 500_000 < len(library.script) < 1_500_000


def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    with pytest.raises(SettingsError, match=r"pip install 'remembrancer\[report\]'"):
        chart_library()


# -- Its file --------------------------------------------------------------


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"

    write_page(path, _page(), replace=False)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith(MARK)
    assert _names(tmp_path) == ["report.html"]


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(f"{MARK}an earlier one")

    with pytest.raises(InvalidInputError, match="--force"):
        write_page(path, _page(), replace=False)

    assert path.read_text() == f"{MARK}an earlier one"


def test_an_earlier_report_is_replaced_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(f"{MARK}an earlier one")

    write_page(path, _page(), replace=True)

    assert "an earlier one" not in path.read_text()


@pytest.mark.parametrize("place", ["other.html", "link.html", "folder.html"])
def test_nothing_but_an_earlier_report_is_ever_replaced(tmp_path: Path, place: str) -> None:
    (tmp_path / "other.html").write_text("<!doctype html>")
    (tmp_path / "page.html").write_text(MARK)
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    (tmp_path / "folder.html").mkdir()

    with pytest.raises(InvalidInputError, match="isn't an earlier report"):
        write_page(tmp_path / place, _page(), replace=True)

    assert (tmp_path / "other.html").read_text() == "<!doctype html>"
    assert len(_names(tmp_path)) == 4


@pytest.mark.parametrize("name", ["memory.db", "memory.db-wal", "report"])
def test_no_file_of_a_store_is_made_or_replaced(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"must end in \.html"):
        write_page(tmp_path / name, _page(), replace=True)

    assert not _names(tmp_path)


def test_a_file_that_appears_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    fsync = os.fsync

    def slow(handle: int) -> None:
        fsync(handle)
        path.write_text("somebody else's")

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(InvalidInputError, match="already"):
        write_page(path, _page(), replace=False)

    assert path.read_text() == "somebody else's"
    assert _names(tmp_path) == ["report.html"]


def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_page(tmp_path / "report.html", _page(), replace=False)

    assert not _names(tmp_path)


def test_what_cannot_be_written_is_refused_before_the_audit(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="isn't a folder"):
        HtmlReport.prepare(tmp_path / "nowhere" / "report.html", replace=False)


def test_the_page_says_what_was_asked_for() -> None:
    scope = AuditScope(tenant="acme", owner="ana", since=AT)

    assert in_words(scope) == "tenant acme, owner ana, since 2032-01-01 00:00:00 UTC"
    assert not in_words(AuditScope())


# -- Its colours -----------------------------------------------------------


def _colours() -> dict[str, dict[str, str]]:
    """Return the variables of light, dark and print."""
    light, dark, paper = re.findall(r":root \{(.*?)\}", CSS.read_text(), re.DOTALL)
    return {
        name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for name, block in (("light", light), ("dark", dark), ("print", paper))
    }


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("view", ["light", "dark", "print"])
def test_text_can_be_read_on_page_and_panel(view: str) -> None:
    """At least 4.5 to 1, WCAG 2.2, 1.4.3."""
    colours = _colours()[view]

    for name in ("text", "muted", "link", "good", "bad"):
        for ground in ("page", "panel"):
            assert _contrast(colours[name], colours[ground]) >= 4.5, name


@pytest.mark.parametrize("view", ["light", "dark", "print"])
def test_marks_and_outlines_can_be_seen(view: str) -> None:
    """At least 3 to 1, WCAG 2.2, 1.4.11."""
    colours = _colours()[view] | {"focus": _colours()[view].get("focus", "#000000")}

    for name in ("settled", "unknown", "reconciled", "pending", "focus"):
        assert _contrast(colours[name], colours["page"]) >= 3, name


def test_a_folder_that_may_not_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)

    with pytest.raises(InvalidInputError, match=r"report\.html can't be made: its folder"):
        HtmlReport.prepare(tmp_path / "report.html", replace=False)


def test_the_system_says_no_to_the_page_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied", ".report.html.part")

    monkeypatch.setattr(os, "open", refused)

    with pytest.raises(PermissionError) as raised:
        write_page(tmp_path / "report.html", _page(), replace=False)

    assert raised.value.filename == str(tmp_path / "report.html")
