"""A file moved, deleted or replaced under an open memory: nothing is written into nowhere."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.adapters.database_notes import note, notes, opened

from remembrancer.adapters.sqlite.connection import wal_path
from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import Retry, StoreMovedError

Deed = Callable[[Path], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def moved_to(path: Path) -> Path:
    return path.with_name("moved.db")


def move(path: Path) -> None:
    path.rename(moved_to(path))


def replace_by_backup(path: Path) -> None:
    """Put an earlier copy there, as who restores a backup does."""
    path.with_name("backup.db").rename(path)


def delete_all(path: Path) -> None:
    for one in path.parent.glob("memory.db*"):
        one.unlink()


def delete_log(path: Path) -> None:
    wal_path(path).unlink()


DEEDS: list[Deed] = [move, Path.unlink, replace_by_backup, delete_all, delete_log]
OF_THE_FILE = [deed for deed in DEEDS if deed is not delete_log]


@pytest.fixture(autouse=True)
def backup(path: Path) -> None:
    with Database.open(path) as database:
        note(database, "early")
    shutil.copy(path, path.with_name("backup.db"))


@pytest.mark.parametrize("deed", OF_THE_FILE)
def test_a_write_is_refused(path: Path, deed: Deed) -> None:
    with Database.open(path) as database:
        note(database, "first")
        deed(path)
        before = sorted(path.parent.iterdir())

        with pytest.raises(StoreMovedError, match="see what lies there") as refused:
            note(database, "second")

        assert refused.value.retry is Retry.NEVER
        assert not database.in_transaction
        assert sorted(path.parent.iterdir()) == before
        assert notes(database) == ["early", "first"]


@pytest.mark.parametrize("deed", DEEDS)
def test_no_other_thread_opens_what_lies_there_now(path: Path, deed: Deed) -> None:
    with Database.open(path) as database, ThreadPoolExecutor(1) as pool:
        note(database, "first")
        deed(path)
        before = sorted(path.parent.iterdir())

        other = pool.submit(notes, database)

        assert isinstance(other.exception(10), StoreMovedError)
        assert sorted(path.parent.iterdir()) == before


@pytest.mark.parametrize("deed", DEEDS)
def test_no_byte_of_what_lies_there_now_is_scrubbed(path: Path, deed: Deed) -> None:
    with Database.open(path) as database:
        note(database, "first")
        deed(path)
        before = path.read_bytes() if path.exists() else None

        with pytest.raises(StoreMovedError):
            database.scrub()

        assert (path.read_bytes() if path.exists() else None) == before


@pytest.mark.parametrize("deed", [move, delete_log])
def test_what_was_acknowledged_is_in_the_file_once_it_is_closed(path: Path, deed: Deed) -> None:
    with Database.open(path) as database:
        note(database, "first")
        deed(path)

    assert opened(moved_to(path) if deed is move else path) == ["early", "first"]


def test_a_restored_backup_is_as_it_was_once_the_other_is_closed(path: Path) -> None:
    with Database.open(path) as database:
        note(database, "first")
        replace_by_backup(path)

    assert opened(path) == ["early"]


def test_closing_leaves_the_log_of_whoever_made_another_file_there(path: Path) -> None:
    with Database.open(path) as database:
        note(database, "first")
        delete_all(path)
        with Database.open(path) as other:
            note(other, "another")
            log = wal_path(path).read_bytes()

            database.close()

            assert wal_path(path).read_bytes() == log
            assert notes(other) == ["another"]
            note(other, "one more")
        assert opened(path) == ["another", "one more"]


def test_a_file_that_stays_where_it_is_is_written_by_all(path: Path) -> None:
    with Database.open(path) as database, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: note(database, f"{number}"), range(20)))
        database.scrub()
        note(database, "last")

        assert len(notes(database)) == 22
