"""One SQLite file shared by threads, processes and forks, and left by one that was killed."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import apsw
import pytest
from tests.adapters.database_notes import note, notes, opened

from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import StoreClosedError, StoreUnavailableError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def database(path: Path) -> Generator[Database]:
    with Database.open(path, busy_timeout_s=0.2) as database:
        note(database, "first")
        yield database


# -- Threads -----------------------------------------------------------------


def test_a_threads_connection_ends_with_it(database: Database) -> None:
    threads = [threading.Thread(target=notes, args=[database]) for _ in range(5)]
    for thread in threads:
        thread.start()
        thread.join()
    gc.collect()

    assert len(database._threads) == 1


def test_closing_inside_a_transaction_lets_it_end(path: Path) -> None:
    with Database.open(path) as database, database.write() as connection:
        connection.execute("INSERT INTO tracking VALUES ('kept', 1)")
        database.close()

    assert opened(path) == ["kept"]


def test_closing_waits_for_nobody(path: Path) -> None:
    """A thread inside a transaction keeps its connection; it is closed when it ends."""
    inside, go_on = threading.Event(), threading.Event()

    def read(database: Database) -> None:
        with database.read():
            notes(database)
            inside.set()
            go_on.wait(10)

    with Database.open(path) as database:
        thread = threading.Thread(target=read, args=[database])
        thread.start()
        inside.wait(10)
    go_on.set()
    thread.join()
    gc.collect()

    assert [found.name for found in path.parent.iterdir()] == ["memory.db"]


# -- Processes ---------------------------------------------------------------


OPENS = (
    "import sys, pathlib\n"
    "from remembrancer.adapters.sqlite.database import Database\n"
    "sys.stdin.readline()\n"
    "with Database.open(pathlib.Path(sys.argv[1])) as database:\n"
    "    with database.write() as connection:\n"
    "        connection.execute('INSERT INTO tracking VALUES (?, 1)', (sys.argv[2],))\n"
)


def test_many_processes_may_be_the_first(path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS, str(path), str(number)], stdin=subprocess.PIPE, text=True
        )
        for number in range(6)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()

    assert [process.returncode for process in processes] == [0] * 6
    assert sorted(opened(path)) == ["0", "1", "2", "3", "4", "5"]


# -- Forks -------------------------------------------------------------------


def fork_without_hooks() -> int:
    """Fork as a library in C may: the interpreter isn't told."""
    pid: int = ctypes.PyDLL(None).fork()  # The interpreter's lock is kept over it.
    return pid


def forked(act: Callable[[], None], fork: Callable[[], int] = os.fork) -> int:
    """Run ``act`` in a child of a fork; return its process id."""
    pid = fork()
    if not pid:
        try:
            act()
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
            os._exit(1)
        os._exit(0)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_reads_and_writes(database: Database) -> None:
    child = forked(lambda: note(database, "child's"))

    assert exit_code(child) == 0
    note(database, "parent's")
    assert sorted(notes(database)) == ["child's", "first", "parent's"]


def test_a_childs_commit_outlives_the_parents_closing(path: Path) -> None:
    """The parent would delete the log under the child if SQLite trusted inherited locks."""
    closed, go_on = os.pipe()

    def act(database: Database) -> None:
        note(database, "before")
        os.read(closed, 1)
        note(database, "after")

    with Database.open(path) as database:
        notes(database)
        child = forked(partial(act, database))
    os.write(go_on, b"x")
    code = exit_code(child)

    assert code == 0
    assert opened(path) == ["after", "before"]


@pytest.mark.parametrize("fork", [os.fork, fork_without_hooks])
def test_a_child_does_not_commit_the_parents_transaction(
    database: Database, fork: Callable[[], int]
) -> None:
    def act() -> None:
        with pytest.raises(StoreUnavailableError, match="forked inside a transaction"):
            note(database, "child's")
        database.close()

    with suppress(ZeroDivisionError), database.write() as connection:
        connection.execute("INSERT INTO tracking VALUES ('half', 1)")
        child = forked(act, fork)
        code = exit_code(child)
        raise ZeroDivisionError

    assert code == 0
    assert notes(database) == ["first"]


def test_a_child_that_leaves_a_borrowed_connection_has_one_of_its_own(database: Database) -> None:
    spare, own = database.spare(), database.connection()
    lent = database.lend(spare)
    lent.__enter__()

    def leaves_it() -> None:
        lent.__exit__(None, None, None)
        assert database.connection() not in {own, spare.connection}
        note(database, "child's")

    child = forked(leaves_it)
    lent.__exit__(None, None, None)

    assert exit_code(child) == 0
    assert database.connection() is own
    assert sorted(notes(database)) == ["child's", "first"]


def test_nobody_borrows_from_a_closed_database(path: Path) -> None:
    with Database.open(path) as database:
        pass

    with pytest.raises(StoreClosedError):
        database.spare()


def test_what_was_lent_as_the_database_was_closed_ends_with_its_use(path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()
    with Database.open(path) as database, ThreadPoolExecutor(1) as pool:
        spare = database.spare()

        def borrow() -> None:
            with database.lend(spare), database.write() as connection:
                inside.set()
                assert go_on.wait(10)
                connection.execute("INSERT INTO tracking VALUES ('kept', 1)")

        borrowed = pool.submit(borrow)
        assert inside.wait(10)
        database.close()
        go_on.set()
        borrowed.result(10)

        with pytest.raises(apsw.ConnectionClosedError):
            spare.connection.pragma("user_version")
    assert list(path.parent.iterdir()) == [path]
    assert opened(path) == ["kept"]


def test_a_fork_waits_for_another_threads_transaction(database: Database) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with database.write() as connection:
            connection.execute("INSERT INTO tracking VALUES ('threads', 1)")
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait(10)
    threading.Timer(0.05, go_on.set).start()
    child = forked(lambda: note(database, "child's"))
    code = exit_code(child)
    thread.join()

    assert code == 0
    assert sorted(notes(database)) == ["child's", "first", "threads"]


# -- Killed ------------------------------------------------------------------


WRITES = (
    "import sys, pathlib\n"
    "from remembrancer.adapters.sqlite.database import Database\n"
    "with Database.open(pathlib.Path(sys.argv[1])) as database:\n"
    "    for number in range(10**6):\n"
    "        with database.write() as connection:\n"
    "            for half in 'ab':\n"
    "                connection.execute('INSERT INTO tracking VALUES (?, 1)',"
    " (f'{number:06}{half}',))\n"
    "        print(number, flush=True)\n"
)


@pytest.mark.parametrize("acknowledged", [0, 1, 7, 40, 150])
def test_a_killed_writer_loses_nothing_it_acknowledged(path: Path, acknowledged: int) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= acknowledged:
            break
    writer.send_signal(signal.SIGKILL)
    said, _ = writer.communicate()
    last = max([acknowledged, *(int(number) for number in said.split()[:-1])])

    found = opened(path)

    assert found[: 2 * (last + 1)] == [f"{i:06}{half}" for i in range(last + 1) for half in "ab"]
    assert len(found) % 2 == 0


@pytest.mark.slow
@pytest.mark.parametrize("acknowledged", range(3, 600, 17))
def test_a_killed_writer_loses_nothing_whenever(path: Path, acknowledged: int) -> None:
    test_a_killed_writer_loses_nothing_it_acknowledged(path, acknowledged)
