"""Decision records: what was decided, what else there was, and what would notice a breach."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "adr").glob("[0-9]*.md"))
HEADINGS = ["Context", "Options", "Outcome", "Consequences", "Confirmation"]
RINGS = ["domain", "application", "adapters", "composition", "tests"]
CODE = re.compile(r"`([^`\n]+)`")
VERB_PHRASE = re.compile(r"\d{4}-[a-z0-9]+(-[a-z0-9]+)+\.md")


def _sources() -> list[Path]:
    return [
        path
        for ring in RINGS
        for path in (ROOT / ring).rglob("*")
        if path.suffix in {".py", ".sql"}
    ]


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_record_has_its_parts_in_order(record: Path) -> None:
    text = record.read_text()

    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert [one for one in headings if one in HEADINGS] == HEADINGS
    assert set(headings) - set(HEADINGS) <= {"Measured"}
    assert re.match(rf"# {record.stem[:4]} \S", text)
    assert re.search(r"^Status: [a-z][\w ]*, \d{4}-\d{2}-\d{2}$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_record_is_named_for_its_decision(record: Path) -> None:
    assert VERB_PHRASE.fullmatch(record.name)


def test_numbers_are_given_once() -> None:
    numbers = [record.name[:4] for record in RECORDS]

    assert len(numbers) == len(set(numbers))


def test_index_lists_every_record_in_order_by_its_title() -> None:
    listed = re.findall(
        r"^- \[(.+)\]\((.+)\)$", (ROOT / "adr/README.md").read_text(), re.MULTILINE
    )

    titles = [record.read_text().partition("\n")[0].removeprefix("# ") for record in RECORDS]
    assert listed == list(zip(titles, [record.name for record in RECORDS], strict=True))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_files_that_a_record_names_are_there(record: Path) -> None:
    """By their path, or by their name alone beside another's path."""
    named = set(CODE.findall(record.read_text()))

    paths = {name for name in named if re.fullmatch(rf"({'|'.join(RINGS)})/[\w./-]+\.\w+", name)}
    names = {name for name in named if re.fullmatch(r"[a-z]\w+\.(py|sql)", name)}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    assert sorted(names - {path.name for path in _sources()}) == []


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_tests_that_a_record_names_are_there(record: Path) -> None:
    named = {
        name.rpartition(".")[2]
        for name in CODE.findall(record.read_text())
        if re.fullmatch(r"(\w+\.)?test_\w+", name)
    }

    tests = {
        name
        for path in _sources()
        if "tests" in path.parts
        for name in re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert sorted(named - tests) == []


def test_records_that_the_code_cites_are_there() -> None:
    there = {record.name[:4] for record in RECORDS}
    cited = {
        number for path in _sources() for number in re.findall(r"adr/(\d{4})\b", path.read_text())
    }

    assert cited <= there
