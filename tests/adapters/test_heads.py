"""What a connection knows for certain of where streams end."""

from collections.abc import Generator
from pathlib import Path
from typing import NoReturn
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.heads import HEADS_MAX, Heads
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder

STREAM = UUID(int=1)


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        yield database


def append(database: Database, version: int, *, vouched: bool = True) -> None:
    with database.write():
        if vouched:
            database.heads.vouch()
        SqliteApplicationRecorder(database=database).insert_events(
            [StoredEvent(STREAM, version, "topic", b"{}")]
        )


def known(database: Database) -> int | None:
    with database.write():
        head = database.heads.find(STREAM.bytes)
        database.heads.vouch()
    return head and head[0]


def test_what_was_vouched_for_is_known(database: Database) -> None:
    append(database, 1)
    append(database, 2)

    assert known(database) == 2


def test_an_empty_transaction_changes_nothing(database: Database) -> None:
    append(database, 1)

    assert [known(database), known(database)] == [1, 1]


def test_what_nobody_vouched_for_is_not_known(database: Database) -> None:
    append(database, 1)
    append(database, 2, vouched=False)

    assert known(database) is None


def test_a_commit_of_this_very_connection_makes_it_forget(database: Database) -> None:
    append(database, 1)
    database.connection().execute("INSERT INTO tracking VALUES ('other', 1)")

    assert known(database) is None


def test_a_commit_of_another_connection_makes_it_forget(database: Database) -> None:
    append(database, 1)
    with Database.open(database.path) as other:
        append(other, 2)

    assert known(database) is None


def test_what_was_rolled_back_is_not_known(database: Database) -> None:
    append(database, 1)

    def appends_and_fails() -> NoReturn:
        with database.write():
            append(database, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        appends_and_fails()

    assert known(database) is None
    append(database, 2)


def test_what_was_undone_alone_is_not_known(database: Database) -> None:
    append(database, 1)

    def appends_and_fails() -> NoReturn:
        with database.attempt():
            append(database, 2)
            raise ZeroDivisionError

    with database.write():
        database.heads.vouch()
        with pytest.raises(ZeroDivisionError):
            appends_and_fails()

    assert known(database) is None
    append(database, 2)


def test_appends_of_one_transaction_follow_each_other(database: Database) -> None:
    append(database, 1)

    with database.write():
        append(database, 2)
        append(database, 3)

    assert known(database) == 3


def test_only_the_latest_are_kept() -> None:
    heads = Heads()
    heads.begin(1)
    heads.vouch()
    heads.committed(2)

    heads.keep({number.to_bytes(16, "big"): (1, b"") for number in range(HEADS_MAX + 1)})

    assert heads.find(bytes(16)) is None
    assert heads.find(HEADS_MAX.to_bytes(16, "big")) == (1, b"")
