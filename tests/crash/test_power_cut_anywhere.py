"""The power is cut anywhere in a whole scenario: what was acknowledged is there, and whole."""

from pathlib import Path

import pytest
from tests.crash.power import NORMAL, Losses, Recording, cuts, record
from tests.crash.scenario import Examiner, Told, database_of, opened, prepared

PARTS = 8
POINTS_IN_ALL = 100_000
IMAGES = 92
"""Random disks at each operation; some are the same."""


def recorded(folder: Path, *, synchronous: int | None = None) -> Recording:
    lived_in = folder / "lived"
    lived_in.mkdir()
    return record(lived_in, prepared(folder), synchronous=synchronous)


def cut(folder: Path, recording: Recording, *, every: int, first: int = 0, images: int) -> Losses:
    rebuilt = folder / "rebuilt"
    rebuilt.mkdir()
    return cuts(rebuilt, recording, every=every, first=first, images=images)


def test_what_was_acknowledged_is_there(folder: Path) -> None:
    found = cut(folder, recorded(folder), every=37, images=3)

    assert found.lost == []
    assert found.contents > 20


def test_a_disk_that_is_not_waited_for_does_lose_something(folder: Path) -> None:
    """Without this, the test above could be blind."""
    found = cut(folder, recorded(folder, synchronous=NORMAL), every=37, images=3)

    assert found.lost != []


def test_an_altered_file_is_told(folder: Path) -> None:
    """Nor is the examination of each content blind."""
    lived_in = folder / "lived"
    lived_in.mkdir()
    recording = record(lived_in, prepared(folder))
    with opened(lived_in) as house:
        connection = database_of(house).connection()
        connection.execute("UPDATE spend_receipts SET charged_quanta = charged_quanta - 1")

    lost = Examiner(lived_in, recording.told).lost(len(recording.told) - 1)

    assert lost != ""


def test_nothing_is_acknowledged_before_it_was_done(folder: Path) -> None:
    recording = recorded(folder)

    assert recording.told[0] == recording.told[1] == Told()
    assert all(one.facts.entries for one in recording.told[2:])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_what_was_acknowledged_is_there_at_any_point(folder: Path, part: int) -> None:
    found = cut(folder, recorded(folder), every=PARTS, first=part, images=IMAGES)

    assert found.lost == []
    assert found.points >= POINTS_IN_ALL // PARTS
