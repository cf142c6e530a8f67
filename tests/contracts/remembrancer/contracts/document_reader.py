"""What every document reader promises.

Enrol an adapter by subclassing :class:`DocumentReaderContract`::

    class TestMyReader(DocumentReaderContract):
        suffix = ".rst"

        def reader(self) -> DocumentReader:
            return MyReader()

Here all documents are paragraphs of plain words.  What a format's headings are, and which suffixes
are documents, is for the adapter's own tests.
"""

import os
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remembrancer.application.ports.document_reader import (
    Document,
    DocumentFault,
    DocumentReader,
)
from remembrancer.domain.errors import UnreadableDocumentError
from remembrancer.domain.parsed import TEXT_BYTES_MAX

_LINES = st.text("# ab\n\r\t-`>.\u2028\x0c\ufeff\xe9", max_size=80)


class DocumentReaderContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the adapter."""

    suffix: ClassVar[str] = ".txt"
    """Of files whose text is read as it stands, and that :meth:`DocumentReader.find` finds."""

    @abstractmethod
    def reader(self) -> DocumentReader:
        """Return a reader."""

    def read(self, folder: Path, content: str | bytes) -> Document:
        """Read a file that holds ``content``, named by itself."""
        file = folder / f"notes{self.suffix}"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        [found] = self.reader().find(file).files
        return self.reader().read(found)

    # -- Finding -----------------------------------------------------------

    def test_a_folder_gives_its_documents_sorted_at_any_depth(self, tmp_path: Path) -> None:
        for name in ("b", "a/z", "a/b/c", "a"):
            file = tmp_path / f"{name}{self.suffix}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("text")

        found = self.reader().find(tmp_path)

        assert [file.path.removesuffix(self.suffix) for file in found.files] == [
            "a/b/c",
            "a/z",
            "a",
            "b",
        ]
        assert [file.file.read_text() for file in found.files] == ["text"] * 4
        assert (found.is_folder, found.problems) == (True, ())
        assert found.root == tmp_path.resolve().as_posix()

    def test_what_is_hidden_or_no_document_is_left_out(self, tmp_path: Path) -> None:
        for name in (f".hidden{self.suffix}", f".git/d{self.suffix}", "program.exe", "nothing"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("text")

        found = self.reader().find(tmp_path)

        assert (found.files, found.problems) == ((), ())

    def test_a_file_is_found_by_itself(self, tmp_path: Path) -> None:
        (tmp_path / f"one{self.suffix}").write_text("text")
        (tmp_path / f"two{self.suffix}").write_text("text")

        found = self.reader().find(tmp_path / f"one{self.suffix}")

        assert [file.path for file in found.files] == [f"one{self.suffix}"]
        assert not found.is_folder
        assert found.root == tmp_path.resolve().as_posix()

    def test_a_file_named_through_a_link_lies_where_it_is(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / f"one{self.suffix}").write_text("text")
        (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)

        found = self.reader().find(tmp_path / "link" / f"one{self.suffix}")

        assert found.root == (tmp_path.resolve() / "real").as_posix()

    def test_links_in_a_circle_do_not_catch_the_walk(self, tmp_path: Path) -> None:
        (tmp_path / f"a{self.suffix}").write_text("text")
        (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / f"self{self.suffix}").symlink_to(tmp_path / f"self{self.suffix}")

        found = self.reader().find(tmp_path)
        problems = [self.reader().read(file).problems for file in found.files]

        assert [file.path for file in found.files] == [f"a{self.suffix}", f"self{self.suffix}"]
        assert [one.fault for some in problems for one in some] == [DocumentFault.UNREADABLE]

    def test_a_link_that_leads_out_of_the_folder_is_a_problem_of_its_own(
        self, tmp_path: Path
    ) -> None:
        folder = tmp_path / "given"
        folder.mkdir()
        (tmp_path / f"secret{self.suffix}").write_text("text")
        (folder / f"real{self.suffix}").write_text("text")
        (folder / f"inside{self.suffix}").symlink_to(folder / f"real{self.suffix}")
        (folder / f"outside{self.suffix}").symlink_to(f"../secret{self.suffix}")

        found = self.reader().find(folder)

        assert [file.path for file in found.files] == [f"real{self.suffix}"]
        assert [(one.path, one.fault) for one in found.problems] == [
            (f"outside{self.suffix}", DocumentFault.OUTSIDE)
        ]

    def test_a_document_and_a_link_to_it_are_one(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / f"real{self.suffix}").write_text("text")
        (tmp_path / f"a{self.suffix}").symlink_to(f"sub/real{self.suffix}")
        (tmp_path / "sub" / f"z{self.suffix}").symlink_to(f"real{self.suffix}")

        found = self.reader().find(tmp_path)

        assert [file.path for file in found.files] == [f"sub/real{self.suffix}"]
        assert found.repeated == (
            (f"a{self.suffix}", f"sub/real{self.suffix}"),
            (f"sub/z{self.suffix}", f"sub/real{self.suffix}"),
        )

    def test_a_link_to_what_is_not_found_by_itself_is_found(self, tmp_path: Path) -> None:
        (tmp_path / f".hidden{self.suffix}").write_text("text")
        for name in ("one", "two"):
            (tmp_path / f"{name}{self.suffix}").symlink_to(f".hidden{self.suffix}")

        found = self.reader().find(tmp_path)

        assert [file.path for file in found.files] == [f"one{self.suffix}"]
        assert found.repeated == ((f"two{self.suffix}", f"one{self.suffix}"),)

    def test_a_file_named_by_a_link_is_wanted(self, tmp_path: Path) -> None:
        (tmp_path / f"real{self.suffix}").write_text("text")
        (tmp_path / "given").mkdir()
        link = tmp_path / "given" / f"link{self.suffix}"
        link.symlink_to(tmp_path / f"real{self.suffix}")

        found = self.reader().find(link)

        assert [file.path for file in found.files] == [f"real{self.suffix}"]

    def test_a_root_that_is_missing_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableDocumentError, match="nowhere") as refusal:
            self.reader().find(tmp_path / "nowhere")

        assert refusal.value.fault == DocumentFault.MISSING

    def test_a_root_of_links_in_a_circle_is_refused(self, tmp_path: Path) -> None:
        loop = tmp_path / "loop"
        loop.symlink_to(loop)

        with pytest.raises(UnreadableDocumentError) as refusal:
            self.reader().find(loop)

        assert refusal.value.fault == DocumentFault.UNREADABLE

    def test_a_name_that_is_no_unicode_is_a_problem_of_its_own(self, tmp_path: Path) -> None:
        (tmp_path / f"good{self.suffix}").write_text("text")
        bad = os.fsencode(tmp_path) + b"/bad\xff" + self.suffix.encode()
        Path(os.fsdecode(bad)).write_text("text")

        found = self.reader().find(tmp_path)

        assert [file.path for file in found.files] == [f"good{self.suffix}"]
        assert [problem.fault for problem in found.problems] == [DocumentFault.BAD_NAME]
        assert str(found.problems[0]).isascii()

    # -- Reading -----------------------------------------------------------

    def test_a_text_is_kept_as_it_stands(self, tmp_path: Path) -> None:
        body = "one  two\n\n\tthree\n\u2028odd\x0cend"

        document = self.read(tmp_path, body)

        assert [section.text for section in document.sections] == [body]
        assert [section.ordinal for section in document.sections] == [1]
        assert not document.problems

    def test_line_ends_and_byte_order_mark_make_no_difference(self, tmp_path: Path) -> None:
        plain = self.read(tmp_path, "# One\n\na\nb\n")

        other = self.read(tmp_path, b"\xef\xbb\xbf# One\r\n\r\na\rb\r\n")

        assert other == plain

    def test_sections_are_parts_of_the_text_and_told_apart(self) -> None:
        @settings(max_examples=100)
        @given(text=_LINES)
        def sections_are_parts(text: str) -> None:
            with TemporaryDirectory() as folder:
                document = self.read(Path(folder), text)

            rest = text.replace("\r\n", "\n").replace("\r", "\n")
            for section in document.sections:
                assert section.text.strip()
                _, found, rest = rest.partition(section.text)
                assert found
            names = Counter((one.headings, one.ordinal) for one in document.sections)
            assert set(names.values()) <= {1}

        sections_are_parts()

    # -- Bad input ---------------------------------------------------------

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"", DocumentFault.EMPTY),
            (b" \n\t\n", DocumentFault.EMPTY),
            (b"\xef\xbb\xbf", DocumentFault.EMPTY),
            (b"text\x00more", DocumentFault.BINARY),
            (b"\x89PNG\r\n\x1a\n\x00\x00", DocumentFault.BINARY),
            (b"caf\xe9", DocumentFault.NOT_UTF8),
            ("text".encode("utf-16"), DocumentFault.NOT_UTF8),
            (b"half of a pair: \xed\xa0\xbd", DocumentFault.NOT_UTF8),
        ],
        ids=ascii,
    )
    def test_what_is_no_text_is_a_typed_problem(
        self, tmp_path: Path, content: bytes, expected: DocumentFault
    ) -> None:
        document = self.read(tmp_path, content)

        assert [problem.fault for problem in document.problems] == [expected]
        assert not document.sections
        assert str(document.problems[0]).startswith(f"notes{self.suffix}: ")

    def test_a_problem_does_not_quote_the_file(self, tmp_path: Path) -> None:
        [problem] = self.read(tmp_path, b"canary \xff").problems

        assert "canary" not in repr(problem)
        assert problem.__cause__ is None

    def test_a_section_of_over_a_mebibyte_is_a_problem(self, tmp_path: Path) -> None:
        document = self.read(tmp_path, "word " * (TEXT_BYTES_MAX // 5) + "and more")

        assert [problem.fault for problem in document.problems] == [
            DocumentFault.SECTION_TOO_LARGE
        ]
        assert not document.sections

    def test_a_section_of_a_mebibyte_is_read(self, tmp_path: Path) -> None:
        document = self.read(tmp_path, "x" * TEXT_BYTES_MAX)

        assert [len(section.text) for section in document.sections] == [TEXT_BYTES_MAX]

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / f"pipe{self.suffix}")
        [found] = self.reader().find(tmp_path).files

        document = self.reader().read(found)

        assert [problem.fault for problem in document.problems] == [DocumentFault.NOT_A_FILE]

    def test_a_file_that_went_away_is_a_problem(self, tmp_path: Path) -> None:
        (tmp_path / f"a{self.suffix}").write_text("text")
        [found] = self.reader().find(tmp_path).files
        (tmp_path / f"a{self.suffix}").unlink()

        document = self.reader().read(found)

        assert [problem.fault for problem in document.problems] == [DocumentFault.MISSING]
