"""Admission by files in a folder, and by evidence in memory; see also the contract."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from remembrancer.adapters.admission.admission_source import FolderAdmission
from remembrancer.adapters.admission.evidence_folder import (
    DOCUMENT_BYTES_MAX,
    DOCUMENTS_MAX,
    EvidenceFolder,
)
from remembrancer.adapters.memory.admission_source import MemoryAdmission
from remembrancer.contracts.admission_examples import CONFIGURATION, evidence_of
from remembrancer.contracts.admission_source import AdmissionDesk, AdmissionSourceContract
from remembrancer.contracts.clock import NOON, FixedClock
from remembrancer.domain.errors import NotAdmittedError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import Evidence

LAST = Gate.OPERATIONAL_MEASUREMENT


def desk_in(folder: Path) -> AdmissionDesk:
    evidence, clock, current = EvidenceFolder(folder), FixedClock(), [CONFIGURATION]

    def take_away(document: Evidence) -> None:
        for path in folder.glob(f"{document.gate.value}-*.json"):
            path.unlink()

    return AdmissionDesk(
        source=FolderAdmission(folder=evidence, current=lambda: current[0], clock=clock),
        evidence=evidence,
        add=evidence.write,
        take_away=take_away,
        configure=lambda configuration: current.__setitem__(0, configuration),
        clock=clock,
    )


class TestFolderAdmission(AdmissionSourceContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "evidence"

    @override
    def desk(self) -> AdmissionDesk:
        return desk_in(self.folder)


class TestMemoryAdmission(AdmissionSourceContract):
    @override
    def desk(self) -> AdmissionDesk:
        clock = FixedClock()
        source = MemoryAdmission(configuration=CONFIGURATION, clock=clock)
        return AdmissionDesk(
            source=source,
            evidence=source,
            add=source.add,
            take_away=source.take_away,
            configure=source.configure,
            clock=clock,
        )


@pytest.fixture
def desk(tmp_path: Path) -> AdmissionDesk:
    """Return a folder that holds good evidence for eleven gates."""
    desk = desk_in(tmp_path)
    desk.add_all(gate for gate in Gate if gate is not LAST)
    return desk


def problem_with(folder: Path, name: str, desk: AdmissionDesk) -> str:
    """Return what is said of a file that is no evidence; it opens nothing."""
    with pytest.raises(NotAdmittedError) as refusal:
        desk.source.admitted()
    assert refusal.value.missing_gates == (LAST.value,)
    [unreadable] = desk.evidence.found().unreadable
    assert unreadable.name == name
    assert (folder / name).is_symlink() or (folder / name).exists()
    return unreadable.problem


def good(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = evidence_of(LAST).model_dump(mode="json")
    return plain | changes


def test_a_document_by_hand_admits(desk: AdmissionDesk, tmp_path: Path) -> None:
    (tmp_path / "by-hand.json").write_text(json.dumps(good(at="2030-01-01T11:00:00+01:00")))

    assert desk.source.admitted().configuration == CONFIGURATION


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps(good(extra=1)),
        json.dumps(good(at="2030-01-01T11:00:00")),
        json.dumps(good(at="yesterday")),
        json.dumps(good(figures={"hours": True})),
        json.dumps(good(figures={"hours": "24"})),
        json.dumps(good(figures={"hours": 24.0})),
        json.dumps(good(figures={"hours": float("nan")})),
        json.dumps(good(artefact_digests={})),
        json.dumps(good(gate="all_of_them")),
        json.dumps(good())[:-1] + ', "by": "somebody"}',
        "\ufeff" + json.dumps(good()),
    ],
)
def test_what_is_no_document_is_named_and_opens_nothing(
    text: str, desk: AdmissionDesk, tmp_path: Path
) -> None:
    (tmp_path / "odd.json").write_text(text)

    assert problem_with(tmp_path, "odd.json", desk)


def test_bytes_that_are_no_text_are_named(desk: AdmissionDesk, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_bytes(b"\xff\xfe\x00")

    assert problem_with(tmp_path, "odd.json", desk) == "evidence: isn't JSON in UTF-8"


def test_a_huge_file_is_not_read_whole(desk: AdmissionDesk, tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(50 * DOCUMENT_BYTES_MAX)

    assert problem_with(tmp_path, "huge.json", desk) == "evidence: is larger than 1 MiB"


def test_a_loop_of_links_is_named(desk: AdmissionDesk, tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")

    assert problem_with(tmp_path, "loop.json", desk) == "OSError"


def test_a_folder_and_a_pipe_are_no_documents(desk: AdmissionDesk, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()
    assert [one.name for one in desk.evidence.found().unreadable] == ["folder.json", "pipe.json"]


def test_a_link_to_a_document_counts_until_it_leads_elsewhere(
    desk: AdmissionDesk, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "kept"
    document = EvidenceFolder(elsewhere).write(evidence_of(LAST))
    link = tmp_path / "link.json"
    link.symlink_to(document)
    assert desk.source.admitted()

    document.unlink()

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()


def test_a_half_written_document_is_not_looked_at(desk: AdmissionDesk, tmp_path: Path) -> None:
    (tmp_path / "half.part").write_text('{"gate":')

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()
    assert desk.evidence.found().unreadable == ()


def test_an_unreadable_file_beside_good_ones_changes_nothing(
    desk: AdmissionDesk, tmp_path: Path
) -> None:
    desk.add(evidence_of(LAST))

    (tmp_path / "notes.json").write_text("not evidence")

    assert desk.source.admitted().configuration == CONFIGURATION


def test_too_many_files_admit_nothing(desk: AdmissionDesk, tmp_path: Path) -> None:
    """Cut off at some number, the newest run might be the one that isn't read."""
    desk.add(evidence_of(LAST))
    for number in range(DOCUMENTS_MAX):
        (tmp_path / f"a{number}.json").touch()

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()
    [unreadable] = desk.evidence.found().unreadable
    assert unreadable.name == str(tmp_path)


def test_a_document_rewritten_in_place_is_read_again(desk: AdmissionDesk, tmp_path: Path) -> None:
    path = EvidenceFolder(tmp_path).write(evidence_of(LAST))
    assert desk.source.admitted()

    path.write_text(json.dumps(good(figures={})))

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()


def test_artefacts_are_kept_where_documents_are_not_looked_for(
    desk: AdmissionDesk, tmp_path: Path
) -> None:
    EvidenceFolder(tmp_path).write_artefact("raw.json", b"{}")

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()
    assert desk.evidence.found().unreadable == ()


def test_a_folder_that_is_not_there_admits_nothing(tmp_path: Path) -> None:
    desk = desk_in(tmp_path / "none")

    with pytest.raises(NotAdmittedError):
        desk.source.admitted()


@pytest.mark.parametrize("failure", [OSError(), KeyError("x"), ValueError("x")])
def test_settings_that_cannot_be_read_admit_nothing(tmp_path: Path, failure: Exception) -> None:
    def current() -> Any:
        raise failure

    desk_in(tmp_path).add_all()
    source = FolderAdmission(
        folder=EvidenceFolder(tmp_path), current=current, clock=FixedClock(NOON)
    )

    with pytest.raises(NotAdmittedError) as refusal:
        source.admitted()
    assert len(refusal.value.missing_gates) == len(Gate)


def test_withdrawn_by_the_host_it_stays_withdrawn(tmp_path: Path) -> None:
    evidence = EvidenceFolder(tmp_path)
    source = FolderAdmission(folder=evidence, current=lambda: CONFIGURATION, clock=FixedClock())
    for gate in Gate:
        evidence.write(evidence_of(gate, at=NOON - timedelta(days=1)))
    source.admitted()

    source.withdraw()

    with pytest.raises(NotAdmittedError):
        source.admitted()
