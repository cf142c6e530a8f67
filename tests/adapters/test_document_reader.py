"""Reading real files: what a section is, and what bad input gets."""

from pathlib import Path

import pytest
from typing_extensions import override

from remembrancer.adapters.markdown import document_reader
from remembrancer.adapters.markdown.document_reader import FileDocumentReader
from remembrancer.application.ports.document_reader import (
    Document,
    DocumentFault,
    DocumentReader,
)
from remembrancer.contracts.document_reader import DocumentReaderContract
from remembrancer.domain.errors import UnreadableDocumentError
from remembrancer.domain.parsed import TEXT_BYTES_MAX

READER = FileDocumentReader()


class TestMarkdownDocumentReader(DocumentReaderContract):
    suffix = ".md"

    @override
    def reader(self) -> DocumentReader:
        return READER


class TestPlainTextDocumentReader(DocumentReaderContract):
    suffix = ".txt"

    @override
    def reader(self) -> DocumentReader:
        return READER


def read(folder: Path, content: str | bytes, name: str = "notes.md") -> Document:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    [found] = READER.find(file).files
    return READER.read(found)


def headings(document: Document) -> list[tuple[str, ...]]:
    return [section.headings for section in document.sections]


def texts(document: Document) -> list[str]:
    return [section.text for section in document.sections]


def fault(document: Document) -> str:
    [problem] = document.problems
    return problem.fault


# -- Sections --------------------------------------------------------------


def test_each_heading_begins_a_section_with_the_path_to_it(tmp_path: Path) -> None:
    document = read(
        tmp_path, "before\n\n# Setup\n\nintro\n\n## Linux\n\napt\n\n## Mac\n\nbrew\n# Use\n\nrun\n"
    )

    assert headings(document) == [
        (),
        ("Setup",),
        ("Setup", "Linux"),
        ("Setup", "Mac"),
        ("Use",),
    ]
    assert texts(document) == [
        "before",
        "# Setup\n\nintro",
        "## Linux\n\napt",
        "## Mac\n\nbrew",
        "# Use\n\nrun",
    ]


def test_underlined_headings_count(tmp_path: Path) -> None:
    document = read(tmp_path, "Title\nof two lines\n=====\n\ntext\n\nPart\n----\n\nmore\n")

    assert headings(document) == [("Title of two lines",), ("Title of two lines", "Part")]


def test_a_level_may_be_left_out(tmp_path: Path) -> None:
    document = read(tmp_path, "### deep\n\na\n\n# top\n\nb\n\n#### deeper\n\nc\n\n## mid\n\nd\n")

    assert headings(document) == [("deep",), ("top",), ("top", "deeper"), ("top", "mid")]


@pytest.mark.parametrize(
    "inside",
    [
        "```sh\n# not a heading\n```",
        "~~~\n# not a heading\n~~~",
        "    # not a heading",
        "> # not a heading",
        "- # not a heading",
        "<!--\n# not a heading\n-->",
        "\\# not a heading",
        "#not a heading",
    ],
)
def test_what_only_looks_like_a_heading_is_text(tmp_path: Path, inside: str) -> None:
    document = read(tmp_path, f"# One\n\n{inside}\n\nend\n")

    assert texts(document) == [f"# One\n\n{inside}\n\nend"]


def test_a_heading_is_named_by_its_words_without_marks(tmp_path: Path) -> None:
    document = read(tmp_path, "# The *fast* [way](http://x.example) to `run` &amp; stop #\n\nx\n")

    assert headings(document) == [("The fast way to run & stop",)]


def test_equal_headings_are_told_apart_by_their_ordinal(tmp_path: Path) -> None:
    document = read(tmp_path, "# A\n\n## Notes\n\n1\n\n## Notes\n\n2\n\n# B\n\n## Notes\n\n3\n")

    assert [
        (section.headings, section.ordinal)
        for section in document.sections
        if "Notes" in section.headings
    ] == [(("A", "Notes"), 1), (("A", "Notes"), 2), (("B", "Notes"), 1)]


def test_a_heading_alone_is_a_section_so_that_its_words_are_found(tmp_path: Path) -> None:
    assert texts(read(tmp_path, "# Title\n## Part\n\ntext\n")) == ["# Title", "## Part\n\ntext"]


def test_front_matter_is_left_out(tmp_path: Path) -> None:
    document = read(tmp_path, "---\ntitle: A thing\ntags: [a, b]\n---\n\n# One\n\ntext\n")

    assert texts(document) == ["# One\n\ntext"]


def test_a_rule_at_the_top_is_not_front_matter(tmp_path: Path) -> None:
    document = read(tmp_path, "---\n\nSome text.\n\n---\n\nMore.\n")

    assert "Some text." in texts(document)[0]


def test_a_section_keeps_its_own_spelling(tmp_path: Path) -> None:
    body = "# One\n\n|a|b|\n|-|-|\n|1|2|\n\n* x\n* y  \n\n\tcode\n\u2028odd\x0cend"

    assert texts(read(tmp_path, body)) == [body]


def test_plain_text_is_one_section(tmp_path: Path) -> None:
    document = read(tmp_path, "# not markdown\n\none\n\ntwo\n", "notes.txt")

    assert texts(document) == ["# not markdown\n\none\n\ntwo"]
    assert headings(document) == [()]


def test_a_file_named_by_itself_is_read_whatever_its_suffix(tmp_path: Path) -> None:
    assert texts(read(tmp_path, "hello\n", "LICENSE")) == ["hello"]


# -- Finding ---------------------------------------------------------------


def test_documents_of_a_folder_are_told_by_their_suffix(tmp_path: Path) -> None:
    for name in ("b.md", "a/z.MD", "a/b/c.txt", "a.markdown", "x.py", ".hidden.md", ".git/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")

    found = READER.find(tmp_path)

    assert [file.path for file in found.files] == ["a/b/c.txt", "a/z.MD", "a.markdown", "b.md"]
    assert found.root == tmp_path.resolve().as_posix()
    assert found.is_folder


def test_a_root_that_is_missing_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnreadableDocumentError, match=r"nowhere: isn't there; check the path"):
        READER.find(tmp_path / "nowhere")


# -- Bad input -------------------------------------------------------------


def test_a_section_of_over_a_mebibyte_is_a_problem_and_the_others_stay(tmp_path: Path) -> None:
    long = "word " * (TEXT_BYTES_MAX // 5)

    document = read(tmp_path, f"# A\n\nshort\n\n# B\n\n{long}\n\n# C\n\nshort\n")

    assert headings(document) == [("A",), ("C",)]
    assert fault(document) == DocumentFault.SECTION_TOO_LARGE
    assert "line 5" in str(document.problems[0])


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.md"
    with file.open("wb") as stream:
        stream.truncate(document_reader.FILE_BYTES_MAX + 1)  # Takes no room on the disk.

    document = READER.read(READER.find(file).files[0])

    assert fault(document) == DocumentFault.FILE_TOO_LARGE


@pytest.mark.parametrize("unit", [">", "- ", "[", "*a", "`", "<", "#", "![", "\\\n", "a\n=\n"])
def test_strange_markdown_is_read_in_time(tmp_path: Path, unit: str) -> None:
    document = read(tmp_path, unit * (50_000 // len(unit)))

    assert document.sections


def test_files_of_other_kinds_are_counted_hidden_ones_are_not(tmp_path: Path) -> None:
    for name in ("a.md", "b.pdf", "c.rst", ".hidden", ".git.pdf"):
        (tmp_path / name).write_text("words")

    found = READER.find(tmp_path)

    assert [file.path for file in found.files] == ["a.md"]
    assert found.skipped == 2
