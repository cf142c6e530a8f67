"""Several owners' decisions in one commit: what one of them does to the others."""

import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import apsw
import pytest

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.ledger_repository import SNAPSHOT_EVERY, SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import FIRST_ID, SECOND_ID, Spender, admission
from remembrancer.domain.reservation import ReservationState

WAIT_S = 10


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        yield database


def repository(database: Database) -> SqliteLedgerRepository:
    log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
    return SqliteLedgerRepository(database=database, log=log, clock=FixedClock())


def settlement(reservation_id: UUID) -> Callable[[HeldLedger], object]:
    return lambda held: held.ledger.settle(
        reservation_id,
        charged_quanta=3,
        usage_tokens=7,
        earlier=held.find(reservation_id),
        at=held.now,
    )


class DecidesTogether:
    """Owners' decisions that meet in one group, behind a leader that waits for them."""

    def __init__(self, ledgers: SqliteLedgerRepository, pool: ThreadPoolExecutor) -> None:
        self._ledgers = ledgers
        self._pool = pool
        self._queue = ledgers._group._queue
        self._inside, self.go = threading.Event(), threading.Event()
        self.leader = self._decide("leader", self._stand)
        assert self._inside.wait(WAIT_S)

    def follow(self, owner: str, decision: Callable[[HeldLedger], object]) -> "Future[object]":
        before = len(self._queue)
        future = self._decide(owner, decision)
        while len(self._queue) == before:
            os.sched_yield()
        return future

    def _decide(self, owner: str, decision: Callable[[HeldLedger], object]) -> "Future[object]":
        return self._pool.submit(self._ledgers.decide, "acme", owner, decision)

    def _stand(self, held: HeldLedger) -> None:
        admission(FIRST_ID)(held)
        self._inside.set()
        assert self.go.wait(WAIT_S)


@pytest.fixture
def together(database: Database) -> Generator[DecidesTogether]:
    ledgers = repository(database)
    for owner in ("leader", "ana", "ben"):  # Threads that lead know these ledgers afterwards.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(Spender(ledgers, owner).admit, UUID(int=99)).result(WAIT_S)
    with ThreadPoolExecutor(8) as pool:
        together = DecidesTogether(ledgers, pool)
        try:
            yield together
        finally:
            together.go.set()


def test_what_can_not_be_written_leaves_other_owners_alone(
    together: DecidesTogether, database: Database
) -> None:
    def admits_again(held: HeldLedger) -> object:
        with_blind_eyes = HeldLedger(held.ledger, held.now, lambda _: None)
        return admission(SECOND_ID)(with_blind_eyes)

    before = together.follow("ana", admission(SECOND_ID))
    settled = together.follow("ana", settlement(SECOND_ID))
    failing = together.follow("ana", admits_again)
    other = together.follow("ben", admission(FIRST_ID))
    together.go.set()

    assert isinstance(failing.exception(WAIT_S), apsw.ConstraintError)
    for one in (together.leader, before, settled, other):
        assert one.exception(WAIT_S) is None
    again = Spender(repository(database)).admit(SECOND_ID)
    assert (again.repeated, again.reservation.state) == (True, ReservationState.SETTLED)
    assert Spender(repository(database), "ben").state(FIRST_ID) is ReservationState.PENDING


def test_an_owners_decisions_in_one_group_follow_each_other(
    together: DecidesTogether, database: Database
) -> None:
    before = database.connection().pragma("data_version")
    numbers = [UUID(int=number) for number in range(3)]
    everyone = [
        together.follow("ana", decision)
        for number in numbers
        for decision in (admission(number), settlement(number))
    ]

    together.go.set()

    assert [one.exception(WAIT_S) for one in everyone] == [None] * 6
    assert database.connection().pragma("data_version") == before + 1
    assert Spender(repository(database)).days()[0].charged_quanta == 3 * 3 + 10


def test_a_decision_that_fails_is_not_met_by_the_next_of_its_owner(
    together: DecidesTogether, database: Database
) -> None:
    def fails(held: HeldLedger) -> object:
        admission(FIRST_ID)(held)
        raise ZeroDivisionError

    failing = together.follow("ana", fails)
    next_one = together.follow("ana", admission(SECOND_ID))
    together.go.set()

    assert isinstance(failing.exception(WAIT_S), ZeroDivisionError)
    assert next_one.exception(WAIT_S) is None
    ana = Spender(repository(database))
    assert (ana.state(FIRST_ID), ana.days()[0].requests) == (None, 2)


def test_a_snapshot_that_went_with_anothers_failure_is_kept_by_the_second_attempt(
    database: Database,
) -> None:
    ledgers = repository(database)
    last = UUID(int=7)
    for owner in ("ben", "ana"):  # Up to one event before a snapshot is due.
        for number in range(8):
            ledgers.decide("acme", owner, admission(UUID(int=number)))
            if number < last.int:
                ledgers.decide("acme", owner, settlement(UUID(int=number)))
    database.connection().execute(
        "CREATE TRIGGER no_room BEFORE INSERT ON ledger_snapshots WHEN NEW.owner = 'ana'"
        " BEGIN SELECT RAISE(ABORT, 'no room'); END"
    )
    with ThreadPoolExecutor(8) as pool:
        together = DecidesTogether(ledgers, pool)
        due, failing = (together.follow(owner, settlement(last)) for owner in ("ben", "ana"))
        together.go.set()

        assert isinstance(failing.exception(WAIT_S), apsw.ConstraintError)
        assert due.exception(WAIT_S) is None

    kept = "SELECT version FROM ledger_snapshots WHERE owner = 'ben'"
    assert database.connection().execute(kept).get == SNAPSHOT_EVERY
