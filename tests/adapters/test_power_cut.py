"""The power is cut at every write: what was acknowledged is there, whatever the disk kept.

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
import pytest
from eventsourcing.domain import AggregateEvent
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.contracts.event_log_examples import history

SECTOR = 512
REAL = "unix"
NORMAL = 1


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


def record(folder: Path, *, commits: int, synchronous: int | None = None) -> list[Operation]:
    """Append events, one transaction after another, and return all that reached the files."""
    with recording() as file_system, Database.open(folder / "memory.db") as database:
        connection = database.connection()
        connection.pragma("wal_autocheckpoint", 12)  # So that copying back is cut as well.
        if synchronous is not None:
            connection.pragma("synchronous", synchronous)
        log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        for number in range(1, commits + 1):
            log.append(history(number, corrections=number % 3))
            file_system.operations.append(Acknowledgement())
            if number % 7 == 0:
                database.scrub()
    return file_system.operations


def lost(folder: Path, operations: list[Operation], *, every: int, first: int = 0) -> int:
    """Cut at operations ``first``, ``first + every``, ...; return at how many a commit was lost.

    Each state must open, be sound, and hold whole transactions from the first to some last.
    """
    chance = random.Random(first)  # noqa: S311 - repeatable on purpose
    disk, losses = Disk(), 0
    for number, operation in enumerate(operations):
        disk.apply(operation)
        if number % every != first % every or not disk.acknowledged:
            continue
        states = [found_after(folder, files) for files in disk.after_a_cut(chance)]
        losses += any(found < disk.acknowledged for found in states)
    return losses


def found_after(folder: Path, files: dict[str, bytearray]) -> int:
    """Open what the cut left; return how many transactions are there."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with Database.open(folder / "memory.db") as database:
        assert database.connection().pragma("integrity_check") == "ok"
        log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        found = [one.event for one in log.follow(after_position=0, limit=10**6)]
    transactions, expected = 0, list[AggregateEvent]()
    while len(expected) < len(found):
        transactions += 1
        expected += history(transactions, corrections=transactions % 3)
    assert found == expected
    return transactions


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    recorded, rebuilt = tmp_path / "recorded", tmp_path / "rebuilt"
    recorded.mkdir()
    rebuilt.mkdir()
    return recorded, rebuilt


def test_no_acknowledged_commit_is_lost(folders: tuple[Path, Path]) -> None:
    operations = record(folders[0], commits=24)

    assert lost(folders[1], operations, every=6) == 0


def test_the_cut_does_find_what_is_not_synced(folders: tuple[Path, Path]) -> None:
    """Without this, the test above could be blind."""
    operations = record(folders[0], commits=24, synchronous=NORMAL)

    assert lost(folders[1], operations, every=9) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
def test_no_acknowledged_commit_is_lost_at_any_write(
    folders: tuple[Path, Path], first: int
) -> None:
    operations = record(folders[0], commits=150)

    assert lost(folders[1], operations, every=4, first=first) == 0
