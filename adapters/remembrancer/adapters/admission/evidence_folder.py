"""Evidence as files: one JSON document each, in one folder (adr/0015).

A document that can't be read is no evidence; it is named, and the others count.  Too many files
are none at all: which of them is the newest could not be said.
"""

import os
import stat
from pathlib import Path

from typing_extensions import override

from remembrancer.application.ports.admission_source import (
    EvidenceSource,
    FoundEvidence,
    UnreadableEvidence,
)
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.release import Evidence
from remembrancer.domain.strict_json import parse_strict_json

DOCUMENT_BYTES_MAX = 1_048_576
DOCUMENTS_MAX = 10_000
SUFFIX = ".json"
ARTEFACTS = "artefacts"
"""Folder beside the documents, for the raw results that their digests are of."""

Signature = tuple[tuple[str, int, int, int, int], ...]


class EvidenceFolder(EvidenceSource):
    """Reads and writes evidence documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def signature(self) -> Signature:
        """Return what changes when a document comes, goes or is rewritten."""
        signature = []
        for path in self._paths():
            try:
                known = path.stat()
            except OSError:
                continue
            times = (known.st_mtime_ns, known.st_ctime_ns)
            signature.append((path.name, *times, known.st_size, known.st_ino))
        return tuple(signature)

    @override
    def found(self) -> FoundEvidence:
        paths = self._paths()
        if len(paths) > DOCUMENTS_MAX:
            problem = f"holds more than {DOCUMENTS_MAX} documents; move old ones away"
            return FoundEvidence(
                documents=(),
                unreadable=(UnreadableEvidence(name=str(self.folder), problem=problem),),
            )
        documents, unreadable = [], []
        for path in paths:
            try:
                documents.append(_document(path))
            except (OSError, InvalidInputError) as problem:
                named = isinstance(problem, InvalidInputError)
                said = str(problem) if named else type(problem).__name__
                unreadable.append(UnreadableEvidence(name=path.name, problem=said))
        return FoundEvidence(documents=tuple(documents), unreadable=tuple(unreadable))

    def write(self, evidence: Evidence) -> Path:
        """Write a document beside the others; an older one of the same gate stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{_stem(evidence)}{SUFFIX}"
        _write_whole(path, canonical_json(evidence.model_dump(mode="json")) + b"\n")
        return path

    def write_artefact(self, name: str, data: bytes) -> Path:
        """Write what a run left, where documents aren't looked for."""
        folder = self.folder / ARTEFACTS
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(folder / name, data)
        return folder / name

    def _paths(self) -> list[Path]:
        try:
            # One more than allowed is enough to know that there are too many.
            names = sorted(one.name for one in os.scandir(self.folder))
        except OSError:
            return []
        found = [name for name in names if name.endswith(SUFFIX)]
        return [self.folder / name for name in found[: DOCUMENTS_MAX + 1]]


def _stem(evidence: Evidence) -> str:
    return f"{evidence.gate.value}-{evidence.at.strftime('%Y%m%dT%H%M%S%f')}"


def _write_whole(path: Path, data: bytes) -> None:
    # Complete or not there: a reader never sees half a document.
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _document(path: Path) -> Evidence:
    data = _read(path)
    if len(data) > DOCUMENT_BYTES_MAX:
        raise InvalidInputError(field="evidence", problem="is larger than 1 MiB")
    try:
        values = parse_strict_json(data)
    except ValueError as error:
        raise InvalidInputError(field="evidence", problem=str(error)) from None
    return Evidence.parse(values)


def _read(path: Path) -> bytes:
    # Not blocking: a pipe that nobody writes to would hold the answer up for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:  # noqa: PTH123  # a descriptor has no path
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InvalidInputError(field="evidence", problem="isn't a file")
        return file.read(DOCUMENT_BYTES_MAX + 1)
