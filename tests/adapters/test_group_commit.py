"""Several threads' work in one commit: what one of them does to the others."""

import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.group_commit import GroupCommit
from remembrancer.adapters.sqlite.ledger_repository import SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import FIRST_ID, SECOND_ID, Spender, admission
from remembrancer.domain.errors import (
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

WAIT_S = 10

Note = Callable[[apsw.Connection], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def database(path: Path) -> Generator[Database]:
    with Database.open(path) as database:
        yield database


@pytest.fixture
def group(database: Database) -> GroupCommit:
    return GroupCommit(database=database)


def note(name: str) -> Note:
    def call(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO tracking VALUES (?, 1)", (name,))

    return call


def notes(database: Database) -> list[str]:
    with database.read() as connection:
        rows = connection.execute("SELECT application_name FROM tracking ORDER BY 1")
        return [row[0] for row in rows]


class Held:
    """A leader that stands inside its own work until it is let go, and others behind it."""

    def __init__(self, group: GroupCommit, pool: ThreadPoolExecutor) -> None:
        self._group = group
        self._pool = pool
        self._inside, self.go = threading.Event(), threading.Event()
        self.leader: Future[None] = pool.submit(group.run, self._stand)
        assert self._inside.wait(WAIT_S)

    def follow(self, work: Note) -> "Future[None]":
        before = len(self._group._queue)
        future = self._pool.submit(self._group.run, work)
        while len(self._group._queue) == before:
            os.sched_yield()
        return future

    def _stand(self, connection: apsw.Connection) -> None:
        note("leader")(connection)
        self._inside.set()
        assert self.go.wait(WAIT_S)


@pytest.fixture
def held(group: GroupCommit) -> Generator[Held]:
    with ThreadPoolExecutor(8) as pool:
        held = Held(group, pool)
        try:
            yield held
        finally:
            held.go.set()


def test_who_waits_is_committed_with_the_leader(held: Held, database: Database) -> None:
    before = database.connection().pragma("data_version")
    everyone = [held.leader, *(held.follow(note(f"follower-{i}")) for i in range(3))]

    held.go.set()

    assert [one.result(WAIT_S) for one in everyone] == [None] * 4
    assert database.connection().pragma("data_version") == before + 1
    assert len(notes(database)) == 4


def test_an_error_of_one_leaves_the_others_alone(held: Held, database: Database) -> None:
    def fails(_: apsw.Connection) -> None:
        raise ZeroDivisionError

    failing, other = held.follow(fails), held.follow(note("other"))
    held.go.set()

    assert isinstance(failing.exception(WAIT_S), ZeroDivisionError)
    assert (held.leader.result(WAIT_S), other.result(WAIT_S)) == (None, None)
    assert notes(database) == ["leader", "other"]


def test_an_interrupt_of_ones_work_is_that_ones(held: Held, database: Database) -> None:
    def interrupted(_: apsw.Connection) -> None:
        raise KeyboardInterrupt

    failing, other = held.follow(interrupted), held.follow(note("other"))
    held.go.set()

    assert isinstance(failing.exception(WAIT_S), KeyboardInterrupt)
    assert (held.leader.result(WAIT_S), other.result(WAIT_S)) == (None, None)
    assert notes(database) == ["leader", "other"]


def test_a_full_disk_fails_the_one_that_fills_it(held: Held, database: Database) -> None:
    def fills(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", connection.pragma("page_count"))
        try:
            with database.attempt():
                connection.execute(
                    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
                    " INSERT INTO tracking SELECT printf('%1000d', i), 1 FROM n"
                )
        finally:
            connection.pragma("max_page_count", 1_000_000)

    failing, other = held.follow(fills), held.follow(note("other"))
    held.go.set()

    assert isinstance(failing.exception(WAIT_S), StoreFullError)
    assert (held.leader.result(WAIT_S), other.result(WAIT_S)) == (None, None)
    assert notes(database) == ["leader", "other"]


def test_what_rolls_all_back_fails_all(held: Held, database: Database) -> None:
    """SQLite does so by itself after some errors of the disk."""

    def rolls_back(connection: apsw.Connection) -> None:
        with database.attempt():
            connection.execute("ROLLBACK")
            raise apsw.FullError

    failing, other = held.follow(rolls_back), held.follow(note("other"))
    held.go.set()

    for one in (held.leader, failing, other):
        assert isinstance(one.exception(WAIT_S), StoreFullError)
    assert notes(database) == []


def test_a_lock_that_is_not_had_fails_all_who_waited(path: Path) -> None:
    with Database.open(path, busy_timeout_s=0.05) as database:
        group = GroupCommit(database=database)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreUnavailableError):
            group.run(note("first"))

        other.execute("COMMIT")
        other.close()
        group.run(note("second"))
        assert notes(database) == ["second"]


def test_a_wait_in_the_main_thread_can_be_interrupted(
    held: Held, group: GroupCommit, database: Database
) -> None:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        group.run(note("interrupted"))

    follower = held.follow(note("follower"))
    held.go.set()
    assert (held.leader.result(WAIT_S), follower.result(WAIT_S)) == (None, None)
    group.run(note("main"))
    assert notes(database) == ["follower", "leader", "main"]


def test_inside_a_transaction_is_a_bug(group: GroupCommit, database: Database) -> None:
    with database.read(), pytest.raises(RuntimeError):
        group.run(note("inside"))


def test_many_threads_are_all_served(group: GroupCommit, database: Database) -> None:
    def writes(number: int) -> None:
        for i in range(20):
            group.run(note(f"{number}-{i}"))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(writes, range(16)))

    assert len(notes(database)) == 320


# -- The repository over it --------------------------------------------------


def repository(database: Database) -> SqliteLedgerRepository:
    log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
    return SqliteLedgerRepository(database=database, log=log, clock=FixedClock())


def test_a_forked_child_decides_while_the_parents_threads_do(database: Database) -> None:
    ledgers = repository(database)
    inside, go = threading.Event(), threading.Event()

    def slow(held: HeldLedger) -> object:
        inside.set()
        assert go.wait(WAIT_S)
        return admission(FIRST_ID)(held)

    with ThreadPoolExecutor(1) as pool:
        parents = pool.submit(ledgers.decide, "acme", "ana", slow)
        assert inside.wait(WAIT_S)
        threading.Timer(0.05, go.set).start()
        child = os.fork()
        if not child:
            try:
                Spender(ledgers).admit(SECOND_ID)
            except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
                os._exit(1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        parents.result(WAIT_S)

    assert code == 0
    assert Spender(ledgers).days()[0].requests == 2


class BrokenDisk(apsw.VFS):
    """Passes everything on to the real file system, until syncing the log is to fail."""

    NAME = "broken"

    def __init__(self) -> None:
        self.broken = False
        super().__init__(self.NAME, base="unix", makedefault=True)

    @override
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "BrokenFile":
        return BrokenFile(self, name, flags)


class BrokenFile(apsw.VFSFile):
    def __init__(
        self, disk: BrokenDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    @override
    def xSync(self, flags: int) -> None:
        if self._disk.broken:
            raise apsw.IOError("the disk is broken")
        super().xSync(flags)


@contextmanager
def broken_disk() -> Generator[BrokenDisk]:
    disk = BrokenDisk()
    try:
        yield disk
    finally:
        disk.unregister()


def test_a_commit_that_is_not_confirmed_may_stand(path: Path) -> None:
    with broken_disk() as disk, Database.open(path) as database:
        ana = Spender(repository(database))
        ana.admit(FIRST_ID)
        disk.broken = True

        with pytest.raises(OutcomeUnknownError, match="look for its id") as raised:
            ana.admit(SECOND_ID)

        disk.broken = False
        assert isinstance(raised.value.__cause__, StoreError)
        stands = ana.receipt(SECOND_ID) is not None
        assert ana.admit(SECOND_ID).repeated == stands
        assert ana.days()[0].requests == 2
