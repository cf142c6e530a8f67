"""One SQLite file: its settings, what it refuses, reading only, and its transactions."""

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from tests.adapters.database_notes import note, notes, opened

from remembrancer.adapters.sqlite import schema
from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import (
    SettingsError,
    StoreClosedError,
    StoreCorruptError,
    StoreFullError,
    StoreNewerError,
    StoreReadOnlyError,
    StoreUnavailableError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def database(path: Path) -> Generator[Database]:
    with Database.open(path, busy_timeout_s=0.2) as database:
        note(database, "first")
        yield database


# -- Settings of a connection ------------------------------------------------


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("secure_delete", 1),
        ("trusted_schema", 0),
        ("cell_size_check", 1),
        ("busy_timeout", 200),
        ("application_id", schema.APPLICATION_ID),
        ("user_version", schema.SCHEMA_VERSION),
    ],
)
def test_every_connection_is_set_up(database: Database, pragma: str, value: int | str) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(database.connection().pragma(pragma)))
    thread.start()
    thread.join()
    found.append(database.connection().pragma(pragma))

    assert found == [value, value]


def test_a_statement_keeps_its_plan_whatever_is_bound_to_it(database: Database) -> None:
    assert database.connection().config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)


def test_vectors_can_be_searched_and_nothing_more_loaded(database: Database) -> None:
    connection = database.connection()

    version: str = connection.execute("SELECT vec_version()").get

    assert version.startswith("v")
    with pytest.raises(apsw.SQLError, match="not authorized"):
        connection.execute("SELECT load_extension('vec0')")


def test_opening_imports_neither_numpy_nor_the_standard_module() -> None:
    script = (
        "import sys, tempfile, pathlib\n"
        "from remembrancer.adapters.sqlite.database import Database\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    with Database.open(pathlib.Path(folder) / 'memory.db') as database:\n"
        "        database.connection()\n"
        "print(sorted({'numpy', 'sqlite3', '_sqlite3', 'sqlite_vec'} & sys.modules.keys()))\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert said.stdout == "[]\n"


# -- What lies there ---------------------------------------------------------


def test_makes_a_missing_file(path: Path) -> None:
    assert opened(path) == []
    assert path.exists()


def test_an_empty_file_is_new(path: Path) -> None:
    path.touch()

    assert opened(path) == []


def test_leaves_one_file_behind(path: Path) -> None:
    with Database.open(path) as database:
        note(database, "kept")

    assert [found.name for found in path.parent.iterdir()] == ["memory.db"]
    assert opened(path) == ["kept"]


def test_a_folder_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is a folder"):
        opened(tmp_path)


def test_a_missing_folder_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        opened(tmp_path / "none" / "memory.db")


@pytest.mark.parametrize("name", [":memory:", "a\0b", ""])
def test_what_names_no_file_is_wrong(name: str) -> None:
    with pytest.raises(SettingsError):
        opened(Path(name))


def test_a_link_and_another_working_folder_lead_to_the_same_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(path)
    (path.parent / "elsewhere").mkdir()
    (path.parent / "link.db").symlink_to(path)
    monkeypatch.chdir(path.parent)

    with Database.open(Path("link.db")) as database:
        monkeypatch.chdir(path.parent / "elsewhere")
        thread = threading.Thread(target=note, args=[database, "kept"])
        thread.start()
        thread.join()

    assert opened(path) == ["kept"]


@pytest.mark.parametrize("content", [b"some notes\n" * 500, b"\0" * 5000, b"SQLite format 3\0"])
def test_another_file_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(StoreCorruptError):
        opened(path)

    assert path.read_bytes() == content


def test_a_damaged_file_is_refused(path: Path) -> None:
    opened(path)
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)

    with pytest.raises(StoreCorruptError, match="backup"):
        opened(path)


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    content = path.read_bytes()

    with pytest.raises(StoreCorruptError, match="another program"):
        opened(path)

    assert path.read_bytes() == content


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    opened(path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", 99)
    newer.close()
    content = path.read_bytes()

    with pytest.raises(StoreNewerError) as refused:
        opened(path)

    assert (refused.value.found, refused.value.known) == (99, schema.SCHEMA_VERSION)
    assert path.read_bytes() == content


def test_a_locked_file_is_unavailable(database: Database, path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailableError, match="another writer"):
        note(database, "second")

    other.close()
    assert notes(database) == ["first"]


def test_an_exclusively_locked_file_is_unavailable(path: Path) -> None:
    opened(path)
    other = apsw.Connection(str(path))
    other.pragma("locking_mode", "exclusive")
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreUnavailableError):
        opened(path)

    other.close()


def test_a_full_disk_changes_nothing(database: Database) -> None:
    connection = database.connection()
    connection.pragma("max_page_count", connection.pragma("page_count"))

    with pytest.raises(StoreFullError), database.write():
        connection.execute(
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
            " INSERT INTO tracking SELECT printf('%1000d', i), 1 FROM n"
        )

    assert notes(database) == ["first"]


def test_a_syntax_error_is_our_bug_and_passes(database: Database) -> None:
    with pytest.raises(apsw.SQLError), database.read() as connection:
        connection.execute("SELEKT 1")


# -- Reading only ------------------------------------------------------------


@pytest.mark.usefixtures("database")
def test_opened_for_reading_refuses_to_write(path: Path) -> None:
    with Database.open(path, read_only=True) as reader:
        assert notes(reader) == ["first"]
        with pytest.raises(StoreReadOnlyError):
            note(reader, "second")


def test_a_missing_file_can_not_be_read(path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="no such file"):
        opened(path, read_only=True)

    assert not path.exists()


def test_an_empty_file_can_not_be_read(path: Path) -> None:
    path.touch()

    with pytest.raises(StoreReadOnlyError):
        opened(path, read_only=True)


def test_a_reader_sees_what_a_writer_commits_later(database: Database, path: Path) -> None:
    with Database.open(path, read_only=True) as reader:
        before = notes(reader)
        note(database, "second")

        assert (before, notes(reader)) == (["first"], ["first", "second"])


# -- Transactions ------------------------------------------------------------


def test_a_write_inside_a_snapshot_is_a_bug(database: Database) -> None:
    with database.read(), pytest.raises(RuntimeError, match="inside a snapshot"):
        note(database, "second")


def test_a_read_left_in_the_middle_spoils_no_later_transaction(database: Database) -> None:
    def rows() -> Generator[object]:
        with database.read() as connection:
            yield from connection.execute("SELECT 1 UNION SELECT 2")

    with database.read():
        left = rows()
        next(left)
    left.close()

    note(database, "second")
    assert notes(database) == ["first", "second"]


def test_tells_whether_it_is_inside(database: Database) -> None:
    seen = [database.in_write, database.in_transaction]
    with database.read():
        seen += [database.in_write, database.in_transaction]
    with database.write(), database.read():
        seen += [database.in_write, database.in_transaction]

    assert seen == [False, False, False, True, True, True]


def test_calls_back_after_the_commit_only(database: Database) -> None:
    called = list[str]()

    with database.write():
        database.after_commit(lambda: called.append("committed"))
        before = list(called)
    with suppress(ZeroDivisionError), database.write():
        database.after_commit(lambda: called.append("rolled back"))
        raise ZeroDivisionError

    assert (before, called) == ([], ["committed"])


def test_can_not_be_used_after_it_was_closed(path: Path) -> None:
    with Database.open(path) as database:
        pass

    with pytest.raises(StoreClosedError):
        notes(database)
    with pytest.raises(StoreClosedError):
        note(database, "late")
