"""The power is cut at every write: what was acknowledged is there, whatever the disk kept."""

import random
from pathlib import Path

import pytest
from eventsourcing.domain import AggregateEvent
from tests.adapters.power_cut import Acknowledgement, Disk, Operation, rebuild, recording

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.contracts.event_log_examples import history

NORMAL = 1


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
    rebuild(folder, files)
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
