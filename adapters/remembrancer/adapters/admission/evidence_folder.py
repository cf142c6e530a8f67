"""Evidence as files: one JSON document each, in one folder.

The folder is looked at again whenever admission is asked for, so taking a document away, or
changing the settings that the configuration comes from, withdraws the admission at once.  A
document that can't be read is no evidence; it is named, and the others count.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock

from typing_extensions import override

from remembrancer.application.ports import Clock
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import InvalidInputError, NotAdmittedError, RemembrancerError
from remembrancer.domain.gate import Gate
from remembrancer.domain.release import AdmissionRefusal, AdmittedConfiguration, Evidence, admit

DOCUMENT_BYTES_MAX = 1_048_576
DOCUMENTS_MAX = 10_000
SUFFIX = ".json"

_Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableEvidence:
    """A file in the folder that isn't evidence."""

    path: Path
    problem: str


class EvidenceFolder:
    """Reads and writes evidence documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def signature(self) -> _Signature:
        """Return what changes when a document comes, goes or is rewritten."""
        found = []
        for path in self._paths():
            try:
                stat = path.stat()
            except OSError:
                continue
            found.append((path.name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(found)

    def read(self) -> tuple[list[Evidence], list[UnreadableEvidence]]:
        """Return the documents, and the files that aren't any."""
        documents, unreadable = [], []
        for path in self._paths():
            try:
                documents.append(_document(path))
            except (OSError, ValueError, RecursionError, InvalidInputError) as problem:
                # Of a decoding error only its kind: its message quotes the file.
                named = isinstance(problem, InvalidInputError)
                said = str(problem) if named else type(problem).__name__
                unreadable.append(UnreadableEvidence(path=path, problem=said))
        return documents, unreadable

    def write(self, evidence: Evidence) -> Path:
        """Write a document beside the others; an older one of the same gate stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stamp = evidence.at.strftime("%Y%m%dT%H%M%S%f")
        path = self.folder / f"{evidence.gate.value}-{stamp}{SUFFIX}"
        # Complete or not there: a reader never sees half a document.
        part = path.with_suffix(".part")
        part.write_bytes(canonical_json(evidence.model_dump(mode="json")) + b"\n")
        part.replace(path)
        return path

    def _paths(self) -> list[Path]:
        try:
            paths = sorted(self.folder.iterdir())
        except OSError:
            return []
        return [path for path in paths if path.suffix == SUFFIX][:DOCUMENTS_MAX]


class FolderAdmission(AdmissionSource):
    """Admits the current configuration with the evidence in the folder.

    ``current`` gives the configuration as it is set now; it is asked each time.
    """

    def __init__(
        self, *, folder: EvidenceFolder, current: Callable[[], Configuration], clock: Clock
    ) -> None:
        self._folder = folder
        self._current = current
        self._clock = clock
        self._lock = Lock()
        self._withdrawn = False
        self._decided: tuple[tuple[str, _Signature], AdmittedConfiguration] | None = None

    @override
    def admitted(self) -> AdmittedConfiguration:
        if self._withdrawn:
            raise NotAdmittedError(tuple(gate.value for gate in Gate))
        configuration = self._configuration()
        basis = (configuration.digest, self._folder.signature())
        with self._lock:
            if self._decided is not None and self._decided[0] == basis:
                return self._decided[1]
        documents, _ = self._folder.read()
        decision = admit(configuration, documents, at=self._clock.now())
        if isinstance(decision, AdmissionRefusal):
            raise decision.error()
        with self._lock:
            self._decided = (basis, decision)
        return decision

    def withdraw(self) -> None:
        """Admit nothing any more in this process."""
        self._withdrawn = True

    def _configuration(self) -> Configuration:
        try:
            return self._current()
        except RemembrancerError:
            # Settings that can't be read any more admit nothing.
            raise NotAdmittedError(tuple(gate.value for gate in Gate)) from None


def _document(path: Path) -> Evidence:
    with path.open("rb") as file:
        data = file.read(DOCUMENT_BYTES_MAX + 1)
    if len(data) > DOCUMENT_BYTES_MAX:
        raise InvalidInputError(field="evidence", problem="is larger than 1 MiB")
    values = json.loads(data.decode("utf-8"))
    if isinstance(values, dict) and isinstance(values.get("at"), str):
        values["at"] = _time(values["at"])
    return Evidence.parse(values)


def _time(text: str) -> object:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
