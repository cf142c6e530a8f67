"""Documents from outside, cut into the sections that become entries."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from remembrancer.domain.errors import UnreadableDocumentError


class DocumentFault(StrEnum):
    """What is wrong with a file or folder."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    """The system refuses it: rights, a circle of links, a failing disk."""
    NOT_A_FILE = "not_a_file"
    """A pipe, a socket or a device."""
    BAD_NAME = "bad_name"
    """Its name isn't valid Unicode."""
    OUTSIDE = "outside"
    """A link in a folder that leads out of it: whoever made the folder would choose what is
    read."""
    EMPTY = "empty"
    BINARY = "binary"
    NOT_UTF8 = "not_utf8"
    FILE_TOO_LARGE = "file_too_large"
    SECTION_TOO_LARGE = "section_too_large"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFile:
    """A document that was found, not yet read."""

    path: str
    """Relative to :attr:`FoundDocuments.root`, POSIX."""
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocuments:
    """What lies under a path."""

    root: str
    """Absolute, links resolved, POSIX: the folder itself, or the one the file lies in."""
    files: tuple[DocumentFile, ...]
    """Sorted by path, so that every run takes them in the same order."""
    is_folder: bool
    """Whether all of ``root`` was asked for, or one file of it."""
    problems: tuple[UnreadableDocumentError, ...] = ()
    """Folders that couldn't be listed, names that can't be kept."""
    repeated: tuple[tuple[str, str], ...] = ()
    """Links that were left out, since they lead to a document that is found anyway; each with that
    one's path."""
    skipped: int = 0
    """How many files were left out for their suffix; hidden ones aren't counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSection:
    """A heading and what stands below it, up to the next heading."""

    headings: tuple[str, ...] = field(repr=False)
    """From the outermost down to this section's own; () before the first, and in plain text."""
    ordinal: int
    """From 1, among the document's sections with equal ``headings``."""
    text: str = field(repr=False)
    """As it stands in the document, its heading included; never blank, at most 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was read of one file."""

    sections: tuple[DocumentSection, ...] = ()
    problems: tuple[UnreadableDocumentError, ...] = ()


class DocumentReader(Protocol):
    r"""Reads text documents from files.

    Line ends become ``\n`` and a byte order mark is dropped; nothing else is changed.
    """

    def find(self, root: Path) -> FoundDocuments:
        """Return the documents under a folder, or the one that ``root`` is.

        In folders: files with a document's suffix, at any depth.  Hidden files and folders are
        left out, and links to folders aren't followed, so that no circle catches the walk.  A
        document is found once, where it lies; a link beside it is told, not found.

        Raises:
            UnreadableDocumentError: ``root`` itself isn't there, or can't be read.
        """
        ...

    def read(self, document: DocumentFile) -> Document:
        """Read one document; what is wrong with it is part of the answer, never raised."""
        ...
