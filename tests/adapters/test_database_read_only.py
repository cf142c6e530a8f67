"""A SQLite file where nothing may be written, or not even be read."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from tests.adapters.database_notes import note, notes, opened
from tests.adapters.somebody_else import as_somebody_else

from remembrancer.adapters.sqlite.connection import wal_path
from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import (
    StoreError,
    StoreForbiddenError,
    StoreReadOnlyError,
    StoreUnavailableError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def reachable(path: Path) -> Path:
    """Return a path that another user can reach: pytest's own folders are closed."""
    for folder in list(path.parents)[:-2]:
        if folder.owner() == path.parent.owner() and folder.stat().st_uid == os.getuid():
            with suppress(PermissionError):
                folder.chmod(folder.stat().st_mode | 0o055)
    return path


def test_read_only_media_are_read(reachable: Path) -> None:
    with Database.open(reachable) as database:
        note(database, "kept")
    reachable.chmod(0o444)
    reachable.parent.chmod(0o555)

    def read() -> None:
        with Database.open(reachable) as database:
            assert notes(database) == ["kept"]
            with pytest.raises(StoreReadOnlyError):
                note(database, "second")

    assert as_somebody_else(read) == 0
    reachable.parent.chmod(0o755)


def test_an_empty_log_on_read_only_media_is_none(reachable: Path) -> None:
    opened(reachable)
    wal_path(reachable).touch()
    close_for_writing(reachable)

    def read() -> None:
        assert opened(reachable) == []

    assert as_somebody_else(read) == 0
    reachable.parent.chmod(0o755)


def test_a_log_on_read_only_media_is_named_with_what_to_do(reachable: Path) -> None:
    with Database.open(reachable) as database:
        note(database, "in the log")
        copies = {one: one.read_bytes() for one in (reachable, wal_path(reachable))}
    for one, content in copies.items():
        one.write_bytes(content)
    close_for_writing(reachable)

    def read() -> None:
        with pytest.raises(StoreForbiddenError, match="copy both to where files may be made"):
            opened(reachable)

    assert as_somebody_else(read) == 0
    reachable.parent.chmod(0o755)
    assert opened(reachable) == ["in the log"]


def close_for_writing(path: Path) -> None:
    for one in path.parent.glob(f"{path.name}*"):
        one.chmod(0o444)
    path.parent.chmod(0o555)


def test_an_unreadable_file_is_unavailable(reachable: Path) -> None:
    opened(reachable)
    reachable.chmod(0)

    def read() -> None:
        with pytest.raises(StoreUnavailableError):
            opened(reachable)

    assert as_somebody_else(read) == 0


def test_a_new_file_in_a_closed_folder_is_refused(reachable: Path) -> None:
    reachable.parent.chmod(0o555)

    def make() -> None:
        with pytest.raises(StoreError):
            opened(reachable)

    assert as_somebody_else(make) == 0
    reachable.parent.chmod(0o755)
