"""Importing again changes only what was edited."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from remembrancer.adapters.markdown.document_reader import FileDocumentReader
from remembrancer.adapters.memory.entry_vault import MemoryEntryVault
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.import_documents import (
    ImportDocuments,
    ImportReport,
    ImportRequest,
)
from remembrancer.application.ports import DocumentFault, Original
from remembrancer.domain.entry import NewEntry
from remembrancer.domain.errors import InvalidInputError, UnreadableDocumentError
from remembrancer.domain.identity import EntryId, entry_id_for_key
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.sensitivity import Sensitivity

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SALT = bytes(32)


class Memory:
    """The vault with the two writing use cases in their shortest form: no log, no indexes."""

    def __init__(self) -> None:
        self.transactions = MemoryTransactions()
        self.vault = MemoryEntryVault(transactions=self.transactions)
        self.batches: list[int] = []

    def remember_many(self, entries: Sequence[NewEntry]) -> list[EntryId]:
        self.batches.append(len(entries))
        originals = [self._original(entry) for entry in entries]
        self.vault.keep(originals)
        return [original.entry_id for original in originals]

    def correct(
        self,
        entry_id: EntryId,
        *,
        reason: str,
        text: str | None = None,
        sensitivity: Sensitivity | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        old = self.vault.current([entry_id])[entry_id]
        new = old._replace(
            version=old.version + 1,
            text=text or old.text,
            sensitivity=sensitivity or old.sensitivity,
            metadata=old.metadata if metadata is None else dict(metadata),
            reason=reason,
        )
        self.vault.keep([new])

    def texts(self) -> dict[tuple[str, str], str]:
        ids = self.vault.entries_of(tenant="acme", owner="ana")
        return {
            (original.metadata["path"], original.metadata["heading"]): original.text
            for original in self.vault.current(ids).values()
        }

    def _original(self, entry: NewEntry) -> Original:
        assert entry.idempotency_key is not None
        return Original(
            tenant=entry.tenant,
            owner=entry.owner,
            entry_id=entry_id_for_key(entry.tenant, entry.owner, entry.idempotency_key),
            version=1,
            scope=entry.scope,
            kind=entry.kind,
            sensitivity=entry.sensitivity,
            text=entry.text,
            salt=SALT,
            digest=original_digest(SALT, entry.text),
            tokens=1,
            token_counter="words@1",  # noqa: S106 -- counts, opens nothing
            subjects=entry.subjects,
            metadata=entry.metadata,
            recorded_at=NOW,
        )


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# One\n\nfirst\n\n## Two\n\nsecond\n")
    (folder / "sub" / "b.txt").write_text("plain\n")
    return folder


def imported(
    memory: Memory,
    *roots: Path,
    scope: str = "docs",
    sensitivity: Sensitivity = Sensitivity.INTERNAL,
) -> ImportReport:
    import_documents = ImportDocuments(
        reader=FileDocumentReader(),
        vault=memory.vault,
        remember_many=memory.remember_many,
        correct=memory.correct,
        transactions=memory.transactions,
    )
    return import_documents(
        ImportRequest(
            roots=roots, tenant="acme", owner="ana", scope=scope, sensitivity=sensitivity
        )
    )


def test_each_section_becomes_an_entry_with_path_and_heading(memory: Memory, docs: Path) -> None:
    report = imported(memory, docs)

    assert [(section.path, section.heading) for section in report.added] == [
        ("a.md", "One"),
        ("a.md", "One > Two"),
        ("sub/b.txt", ""),
    ]
    assert memory.texts() == {
        ("a.md", "One"): "# One\n\nfirst",
        ("a.md", "One > Two"): "## Two\n\nsecond",
        ("sub/b.txt", ""): "plain",
    }


def test_importing_again_changes_nothing(memory: Memory, docs: Path) -> None:
    imported(memory, docs)

    report = imported(memory, docs)

    assert (report.added, report.corrected, report.vanished, report.problems) == ((), (), (), ())
    assert report.unchanged == 3


def test_an_edited_section_becomes_a_correction_of_its_entry(memory: Memory, docs: Path) -> None:
    before = imported(memory, docs)
    (docs / "a.md").write_text("intro\n\n# One\n\nfirst\n\n## Two\n\nedited\n")

    report = imported(memory, docs)

    assert [section.entry_id for section in report.corrected] == [before.added[1].entry_id]
    assert [section.heading for section in report.added] == [""]
    assert memory.texts()["a.md", "One > Two"] == "## Two\n\nedited"


@pytest.mark.parametrize("metadata", [None, {"checked": "yes"}], ids=["kept", "replaced"])
def test_a_correction_by_hand_stays_while_the_file_is_as_it_was(
    memory: Memory, docs: Path, metadata: dict[str, str] | None
) -> None:
    before = imported(memory, docs)
    entry_id = before.added[1].entry_id
    memory.correct(entry_id, reason="wrong", text="better", metadata=metadata)

    report = imported(memory, docs)

    assert (report.corrected, report.unchanged) == ((), 3)
    assert memory.vault.current([entry_id])[entry_id].text == "better"


def test_an_edited_file_replaces_a_correction_by_hand_and_says_so(
    memory: Memory, docs: Path
) -> None:
    before = imported(memory, docs)
    memory.correct(before.added[1].entry_id, reason="wrong", text="better")
    (docs / "a.md").write_text("# One\n\nfirst, edited\n\n## Two\n\nedited\n")

    report = imported(memory, docs)

    assert report.corrected == before.added[:2]
    assert report.replaced_by_hand == before.added[1:2]
    assert memory.texts()["a.md", "One > Two"] == "## Two\n\nedited"
    assert imported(memory, docs).unchanged == 3


def test_a_raised_sensitivity_leaves_a_correction_by_hand(memory: Memory, docs: Path) -> None:
    before = imported(memory, docs)
    memory.correct(before.added[1].entry_id, reason="wrong", text="better")

    report = imported(memory, docs, sensitivity=Sensitivity.CONFIDENTIAL)

    assert len(report.corrected) == 3
    assert memory.texts()["a.md", "One > Two"] == "better"


def test_a_vanished_section_is_reported_and_stays(memory: Memory, docs: Path) -> None:
    before = imported(memory, docs)
    (docs / "a.md").write_text("# One\n\nfirst\n")
    (docs / "sub" / "b.txt").unlink()

    report = imported(memory, docs)

    assert report.vanished == before.added[1:]
    assert len(memory.texts()) == 3


def test_what_was_not_asked_for_has_not_vanished(memory: Memory, docs: Path) -> None:
    imported(memory, docs)
    (docs / "a.md").write_text("# One\n\nfirst\n")

    assert imported(memory, docs / "sub").vanished == ()
    assert len(imported(memory, docs / "a.md").vanished) == 1
    assert imported(memory, docs, scope="elsewhere").vanished == ()


def test_a_file_that_cannot_be_read_now_has_not_vanished(memory: Memory, docs: Path) -> None:
    imported(memory, docs)
    (docs / "a.md").write_bytes(b"\x00")

    report = imported(memory, docs)

    assert report.vanished == ()
    assert [problem.fault for problem in report.problems] == [DocumentFault.BINARY]


def test_an_emptied_file_has_lost_its_sections(memory: Memory, docs: Path) -> None:
    imported(memory, docs)
    (docs / "a.md").write_text("")

    report = imported(memory, docs)

    assert [section.path for section in report.vanished] == ["a.md", "a.md"]


def test_a_file_is_the_same_however_it_is_named(
    memory: Memory, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(memory, docs)
    monkeypatch.chdir(docs)

    assert imported(memory, Path()).unchanged == 3
    assert imported(memory, docs / "sub").unchanged == 1
    assert imported(memory, Path("a.md")).unchanged == 2
    assert imported(memory, docs, docs / "sub", Path("a.md")).unchanged == 3


def test_two_scopes_have_entries_of_their_own(memory: Memory, docs: Path) -> None:
    imported(memory, docs)

    assert len(imported(memory, docs, scope="other").added) == 3


def test_an_erased_section_is_not_remembered_again(memory: Memory, docs: Path) -> None:
    before = imported(memory, docs)
    memory.vault.erase(before.added[0].entry_id)

    report = imported(memory, docs)

    assert report.erased == before.added[:1]
    assert (report.added, report.unchanged) == ((), 2)


def test_sensitivity_is_raised_and_never_lowered(memory: Memory, docs: Path) -> None:
    imported(memory, docs)

    raised = imported(memory, docs, sensitivity=Sensitivity.CONFIDENTIAL)
    lower = imported(memory, docs, sensitivity=Sensitivity.PUBLIC)

    assert len(raised.corrected) == 3
    assert (lower.corrected, lower.unchanged) == ((), 3)


def test_bad_files_do_not_keep_the_others_out(memory: Memory, docs: Path) -> None:
    (docs / "bad.md").write_bytes(b"\xff")
    (docs / "empty.md").write_text("")

    report = imported(memory, docs, docs / "nowhere")

    assert len(report.added) == 3
    assert {problem.fault for problem in report.problems} == {
        DocumentFault.MISSING,
        DocumentFault.NOT_UTF8,
        DocumentFault.EMPTY,
    }


def test_nothing_readable_at_all_is_refused(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(UnreadableDocumentError, match="check the path"):
        imported(memory, tmp_path / "nowhere")


def test_a_bad_scope_is_refused_before_anything_is_read(memory: Memory, docs: Path) -> None:
    with pytest.raises(InvalidInputError, match="scope"):
        imported(memory, docs, scope="a//b")


def test_many_sections_are_written_in_batches_with_progress(memory: Memory, docs: Path) -> None:
    for number in range(3):
        (docs / f"long{number}.md").write_text("# H\n\ntext\n\n" * 200)
    import_documents = ImportDocuments(
        reader=FileDocumentReader(),
        vault=memory.vault,
        remember_many=memory.remember_many,
        correct=memory.correct,
        transactions=memory.transactions,
    )
    seen: list[tuple[int, int]] = []

    import_documents(
        ImportRequest(
            roots=(docs,),
            tenant="acme",
            owner="ana",
            scope="docs",
            sensitivity=Sensitivity.PUBLIC,
        ),
        progress=lambda done, total: seen.append((done, total)),
    )

    assert memory.batches == [402, 201]
    assert seen == [(3, 5), (5, 5)]


def test_a_report_shows_no_heading(memory: Memory, docs: Path) -> None:
    (docs / "a.md").write_text("# canary\n\ntext\n")

    assert "canary" not in repr(imported(memory, docs))
