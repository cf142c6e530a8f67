"""Documents from the file system: Markdown by sections, plain text whole."""

import os
import stat
from collections import Counter
from pathlib import Path, PurePath

from typing_extensions import override

from remembrancer.adapters.markdown.sections import markdown_sections
from remembrancer.application.ports.document_reader import (
    Document,
    DocumentFault,
    DocumentFile,
    DocumentReader,
    DocumentSection,
    FoundDocuments,
)
from remembrancer.domain.errors import UnreadableDocumentError
from remembrancer.domain.parsed import TEXT_BYTES_MAX

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})
TEXT_SUFFIXES = frozenset({".txt", ".text"})
FILE_BYTES_MAX = 16 * 1_048_576
"""A file is read whole; what is larger is hardly a document."""

_BOM = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_PLEASE = "isn't UTF-8 text; save it as UTF-8 and import again"
_NUL = b"\x00"
_OUTSIDE = "is a link that leads out of the folder; name what it leads to, if you want it"


class FileDocumentReader(DocumentReader):
    """A file named by itself is read whatever its suffix; unknown ones as plain text."""

    @override
    def find(self, root: Path) -> FoundDocuments:
        try:
            resolved = root.resolve(strict=True)
            is_folder = stat.S_ISDIR(resolved.stat().st_mode)
            if is_folder:  # Below the root, the walk reports what it can't list.
                os.scandir(resolved).close()
        except (OSError, RuntimeError, ValueError) as cause:  # RuntimeError: links in a circle.
            raise _refused_by_system(str(root), cause) from cause
        folder = resolved if is_folder else resolved.parent
        if not _is_unicode(str(resolved)):
            raise _bad_name(str(resolved))
        if not is_folder:
            one = DocumentFile(path=resolved.name, file=resolved)
            return FoundDocuments(root=folder.as_posix(), files=(one,), is_folder=False)
        return _walk(folder)

    @override
    def read(self, document: DocumentFile) -> Document:
        try:
            text = _text(document)
        except UnreadableDocumentError as problem:
            return Document(problems=(problem,))
        return _cut(document.path, text)


def _walk(folder: Path) -> FoundDocuments:
    files: list[DocumentFile] = []
    links: list[DocumentFile] = []
    problems: list[UnreadableDocumentError] = []
    skipped = 0

    def unlisted(cause: OSError) -> None:
        problems.append(_refused_by_system(_relative(str(cause.filename), folder), cause))

    # Links to folders aren't followed (the default): no circles, nothing twice.
    for here, below, names in os.walk(folder, onerror=unlisted):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            if name.startswith("."):
                continue
            if not _is_document(name):
                skipped += 1
                continue
            path = _relative(os.path.join(here, name), folder)  # noqa: PTH118 -- os.walk's strings
            if not _is_unicode(path):
                problems.append(_bad_name(path))
            elif _leads_outside(Path(here, name), folder):
                problems.append(_problem(path, DocumentFault.OUTSIDE, _OUTSIDE))
            else:
                file = Path(here, name)
                some = links if file.is_symlink() else files
                some.append(DocumentFile(path=path, file=file))
    repeated = _add_links(files, links)
    return FoundDocuments(
        root=folder.as_posix(),
        files=tuple(sorted(files, key=_by_path)),
        is_folder=True,
        problems=tuple(problems),
        repeated=tuple(repeated),
        skipped=skipped,
    )


def _add_links(files: list[DocumentFile], links: list[DocumentFile]) -> list[tuple[str, str]]:
    """Add links that lead to nothing found yet; return the others, each with where it leads."""
    found = {str(one.file): one.path for one in files}
    repeated = []
    for link in sorted(links, key=_by_path):
        leads_to = os.path.realpath(link.file)
        if leads_to in found:
            repeated.append((link.path, found[leads_to]))
        else:
            found[leads_to] = link.path
            files.append(link)
    return repeated


def _by_path(found: DocumentFile) -> list[str]:
    return found.path.split("/")


def _text(document: DocumentFile) -> str:
    path = document.path
    try:
        # Looked at before it is opened: opening a pipe would wait for ever.
        state = document.file.stat()
        if not stat.S_ISREG(state.st_mode):
            raise _problem(path, DocumentFault.NOT_A_FILE, "isn't a regular file; leave it out")
        if state.st_size > FILE_BYTES_MAX:
            raise _too_large(path)
        with document.file.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
    except OSError as cause:
        raise _refused_by_system(path, cause) from cause
    if len(data) > FILE_BYTES_MAX:  # It grew meanwhile, or its size isn't told.
        raise _too_large(path)
    return _decoded(path, data)


def _decoded(path: str, data: bytes) -> str:
    if data.startswith(_UTF16_MARKS):
        raise _problem(path, DocumentFault.NOT_UTF8, _UTF8_PLEASE)
    if _NUL in data:
        raise _problem(path, DocumentFault.BINARY, "is binary, not text; leave it out")
    try:
        text = data.decode()
    except UnicodeDecodeError:  # Its message quotes the bytes, so it isn't the cause.
        raise _problem(path, DocumentFault.NOT_UTF8, _UTF8_PLEASE) from None
    text = text.removeprefix(_BOM).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise _problem(path, DocumentFault.EMPTY, "is empty; write something or leave it out")
    return text


def _cut(path: str, text: str) -> Document:
    markdown = PurePath(path).suffix.lower() in MARKDOWN_SUFFIXES
    parts = markdown_sections(text) if markdown else [((), text.strip("\n").rstrip(), 1)]
    sections: list[DocumentSection] = []
    problems: list[UnreadableDocumentError] = []
    ordinals = Counter[tuple[str, ...]]()
    for headings, own, line in parts:
        ordinals[headings] += 1
        if len(own.encode()) > TEXT_BYTES_MAX:
            problems.append(
                _problem(
                    path,
                    DocumentFault.SECTION_TOO_LARGE,
                    f"the section at line {line} is longer than {TEXT_BYTES_MAX} bytes; "
                    + ("divide it by headings" if markdown else "divide the file"),
                )
            )
            continue
        sections.append(DocumentSection(headings=headings, ordinal=ordinals[headings], text=own))
    return Document(sections=tuple(sections), problems=tuple(problems))


def _is_document(name: str) -> bool:
    return PurePath(name).suffix.lower() in MARKDOWN_SUFFIXES | TEXT_SUFFIXES


def _leads_outside(file: Path, folder: Path) -> bool:
    # A folder from elsewhere may hold a link to anything that this process may read.
    return file.is_symlink() and folder not in Path(os.path.realpath(file)).parents


def _is_unicode(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _relative(path: str, folder: Path) -> str:
    return Path(path).relative_to(folder).as_posix()


def _problem(path: str, fault: DocumentFault, problem: str) -> UnreadableDocumentError:
    return UnreadableDocumentError(path=path, fault=fault, problem=problem)


def _too_large(path: str) -> UnreadableDocumentError:
    return _problem(
        path, DocumentFault.FILE_TOO_LARGE, f"is larger than {FILE_BYTES_MAX} bytes; divide it"
    )


def _bad_name(path: str) -> UnreadableDocumentError:
    shown = path.encode(errors="backslashreplace").decode()
    return _problem(shown, DocumentFault.BAD_NAME, "its name isn't valid Unicode; rename it")


def _refused_by_system(path: str, cause: Exception) -> UnreadableDocumentError:
    shown = path.encode(errors="backslashreplace").decode()
    if isinstance(cause, FileNotFoundError):
        return _problem(shown, DocumentFault.MISSING, "isn't there; check the path")
    if isinstance(cause, OSError):
        why = cause.strerror or "input or output failed"
    else:
        why = "links in a circle" if isinstance(cause, RuntimeError) else "not a path"
    return _problem(shown, DocumentFault.UNREADABLE, f"can't be read ({why}); check its rights")
