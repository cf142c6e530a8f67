"""A disk whose power can be cut at every write, for tests over the real file.

SQLite runs over a file system that records every write, sync, truncation and removal while passing
it on.  For each moment the disk is rebuilt as a cut could have left it: what was synced is there;
of what was written since, nothing, everything, all but half of the last write, or any part.
"""

import random
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
from typing_extensions import override

SECTOR = 512
REAL = "unix"


@dataclass(frozen=True, slots=True)
class Write:
    file: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncation:
    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    file: str


@dataclass(frozen=True, slots=True)
class Removal:
    file: str


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A commit returned to its caller."""


Change = Write | Truncation
Operation = Change | Sync | Removal | Acknowledgement


class RecordingFileSystem(apsw.VFS):
    """Passes everything on to the real file system and keeps a list of it."""

    NAME = "recording"

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        super().__init__(self.NAME, base=REAL, makedefault=True)

    @override
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "RecordingFile":
        return RecordingFile(self.operations, name, flags)

    @override
    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.operations.append(Removal(Path(filename).name))


class RecordingFile(apsw.VFSFile):
    def __init__(
        self, operations: list[Operation], name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__(REAL, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = Path(path).name if path else ""
        self._operations = operations

    @override
    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._operations.append(Write(self._name, offset, bytes(data)))

    @override
    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._operations.append(Truncation(self._name, newsize))

    @override
    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._operations.append(Sync(self._name))


@contextmanager
def recording() -> Generator[RecordingFileSystem]:
    """Let every connection that is opened inside go through a recording file system."""
    file_system = RecordingFileSystem()
    try:
        yield file_system
    finally:
        file_system.unregister()


@dataclass(slots=True)
class Disk:
    """What is surely on the disk, and what was written since and may be there or not."""

    synced: dict[str, bytearray] = field(default_factory=dict)
    unsynced: dict[str, list[Change]] = field(default_factory=dict)
    acknowledged: int = 0

    def apply(self, operation: Operation) -> None:
        match operation:
            case Acknowledgement():
                self.acknowledged += 1
            case Sync(file):
                for change in self.unsynced.pop(file, []):
                    _change(self.synced.setdefault(file, bytearray()), change)
            case Removal(file):
                self.synced.pop(file, None)
                self.unsynced.pop(file, None)
            case Write(file) | Truncation(file):
                self.unsynced.setdefault(file, []).append(operation)

    def after_a_cut(self, chance: random.Random) -> Iterator[dict[str, bytearray]]:
        """Yield what a cut now may leave behind."""
        yield self._keeping(lambda _: True, torn=False)
        if self.unsynced:
            yield self._keeping(lambda _: False, torn=False)
            yield self._keeping(lambda _: True, torn=True)
            yield self._keeping(lambda _: chance.random() < 0.5, torn=False)

    def _keeping(self, kept: Any, *, torn: bool) -> dict[str, bytearray]:
        files = {name: bytearray(content) for name, content in self.synced.items()}
        for name, changes in self.unsynced.items():
            content = files.setdefault(name, bytearray())
            for number, change in enumerate(changes, start=1):
                if not kept(change):
                    continue
                if torn and number == len(changes) and isinstance(change, Write):
                    sectors = len(change.data) // SECTOR // 2
                    half = change.data[: sectors * SECTOR or len(change.data) // 2]
                    _change(content, Write(name, change.offset, half))
                else:
                    _change(content, change)
        return files


def _change(content: bytearray, change: Change) -> None:
    match change:
        case Truncation(_, size):
            del content[size:]
        case Write(_, offset, data):
            if len(content) < offset:
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(data)] = data


def rebuild(folder: Path, files: dict[str, bytearray]) -> None:
    """Let ``folder`` hold these files and no others."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
