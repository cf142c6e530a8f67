"""Decision records: what was decided, what else there was, and what would notice a breach."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "adr").glob("[0-9]*.md"))
HEADINGS = ["Context", "Options", "Outcome", "Consequences", "Confirmation"]
VERB_PHRASE = re.compile(r"\d{4}-[a-z0-9]+(-[a-z0-9]+)+\.md")


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_record_has_its_parts_in_order(record: Path) -> None:
    text = record.read_text()

    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert [one for one in headings if one in HEADINGS] == HEADINGS
    assert set(headings) - set(HEADINGS) <= {"Measured"}
    assert re.match(rf"# {record.stem[:4]} \S", text)
    assert re.search(r"^Status: \w+", text, flags=re.MULTILINE)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_record_is_named_for_its_decision(record: Path) -> None:
    assert VERB_PHRASE.fullmatch(record.name)


def test_numbers_are_given_once() -> None:
    numbers = [record.name[:4] for record in RECORDS]

    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_record_is_found_from_an_index(record: Path) -> None:
    indexes = [ROOT / "README.md", ROOT / "adr" / "README.md"]

    assert any(record.name in index.read_text() for index in indexes if index.exists())


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_what_confirms_a_decision_is_there(record: Path) -> None:
    """A path of a test that a record names must exist."""
    named = re.findall(r"`((?:tests|domain|adapters|application|composition)/[\w./-]+\.\w+)`",
                       record.read_text())  # fmt: skip

    assert [path for path in named if not (ROOT / path).exists()] == []


def test_records_that_the_code_cites_are_there() -> None:
    there = {record.name[:4] for record in RECORDS}
    cited = {
        number
        for source_root in ["domain", "application", "adapters", "composition", "tests"]
        for path in (ROOT / source_root).rglob("*")
        if path.suffix in {".py", ".sql"}
        for number in re.findall(r"adr/(\d{4})\b", path.read_text())
    }

    assert cited <= there
