"""The page of a real memory: everything that happened is in it, and no text of it."""

from pathlib import Path

import pytest
from tests.composition.shell import Shell

QUESTION = "whitherthecanary"
TEXT = "the invoice service of the canarybird"


@pytest.fixture
def page(shell: Shell, tmp_path: Path) -> str:
    shell.json("remember", TEXT)
    gone = shell.json("remember", f"{TEXT}, again")
    shell.json("pack", "s-1", "plan", QUESTION, "--budget", "400")
    shell.json("erase", gone["entry_id"], "--reason", "outdated")

    done = shell("audit", "--html", "report.html")

    assert done.status == 0, done
    return (tmp_path / "report.html").read_text()


def test_no_text_and_no_question_is_in_the_page(page: str) -> None:
    assert "canary" not in page


def test_what_happened_is_in_the_page(page: str) -> None:
    assert "every rule holds" in page
    for part in ('"session":"s-1"', '"reason":"outdated"', '"number":1', '"mode":"'):
        assert part in page, part


def test_an_earlier_page_is_replaced_only_with_force(shell: Shell, page: str) -> None:
    refused = shell("audit", "--html", "report.html")
    replaced = shell("audit", "--html", "report.html", "--force")

    assert (refused.status, replaced.status) == (2, 0)
    assert "--force" in refused.err
    assert page


def test_a_store_that_cannot_be_opened_has_its_page_as_well(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all")

    done = shell("audit", "--db", "broken.db", "--html", "report.html")

    assert done.status == 1
    page = (tmp_path / "report.html").read_text()
    assert "store-is-whole" in page
    assert "1 finding:" in page
