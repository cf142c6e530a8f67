"""Transactions that are interrupted wherever Python looks for signals."""

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType

import apsw
import pytest

from remembrancer.adapters.sqlite import thread_transaction
from remembrancer.adapters.sqlite.database import Database

Begin = Callable[[Database], AbstractContextManager[apsw.Connection]]

EACH_KIND = pytest.mark.parametrize(
    "begin", [Database.read, Database.write], ids=["snapshot", "write"]
)


class Interrupts:
    """Raises at one moment: on the way into a function of the module, or out of a call of C."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, called: object) -> None:
        if frame.f_code.co_filename != thread_transaction.__file__:
            return
        # A lock that was just acquired can't be told from one that wasn't; nor does an object's
        # end pass on what is raised in it.
        name = getattr(called, "__name__", "")
        if event not in {"call", "c_return"} or "acquire" in name:
            return
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


def each_interrupt(run: Callable[[], None]) -> Generator[None]:
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
        write(database)


@EACH_KIND
def test_an_interrupt_beside_an_error_leaves_none_behind(database: Database, begin: Begin) -> None:
    def run() -> None:
        with suppress(LookupError), begin(database):
            raise LookupError

    for _ in each_interrupt(run):
        assert not database.in_transaction
        write(database)
