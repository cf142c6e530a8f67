"""Two imports at once: each section is added by one of them, and only that one says so."""

from collections.abc import Sequence
from pathlib import Path
from threading import Barrier, Thread

import pytest
from tests.application.house import House, open_house

from remembrancer.application.import_documents import ImportReport
from remembrancer.domain.entry import NewEntry
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

SECTIONS = 40


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    text = "".join(f"# Number {number}\n\ninvoice {number}\n\n" for number in range(SECTIONS))
    (folder / "a.md").write_text(text)
    return folder


def _import(house: House, docs: Path) -> ImportReport:
    return house.memory.import_documents(
        [docs], tenant="acme", owner="ana", scope="docs", sensitivity=Sensitivity.INTERNAL
    )


def test_what_another_import_brought_meanwhile_is_not_told_as_added(
    tmp_path: Path, docs: Path
) -> None:
    """The other comes in after this one has looked what is new, before it writes."""
    with open_house(tmp_path / "memory.db") as house:
        use_case = house.memory._container.import_documents()
        remember, others = use_case._remember_many, list[ImportReport]()

        def after_another(entries: Sequence[NewEntry]) -> Sequence[EntryId]:
            use_case._remember_many = remember
            others.append(_import(house, docs))
            return remember(entries)

        use_case._remember_many = after_another
        mine = _import(house, docs)

    [other] = others
    assert (len(other.added), other.unchanged) == (SECTIONS, 0)
    assert (len(mine.added), mine.unchanged) == (0, SECTIONS)


def test_at_once_they_add_each_section_together_once(tmp_path: Path, docs: Path) -> None:
    reports = list[ImportReport]()
    together = Barrier(2)

    def run(house: House) -> None:
        together.wait()
        reports.append(_import(house, docs))

    with open_house(tmp_path / "memory.db") as house:
        threads = [Thread(target=run, args=(house,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    added = [section.entry_id for report in reports for section in report.added]
    assert len(added) == len(set(added)) == SECTIONS
    assert sum(report.unchanged for report in reports) == SECTIONS
