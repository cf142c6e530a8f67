"""``import`` on the command line."""

from typing import Any

import pytest
from tests.composition.shell import Shell

from remembrancer.application.import_documents import Progress
from remembrancer.composition import Remembrancer
from remembrancer.domain.errors import StoreFullError

DOCUMENT = "# Setup\nInstall it.\n\n## Linux\nUse the package.\n"


@pytest.fixture
def filled(shell: Shell) -> Shell:
    folder = shell.folder / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(DOCUMENT)
    (folder / "b.txt").write_text("Plain words.")
    return shell


def _counts(shell: Shell, *paths: str) -> dict[str, int]:
    data = shell.json("import", *(paths or ("docs",)))
    counts = {key: one if isinstance(one, int) else len(one) for key, one in data.items()}
    return {key: count for key, count in counts.items() if count}


def test_each_section_is_an_entry_with_path_and_heading(filled: Shell) -> None:
    data = filled.json("import", "docs")

    assert {(one["path"], one["heading"]) for one in data["added"]} == {
        ("a.md", "Setup"),
        ("a.md", "Setup > Linux"),
        ("b.txt", ""),
    }
    [found] = filled.json("recall", "package", "--limit", "1")["entries"]
    assert found["metadata"]["path"] == "a.md"
    assert found["kind"] == "document"


def test_an_import_says_how_to_ask_for_what_it_brought(filled: Shell) -> None:
    first, again = (filled("import", "docs", "--scope", "docs/v1") for _ in range(2))

    assert first.err == 'Ask with: remembrancer recall "a question" --scope docs/v1\n'
    assert again.err == ""


def test_importing_again_changes_nothing(filled: Shell) -> None:
    first, second = _counts(filled), _counts(filled)
    done = filled("import", "docs")

    assert (first, second) == ({"added": 3}, {"unchanged": 3})
    assert done.out == ("0 added, 0 corrected, 3 unchanged, 0 vanished, 0 files not read.\n")
    assert filled.json("status")["events"] == 3


def test_an_edited_section_becomes_a_correction(filled: Shell) -> None:
    _counts(filled)
    (filled.folder / "docs" / "a.md").write_text(DOCUMENT.replace("package", "hammer"))

    assert _counts(filled) == {"corrected": 1, "unchanged": 2}
    [found] = filled.json("recall", "hammer", "--limit", "1")["entries"]
    assert found["version"] == 2


def test_a_correction_by_hand_survives_another_import(filled: Shell) -> None:
    entry_id = filled.json("import", "docs")["added"][1]["entry_id"]
    filled("correct", entry_id, "--text", "Use the hammer.", "--reason", "wrong")

    assert _counts(filled) == {"unchanged": 3}
    [found] = filled.json("recall", "hammer", "--limit", "1")["entries"]
    assert (found["entry_id"], found["version"]) == (entry_id, 2)


def test_a_newer_file_replaces_a_correction_by_hand_and_says_so(filled: Shell) -> None:
    entry_id = filled.json("import", "docs")["added"][1]["entry_id"]
    filled("correct", entry_id, "--text", "Use the hammer.", "--reason", "wrong")
    (filled.folder / "docs" / "a.md").write_text(DOCUMENT.replace("package", "tongs"))

    done = filled("import", "docs")

    assert "1 corrected" in done.out
    assert "Corrected by hand before; the file is newer and replaced it" in done.out


def test_a_section_is_found_by_a_word_of_its_documents_title(filled: Shell) -> None:
    filled.json("import", "docs")

    found = filled.json("recall", "setup", "--sparse")["entries"]

    assert {one["metadata"]["heading"] for one in found} == {"Setup", "Setup > Linux"}


def test_a_vanished_section_is_reported_and_kept(filled: Shell) -> None:
    _counts(filled)
    (filled.folder / "docs" / "b.txt").unlink()

    done = filled("import", "docs")

    assert done.status == 0
    assert "1 vanished" in done.out
    assert "Vanished, and kept" in done.out
    assert "b.txt" in done.out
    assert filled.json("recall", "plain", "--limit", "1")["entries"]


def test_an_erased_section_is_not_brought_back(filled: Shell) -> None:
    data = filled.json("import", "docs")
    erased = next(one["entry_id"] for one in data["added"] if one["path"] == "b.txt")
    filled("erase", erased, "--reason", "user_request")

    assert _counts(filled) == {"erased": 1, "unchanged": 2}


def test_what_cannot_be_read_is_a_finding_and_the_rest_is_imported(filled: Shell) -> None:
    folder = filled.folder / "docs"
    (folder / "latin.md").write_bytes(b"caf\xe9 au lait")
    (folder / "binary.md").write_bytes(b"\x00\x01\x02" * 100)
    (folder / "empty.md").write_bytes(b"")

    done = filled("import", "docs", "--json")

    assert done.status == 1
    assert len(done.data["added"]) == 3
    problems = {one["path"]: one["fault"] for one in done.data["problems"]}
    assert set(problems) == {"latin.md", "binary.md", "empty.md"}
    shown = filled("import", "docs")
    assert shown.status == 1
    assert "Not read" in shown.out
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("extra", [[], ["also-missing"]], ids=str)
def test_when_nothing_can_be_read_it_is_wrong_use(shell: Shell, extra: list[str]) -> None:
    done = shell("import", "missing", *extra)

    assert done.status == 2
    assert done.err.startswith("error: ")
    assert "missing" in done.err
    assert "check the path" in done.err


def test_files_of_other_kinds_are_counted_and_what_is_read_is_named(filled: Shell) -> None:
    for name in ("a.rst", "b.pdf", ".hidden"):
        (filled.folder / "docs" / name).write_text("words")

    done, data = filled("import", "docs"), filled.json("import", "docs")

    assert "Left out: 2 files of other kinds; .md, .markdown" in done.out
    assert data["skipped"] == 2


def test_one_missing_path_beside_a_good_one_is_a_finding(filled: Shell) -> None:
    done = filled("import", "docs", "missing", "--json")

    assert done.status == 1
    assert len(done.data["added"]) == 3
    assert [one["path"] for one in done.data["problems"]] == ["missing"]


def test_ids_are_whole_and_lines_fit_a_screen(filled: Shell) -> None:
    _counts(filled)
    (filled.folder / "docs" / "a.md").write_text(DOCUMENT.replace("package", "x" * 200))

    done = filled("import", "docs")

    found = filled.json("recall", "x" * 200, "--limit", "1")["entries"][0]["entry_id"]
    assert found in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_link_to_a_document_is_told_and_not_imported_again(filled: Shell) -> None:
    (filled.folder / "docs" / "link.md").symlink_to("a.md")

    done = filled("import", "docs")

    assert done.out.startswith("3 added")
    assert "Left out: links to what was imported where it lies" in done.out
    assert filled.json("import", "docs")["repeated"] == [{"path": "link.md", "of": "a.md"}]


def test_files_of_one_name_under_several_roots_are_told_apart(filled: Shell) -> None:
    for folder in ("one", "two"):
        (filled.folder / folder).mkdir()
        (filled.folder / folder / "README.md").write_text(f"The package of {folder}.")

    data = filled.json("import", "one", "two")
    (filled.folder / "one" / "README.md").write_bytes(b"caf\xe9")
    found, again = filled("recall", "package"), filled("import", "one", "two")

    assert [one["path"] for one in data["added"]] == ["README.md", "README.md"]
    assert "one/README.md" in found.out
    assert "two/README.md" in found.out
    assert "one/README.md" in again.out


def test_a_file_elsewhere_is_told_with_its_whole_path(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled("import", "docs")
    monkeypatch.chdir("docs")

    here = filled("recall", "package", "--db", "../memory.db")
    monkeypatch.chdir("/")
    there = filled("recall", "package", "--db", str(filled.folder / "memory.db"))

    assert " · a.md" in here.out
    told = "".join(there.out.split())  # A long path goes on in the next line.
    assert f"{filled.folder}/docs/a.md"[1:] in told


def test_labels_can_be_chosen(filled: Shell) -> None:
    filled.json("import", "docs", "--scope", "docs/v1", "--kind", "manual", "--owner", "bob")

    [found] = filled.json("recall", "plain", "--owner", "bob", "--scope", "docs", "--limit", "1")[
        "entries"
    ]

    assert (found["scope"], found["kind"]) == ("docs/v1", "manual")


def test_a_wrong_label_is_refused_before_anything_is_read(filled: Shell) -> None:
    done = filled("import", "docs", "--scope", "a//b")

    assert done.status == 2
    assert "run it again" not in done.err
    assert filled.json("status")["entries"] == 0


def test_an_empty_path_is_refused_and_not_taken_for_the_folder_one_is_in(filled: Shell) -> None:
    """As of a variable that a script forgot to set: it would import whatever lies there."""
    done = filled("import", "docs", "")

    assert done.status == 2
    assert "must not be empty; . is the folder that one is in" in done.err
    assert filled.json("status")["entries"] == 0


@pytest.mark.parametrize(
    ("error", "status"), [(StoreFullError(store="memory.db"), 1), (KeyboardInterrupt(), 130)]
)
def test_an_import_that_breaks_off_says_how_far_it_came(
    filled: Shell, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    def breaks_off(*_: Any, progress: Progress, **__: Any) -> None:
        progress(1, 2)
        raise error

    monkeypatch.setattr(Remembrancer, "import_documents", breaks_off)

    done = filled("import", "docs")

    assert done.status == status
    assert "1 of 2 files are in; run it again to go on" in done.err
    assert "nothing was" not in done.err


def test_an_interrupt_is_told_to_programs_too(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Remembrancer, "import_documents", interrupted)

    done = filled("import", "docs", "--json")

    assert (done.status, done.data["error"]["type"]) == (130, "Interrupted")


def test_an_import_that_breaks_off_tells_programs_too(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(*_: Any, **__: Any) -> None:
        raise StoreFullError(store="memory.db")

    monkeypatch.setattr(Remembrancer, "import_documents", breaks_off)

    done = filled("import", "docs", "--json")

    assert "a part may be in; run it again to go on" in done.data["error"]["message"]
