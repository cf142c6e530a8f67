"""The disk is full, or breaks, at any write: a typed error, nothing half done, and on it goes."""

from pathlib import Path

import apsw
import pytest
from tests.adapters.failing_disk import failing_disk
from tests.application.house import open_house
from tests.composition.whole_memory import (
    EMBEDDERS,
    Life,
    assert_sound,
    facts_of,
    write_documents,
)

from remembrancer.domain.errors import StoreError, StoreFullError, StoreUnavailableError

STEPS_OF_ONE_TRANSACTION = {"_remember", "_remember_many", "_correct"}


def test_a_full_disk_is_named_and_nothing_is_half_written(tmp_path: Path) -> None:
    assert failures(tmp_path, apsw.FullError, every=3) == {StoreFullError}


def test_a_disk_that_breaks_at_a_commit_is_named(tmp_path: Path) -> None:
    assert failures(tmp_path, apsw.IOError, every=1, syncs_only=True) == {StoreUnavailableError}


@pytest.mark.slow
def test_a_full_disk_is_named_at_every_write(tmp_path: Path) -> None:
    assert failures(tmp_path, apsw.FullError, every=1) == {StoreFullError}


@pytest.mark.slow
def test_a_disk_that_breaks_is_named_at_every_write(tmp_path: Path) -> None:
    assert failures(tmp_path, apsw.IOError, every=1) == {StoreUnavailableError}


def test_an_erasure_on_a_full_disk_is_done_and_pending(tmp_path: Path) -> None:
    write_documents(tmp_path)
    with (
        failing_disk() as disk,
        open_house(tmp_path / "memory.db", embedders=EMBEDDERS) as house,
    ):
        life = Life(house, tmp_path)
        for _, step in zip(range(2), life.steps(), strict=False):
            step()
        [entry_id] = life.to_be_erased
        pending = False
        for writes in range(200):
            disk.fail_after(writes, apsw.FullError)
            try:
                erasure = house.memory.erase(entry_id, reason="asked")
            except StoreFullError:
                continue
            finally:
                disk.recover()
            pending = erasure.pending
            break

        assert pending
        assert life.to_be_erased == []
        assert house.memory.finish_erasure()


# -- Helpers ---------------------------------------------------------------


def failures(
    folder: Path, error: type[apsw.Error], *, every: int, syncs_only: bool = False
) -> set[type[StoreError]]:
    """Try each step with more and more writes that succeed; return the errors that were seen.

    After each failure all parts agree, what was there is there, and the step can be repeated.
    """
    seen: set[type[StoreError]] = set()
    write_documents(folder)
    with (
        failing_disk() as disk,
        open_house(folder / "memory.db", embedders=EMBEDDERS) as house,
    ):
        life = Life(house, folder)
        for step in life.steps():
            writes = 0
            while True:
                before = facts_of(house, life.ids, life.sessions)
                disk.fail_after(writes, error, syncs_only=syncs_only)
                try:
                    step()
                except StoreError as refused:
                    seen.add(type(refused))
                    disk.recover()
                    assert_sound(house)
                    after = facts_of(house, life.ids, life.sessions)
                    assert after == before or step.__name__ not in STEPS_OF_ONE_TRANSACTION
                    assert after.entries.keys() == before.entries.keys()
                    writes += every
                else:
                    disk.recover()
                    assert_sound(house)
                    break
    return seen
