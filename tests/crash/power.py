"""The power is cut at every write, sync and truncation of the scenario.

For each moment, the disk is rebuilt as a cut could have left it: what was synced is there; of the
sectors that were written since, none, all, all but half of the last write, or any.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.adapters.power_cut import (
    SECTOR,
    Acknowledgement,
    Change,
    Disk,
    Operation,
    Write,
    rebuild,
    recording,
)
from tests.crash.scenario import FILE, Examiner, Told, holds_erased_word, lived

NORMAL = 1
KEPT = (0.1, 0.5, 0.9)
"""The parts of the unsynced sectors that a cut may keep."""


@dataclass(frozen=True, slots=True)
class Recording:
    """All that reached the files, and what was true after each acknowledged step."""

    beginning: bytes
    operations: list[Operation]
    told: list[Told]


def record(folder: Path, older: Path, *, synchronous: int | None = None) -> Recording:
    """Live through the scenario, over a file system that writes down what it is given."""
    with recording() as file_system:
        told = lived(
            folder,
            older,
            lambda: file_system.operations.append(Acknowledgement()),
            synchronous=synchronous,
        )
    return Recording(older.read_bytes(), file_system.operations, told)


@dataclass(frozen=True, slots=True)
class Losses:
    """What cuts have come to."""

    points: int
    contents: int
    lost: list[str]


def cuts(
    folder: Path,
    recorded: Recording,
    *,
    every: int = 1,
    first: int = 0,
    images: int = 0,
    losses_max: int = 20,
) -> Losses:
    """Cut at operations ``first``, ``first + every``, ...; ``images`` random ones at each.

    Disks that are the same to the byte count once.
    """
    chance = random.Random(first)  # noqa: S311  # repeatable on purpose
    examiner = Examiner(folder, recorded.told)
    disk = Disk(synced={FILE: bytearray(recorded.beginning)})
    lost: list[str] = []
    for number, operation in enumerate(recorded.operations):
        disk.apply(operation)
        if number % every != first % every:
            continue
        seen: set[int] = set()
        for files in _images(disk, chance, images):
            image = hash(tuple((name, bytes(content)) for name, content in files.items()))
            if image in seen:
                continue
            seen.add(image)
            rebuild(folder, files)
            problem = examiner.lost(disk.acknowledged)
            if examiner.must_be_clean(disk.acknowledged) and any(
                map(holds_erased_word, files.values())
            ):
                problem += " an erased word is on the disk"
            if problem:
                lost.append(f"at {number}, {disk.acknowledged} acknowledged: {problem}")
            if len(lost) >= losses_max:
                return Losses(examiner.points, examiner.contents, lost)
    return Losses(examiner.points, examiner.contents, lost)


def _images(disk: Disk, chance: random.Random, more: int) -> Iterator[dict[str, bytearray]]:
    yield from disk.after_a_cut(chance)
    if not disk.unsynced:
        return
    sectors = Disk(
        synced=disk.synced,
        unsynced={
            name: [part for change in changes for part in _sectors(change)]
            for name, changes in disk.unsynced.items()
        },
    )
    for _ in range(more):
        part = chance.choice(KEPT)
        yield sectors._keeping(lambda _, part=part: chance.random() < part, torn=False)


def _sectors(change: Change) -> Iterator[Change]:
    """Yield a write sector by sector, as a disk may keep it."""
    if not isinstance(change, Write):
        yield change
        return
    start = 0
    while start < len(change.data):
        length = SECTOR - (change.offset + start) % SECTOR
        piece = change.data[start : start + length]
        yield Write(change.file, change.offset + start, piece)
        start += length
