"""A file that is audited stays as it is, whatever state it is in and whoever else has it open."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest
from tests.adapters.database_notes import note
from tests.adapters.somebody_else import as_somebody_else

from remembrancer.adapters.sqlite.audit_file import AuditFile, open_for_audit
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import (
    SettingsError,
    StoreCorruptError,
    StoreForbiddenError,
    StoreUnavailableError,
)

Look = dict[str, tuple[int, int, bytes]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder / "memory.db"


def look(folder: Path) -> Look:
    """Return size, time of change and bytes of every file."""
    return {
        one.name: (one.stat().st_size, one.stat().st_mtime_ns, one.read_bytes())
        for one in folder.iterdir()
    }


def count(file: AuditFile) -> int:
    """Return how many notes are in it."""
    found: int = file.connection.execute("SELECT count(*) FROM tracking").get
    return found


def closed(path: Path, notes: int = 1) -> None:
    """Leave a file that was closed in order."""
    with Database.open(path) as database:
        for number in range(notes):
            note(database, f"note {number}")


@contextmanager
def crashed(path: Path) -> Generator[Path]:
    """Yield a copy of a file whose host is gone, its last commits in the log alone."""
    copy = path.parent.parent / "copy"
    copy.mkdir()
    with Database.open(path) as database:
        note(database, "in the file")
        database.connection().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        note(database, "in the log")
        for name in (path.name, f"{path.name}-wal"):
            shutil.copy2(path.with_name(name), copy / name)
    yield copy / path.name


# -- Nothing changes ---------------------------------------------------------


def test_a_closed_file_is_read_without_a_trace(path: Path) -> None:
    closed(path)
    before = look(path.parent)

    with open_for_audit(path) as file:
        assert count(file) == 1
        assert look(path.parent) == before
        assert not file.was_written()

    assert look(path.parent) == before


def test_commits_in_the_log_of_a_crashed_host_are_read_without_a_trace(path: Path) -> None:
    with crashed(path) as copy:
        before = look(copy.parent)

        with open_for_audit(copy) as file:
            assert count(file) == 2
            assert look(copy.parent) == before

        assert look(copy.parent) == before


def test_an_index_of_the_log_that_nobody_holds_is_left_alone(path: Path) -> None:
    with crashed(path) as copy:
        copy.with_name(f"{copy.name}-shm").write_bytes(bytes(32_768))
        before = look(copy.parent)

        with open_for_audit(copy) as file:
            assert count(file) == 2

        assert look(copy.parent) == before


def test_of_an_open_store_neither_file_nor_log_changes(path: Path) -> None:
    with Database.open(path) as database:
        note(database, "first")
        before = look(path.parent)

        with open_for_audit(path, is_ours=True) as file:
            assert count(file) == 1

        after = look(path.parent)
        assert {name: after[name] for name in ("memory.db", "memory.db-wal")} == {
            name: before[name] for name in ("memory.db", "memory.db-wal")
        }
        assert after.keys() == before.keys()
        note(database, "second")  # No lock was lost, none is left.


def test_it_is_read_as_warily_as_a_host_reads_it(path: Path) -> None:
    with Database.open(path) as database:
        hosts = database.connection()
        with open_for_audit(path, is_ours=True) as file:
            for name in ("trusted_schema", "cell_size_check", "temp_store", "mmap_size"):
                assert file.connection.pragma(name) == hosts.pragma(name), name
            assert file.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)


def test_writing_is_refused(path: Path) -> None:
    closed(path)

    with open_for_audit(path) as file, pytest.raises(apsw.ReadOnlyError):
        file.connection.execute("DELETE FROM tracking")


# -- Others at the same file -------------------------------------------------

HOST = """
import sys
from pathlib import Path
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.adapters.sqlite.database import Database
with Database.open(Path(sys.argv[1])) as database:
    for word in ("first", "second"):
        with database.write() as connection:
            connection.execute("INSERT INTO tracking VALUES (?, 1)", (word,))
        print(word, flush=True)
        sys.stdin.readline()
"""


@pytest.fixture
def host(path: Path) -> Generator[subprocess.Popen[str]]:
    """Run another process that has the store open and writes when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process


def said(host: "subprocess.Popen[str]", word: str) -> None:
    assert host.stdout is not None
    assert host.stdout.readline() == f"{word}\n"


def told_to_go_on(host: "subprocess.Popen[str]") -> None:
    assert host.stdin is not None
    host.stdin.write("\n")
    host.stdin.flush()


def test_a_store_that_another_process_has_open_is_read_under_its_locks(
    path: Path, host: "subprocess.Popen[str]"
) -> None:
    said(host, "first")

    with open_for_audit(path) as file:
        seen = [count(file)]
        told_to_go_on(host)
        said(host, "second")
        seen.append(count(file))
        assert not file.was_written()

    assert seen == [1, 1]
    with open_for_audit(path) as file:
        assert count(file) == 2
    told_to_go_on(host)


def test_a_host_that_comes_meanwhile_is_noticed(path: Path) -> None:
    """Nobody had the file open, so no lock keeps writers out."""
    closed(path)

    with open_for_audit(path) as file:
        with Database.open(path) as database:
            note(database, "while it is read")

        assert file.was_written()


# -- What can't be opened ----------------------------------------------------


def test_a_missing_file_is_unavailable(path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="no such file"), open_for_audit(path):
        pass

    assert list(path.parent.iterdir()) == []


def test_a_folder_is_refused(path: Path) -> None:
    with pytest.raises(SettingsError), open_for_audit(path.parent):
        pass


@pytest.mark.parametrize("content", [b"not a database, whatever its name says " * 50])
def test_what_is_no_database_is_corrupt(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(StoreCorruptError), open_for_audit(path):
        pass


def test_a_truncated_file_is_corrupt(path: Path) -> None:
    closed(path, notes=200)
    os.truncate(path, path.stat().st_size // 2)

    with pytest.raises(StoreCorruptError), SqliteAuditSource.open(path) as source:
        list(source.faults())


@contextmanager
def read_only_media(folder: Path) -> Generator[None]:
    """Let nobody but root write in a folder, and everybody reach it."""
    for outer in list(folder.parents)[:-2]:
        with suppress(PermissionError):
            outer.chmod(outer.stat().st_mode | 0o055)
    for one in folder.iterdir():
        one.chmod(0o444)
    folder.chmod(0o555)
    yield
    folder.chmod(0o755)


def test_a_closed_file_is_read_on_read_only_media(path: Path) -> None:
    closed(path)

    def read() -> None:
        with open_for_audit(path) as file:
            assert count(file) == 1

    with read_only_media(path.parent):
        assert as_somebody_else(read) == 0


def test_a_log_with_commits_is_read_on_read_only_media(path: Path) -> None:
    """Where SQLite's own reading fails, and ignoring the log would lose its end unseen."""
    with crashed(path) as copy:

        def read() -> None:
            with open_for_audit(copy) as file:
                assert count(file) == 2

        with read_only_media(copy.parent):
            assert as_somebody_else(read) == 0


def test_an_unreadable_file_is_forbidden(path: Path) -> None:
    closed(path)
    path.chmod(0)

    def read() -> None:
        with pytest.raises(StoreForbiddenError), open_for_audit(path):
            pass

    with read_only_media_of(path):
        assert as_somebody_else(read) == 0


@contextmanager
def read_only_media_of(path: Path) -> Generator[None]:
    """As :func:`read_only_media`, but nobody may read the file either."""
    with read_only_media(path.parent):
        path.chmod(0)
        yield
