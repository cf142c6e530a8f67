"""Transactions that are interrupted wherever Python looks for signals, or ended elsewhere."""

import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType

import apsw
import pytest
from tests.adapters.database_notes import notes

from remembrancer.adapters.sqlite import database as database_module
from remembrancer.adapters.sqlite import (
    files_in_place,
    heads,
    thread_state,
    thread_transaction,
)
from remembrancer.adapters.sqlite.database import Database
from remembrancer.domain.errors import StoreUnavailableError

Begin = Callable[[Database], AbstractContextManager[apsw.Connection]]

EACH_KIND = pytest.mark.parametrize(
    "begin", [Database.read, Database.write], ids=["snapshot", "write"]
)


OURS = {
    one.__file__
    for one in (database_module, thread_transaction, thread_state, files_in_place, heads)
}


class Interrupts:
    """Raises at one moment: on the way into a function of ours, or out of a call of C."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, _called: object) -> None:
        if frame.f_code.co_filename not in OURS or event not in {"call", "c_return"}:
            return
        # An object's end doesn't pass on what is raised in it.
        if frame.f_code.co_name == "__del__":
            return
        self.left -= 1
        if self.left < 0:
            sys.setprofile(None)
            raise KeyboardInterrupt


@contextmanager
def interrupted(number: int) -> Generator[Interrupts]:
    interrupts = Interrupts(number)
    sys.setprofile(interrupts)
    try:
        yield interrupts
    finally:
        sys.setprofile(None)


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "memory.db", busy_timeout_s=0.05) as database:
        yield database


def each_interrupt(run: Callable[[], object]) -> Generator[None]:
    """Run once for each moment; end with a run that met none."""
    for number in count():
        with suppress(KeyboardInterrupt), interrupted(number) as interrupts:
            run()
        if interrupts.left >= 0:
            assert number > 3, "there was nothing to interrupt"
            return
        yield


def write(database: Database) -> None:
    with database.write() as connection:
        connection.execute("INSERT OR REPLACE INTO tracking VALUES ('a', 1)")


@EACH_KIND
def test_an_interrupt_leaves_no_transaction_behind(database: Database, begin: Begin) -> None:
    def run() -> None:
        with begin(database):
            pass

    for _ in each_interrupt(run):
        assert not database.in_transaction
        assert not database.connection().in_transaction
        with Database.open(database.path, busy_timeout_s=0.05) as another:
            write(another)
        with ThreadPoolExecutor(1) as pool:  # A lock that is kept is the thread's own.
            pool.submit(write, database).result(10)
        write(database)


@EACH_KIND
def test_an_interrupt_beside_an_error_leaves_none_behind(database: Database, begin: Begin) -> None:
    def run() -> None:
        with suppress(LookupError), begin(database):
            raise LookupError

    for _ in each_interrupt(run):
        assert not database.in_transaction
        with ThreadPoolExecutor(1) as pool:
            pool.submit(write, database).result(10)
        write(database)


def test_an_interrupt_of_scrubbing_keeps_no_lock(database: Database) -> None:
    for _ in each_interrupt(database.scrub):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(write, database).result(10)
        write(database)


def test_an_interrupt_beside_another_process_keeps_no_lock(tmp_path: Path) -> None:
    with Database.open(tmp_path / "memory.db", busy_timeout_s=0.003) as database:
        other = apsw.Connection(str(database.path))

        def run() -> None:
            other.execute("BEGIN IMMEDIATE")
            try:
                with suppress(StoreUnavailableError):
                    write(database)
            finally:
                other.execute("ROLLBACK")

        for _ in each_interrupt(run):
            assert not database.connection().in_transaction
            with ThreadPoolExecutor(1) as pool:
                pool.submit(write, database).result(10)
        other.close()


# -- Ended by another thread than the one that began ---------------------------


def close(block: Generator[None]) -> None:
    block.close()


def go_on(block: Generator[None]) -> None:
    for _ in block:
        pass


def drop(block: Generator[None]) -> None:
    """Nothing: its last reference goes with the caller's frame."""


@EACH_KIND
@pytest.mark.parametrize("end", [close, go_on, drop])
@pytest.mark.parametrize("begun_by", ["gone", "alive"])
def test_a_block_that_another_thread_ends_keeps_no_lock(
    database: Database, begin: Begin, end: Callable[[Generator[None]], None], begun_by: str
) -> None:
    def begun() -> Generator[None]:
        block = in_block(database, begin)
        next(block)
        return block

    with ThreadPoolExecutor(1) as first:
        blocks = [first.submit(begun).result(10)]
        if begun_by == "gone":
            first.shutdown()
        end(blocks.pop())

        write(database)
        if begun_by == "alive":
            first.submit(write, database).result(10)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(write, database).result(10)
        assert database.scrub()
    database.pause(0.05)
    database.resume()


def test_what_another_thread_ended_is_committed(database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:
        block = in_block(database, Database.write)
        pool.submit(next, block).result(10)

    go_on(block)

    with Database.open(database.path) as another:
        assert notes(another) == ["written"]


def test_a_joined_block_of_a_transaction_that_is_over_is_refused(database: Database) -> None:
    with database.write():
        joined = database.write()

    with pytest.raises(RuntimeError, match="is over"), joined:
        pass


def in_block(database: Database, begin: Begin) -> Generator[None]:
    with begin(database) as connection:
        if database.in_write:
            connection.execute("INSERT OR REPLACE INTO tracking VALUES ('written', 1)")
        yield
