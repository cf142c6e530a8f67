"""The power is cut anywhere in the life of a memory: what was acknowledged is there, and whole."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.adapters.power_cut import (
    Acknowledgement,
    Disk,
    Operation,
    rebuild,
    recording,
)
from tests.application.house import House, open_house
from tests.composition.whole_memory import (
    EMBEDDERS,
    ERASED_WORD,
    Facts,
    Life,
    assert_sound,
    facts_of,
    write_documents,
)

from remembrancer.adapters.sqlite.database import Database

NORMAL = 1


@dataclass(frozen=True, slots=True)
class Recording:
    """All that reached the files, and what was true after each acknowledged step."""

    operations: list[Operation]
    facts: list[Facts]
    clean: set[int]
    """Numbers of steps after which nothing is kept that holds the erased word."""

    def is_clean_after(self, acknowledged: int) -> bool:
        """Say whether the disk must be free of the word, whatever the next step has done."""
        return {acknowledged, min(acknowledged + 1, len(self.facts) - 1)} <= self.clean


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    recorded, rebuilt = tmp_path / "recorded", tmp_path / "rebuilt"
    for folder in (recorded, rebuilt, tmp_path / "documents"):
        folder.mkdir()
    write_documents(tmp_path / "documents")
    return recorded, rebuilt


def test_what_was_acknowledged_is_there_and_whole(folders: tuple[Path, Path]) -> None:
    recorded = record(folders[0])

    losses = [lost for lost in cuts(folders[1], recorded, every=7) if lost]

    assert losses == []


def test_a_disk_that_is_not_waited_for_does_lose_something(folders: tuple[Path, Path]) -> None:
    """Without this, the test above could be blind."""
    recorded = record(folders[0], synchronous=NORMAL)

    assert any(cuts(folders[1], recorded, every=29))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
def test_what_was_acknowledged_is_there_at_any_write(
    folders: tuple[Path, Path], first: int
) -> None:
    recorded = record(folders[0])

    losses = [lost for lost in cuts(folders[1], recorded, every=4, first=first) if lost]

    assert losses == []


# -- Helpers ---------------------------------------------------------------


def record(folder: Path, *, synchronous: int | None = None) -> Recording:
    """Live once, from an empty folder on, and note what was true after each step."""
    facts, clean = [Facts()], set[int]()
    with (
        recording() as file_system,
        open_house(folder / "memory.db", embedders=EMBEDDERS) as house,
    ):
        connection = database_of(house).connection()
        connection.pragma("wal_autocheckpoint", 40)  # So that copying back is cut as well.
        if synchronous is not None:
            connection.pragma("synchronous", synchronous)
        life = Life(house, folder.parent / "documents")
        for step in life.steps():
            step()
            file_system.operations.append(Acknowledgement())
            if life.is_clean:
                clean.add(len(facts))
            facts.append(facts_of(house, life.ids, life.sessions))
    return Recording(file_system.operations, facts, clean)


def cuts(folder: Path, recorded: Recording, *, every: int, first: int = 0) -> Iterator[str]:
    """Cut at operations ``first``, ``first + every``, ...; yield what was lost at each, or ""."""
    chance = random.Random(first)  # noqa: S311 - repeatable on purpose
    disk = Disk()
    for number, operation in enumerate(recorded.operations):
        disk.apply(operation)
        if number % every != first % every:
            continue
        for files in disk.after_a_cut(chance):
            rebuild(folder, files)
            lost = lost_in(folder, recorded, disk.acknowledged)
            if recorded.is_clean_after(disk.acknowledged) and in_any(files, ERASED_WORD):
                lost += " an erased word was on the disk"
            yield lost and f"at {number}, {disk.acknowledged} acknowledged:{lost}"


def lost_in(folder: Path, recorded: Recording, acknowledged: int) -> str:
    """Open what a cut left; return what is neither as acknowledged nor as the next step has it."""
    before = recorded.facts[acknowledged]
    after = recorded.facts[min(acknowledged + 1, len(recorded.facts) - 1)]
    lost = ""
    with open_house(folder / "memory.db", embedders=EMBEDDERS) as house:
        assert database_of(house).connection().pragma("integrity_check") == "ok"
        known = assert_sound(house)
        if not known >= before.entries.keys():
            return " entries"
        assert known <= after.entries.keys()
        found = facts_of(house, list(before.entries), [])
        for id_, what in found.entries.items():
            if what not in (before.entries[id_], after.entries[id_]):
                lost += f" entry {id_}"
        for session in before.packs:
            replayed = facts_of(house, [], [session]).packs[session]
            if replayed not in (before.packs[session], after.packs[session]):
                lost += f" pack {session}"
    return lost


def in_any(files: dict[str, bytearray], word: str) -> bool:
    return any(word.encode() in content for content in files.values())


def database_of(house: House) -> Database:
    database = house.store.transactions._database  # type: ignore[attr-defined]  # SQLite's.
    assert isinstance(database, Database)
    return database
