"""What ledger repositories promise that processes share, and that outlive them.

The other processes open the adapter by the enrolment's own ``opened``: they run its test file by
its path, so an enrolment must not depend on fixtures or on other test modules.
"""

import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.ledger_repository import LedgerRepositoryContract
from remembrancer.contracts.ledger_repository_model import OpenLedgers
from remembrancer.contracts.ledger_repository_owners import at_once, gets_in
from remembrancer.contracts.spending import (
    FIRST_ID,
    LEASE,
    MORNING,
    QUERY,
    SECOND,
    SECOND_ID,
    Spender,
    recorded,
    require_within_ceilings,
)
from remembrancer.domain.reservation import ReservationKind, ReservationState
from remembrancer.domain.spend_errors import QueryPendingError, ReservationUnknownError

PROCESSES = 2
THREADS_EACH = 8

_CHILD = (
    "import runpy, sys\n"
    "from remembrancer.contracts import ledger_repository_durable as contract\n"
    "file, suite, folder, *wanted = sys.argv[1:]\n"
    "contract.act(runpy.run_path(file)[suite]().opened, folder, *wanted)\n"
)


class DurableLedgerRepositoryContract(LedgerRepositoryContract):
    """Subclass this one if ``opened`` finds in a folder what was committed there before."""

    def test_an_admission_outlives_its_process(self, tmp_path: Path, clock: FixedClock) -> None:
        """The test that fails without durable admission before egress."""
        with self.child(tmp_path, "queries", "0", "1") as child:
            assert told(child) == [True]
            child.send_signal(signal.SIGKILL)

        with self.opened(tmp_path, clock) as store:
            assert Spender(store.ledgers).state(UUID(int=0)) is ReservationState.PENDING
            assert len(recorded(store.log)) == 1

    def test_a_killed_processes_lease_lives_to_its_end_and_is_then_unknown(
        self, tmp_path: Path, clock: FixedClock
    ) -> None:
        with self.child(tmp_path, "queries", "0", "1") as child:
            told(child)
            child.send_signal(signal.SIGKILL)

        with self.opened(tmp_path, clock) as store:
            ana = Spender(store.ledgers)
            clock.advance(LEASE - SECOND)
            with pytest.raises(QueryPendingError):
                ana.admit(SECOND_ID, kind=QUERY)
            clock.advance(2 * SECOND)
            ana.admit(SECOND_ID, kind=QUERY, charge=10)
            with pytest.raises(ReservationUnknownError):
                ana.settle(UUID(int=0))
            old, new = ana.receipt(UUID(int=0)), ana.receipt(SECOND_ID)

        assert old is not None
        assert new is not None
        assert (old.state, old.charged_quanta) == (ReservationState.UNKNOWN, 10)
        assert new.state is ReservationState.PENDING

    @pytest.mark.parametrize("kind", ["queries", "indexing"])
    def test_the_last_slot_is_given_once_over_processes(
        self, tmp_path: Path, clock: FixedClock, kind: str
    ) -> None:
        """Room for one more charge; sixteen threads in two processes ask for it at a barrier."""
        with self.opened(tmp_path, clock) as store:
            Spender(store.ledgers).admit(UUID(int=99), charge=90)

        admitted = self.raced(tmp_path, kind)

        assert sorted(admitted) == [False] * (PROCESSES * THREADS_EACH - 1) + [True]
        with self.opened(tmp_path, clock) as store:
            events = recorded(store.log)
            require_within_ceilings(events)
            assert len(events) == 2
            assert Spender(store.ledgers).days()[0].charged_quanta == 100

    def test_many_processes_may_be_the_first_of_an_owner(
        self, tmp_path: Path, clock: FixedClock
    ) -> None:
        admitted = self.raced(tmp_path, "queries")

        assert sorted(admitted) == [False] * (PROCESSES * THREADS_EACH - 1) + [True]
        with self.opened(tmp_path, clock) as store:
            assert len(recorded(store.log)) == 1

    def test_processes_see_what_others_decided(self, tmp_path: Path, clock: FixedClock) -> None:
        with self.opened(tmp_path, clock) as store:
            ana = Spender(store.ledgers)
            ana.admit(FIRST_ID)
            with self.child(tmp_path, "indexing", "5", "3") as child:
                assert told(child) == [True] * 3
                say_go(child)

            ana.settle(FIRST_ID, charge=1)
            ana.settle(UUID(int=6), charge=2)

            assert ana.days()[0].charged_quanta == 1 + 2 + 10 + 10

    def test_what_expired_in_another_process_is_unknown_in_this_one(
        self, tmp_path: Path, clock: FixedClock
    ) -> None:
        with self.opened(tmp_path, clock) as store:
            ana = Spender(store.ledgers)
            ana.admit(FIRST_ID, kind=QUERY)
            later = MORNING + LEASE
            with self.child(tmp_path, "queries", "5", "1", at=later.isoformat()) as child:
                assert told(child) == [True]
                say_go(child)
            clock.advance(timedelta(seconds=1))  # This process's view of time is behind.

            with pytest.raises(ReservationUnknownError):
                ana.settle(FIRST_ID)

            assert ana.state(FIRST_ID) is ReservationState.UNKNOWN

    # -- How ---------------------------------------------------------------

    def raced(self, folder: Path, kind: str) -> list[bool]:
        """Let processes ask at a barrier; return who got in."""
        children = [
            self.child(folder, kind, str(THREADS_EACH * i), str(THREADS_EACH), waits=True)
            for i in range(PROCESSES)
        ]
        for child in children:
            assert told(child) == "ready"
        for child in children:
            say_go(child)
        admitted = [one for child in children for one in told(child)]
        for child in children:
            child.communicate("go\n")
        return admitted

    def child(
        self,
        folder: Path,
        kind: str,
        first: str,
        threads: str,
        *,
        waits: bool = False,
        at: str = MORNING.isoformat(),
    ) -> "subprocess.Popen[str]":
        """Start a process that asks with this many threads and then waits to be let go."""
        suite = type(self)
        opening = [inspect.getfile(suite), suite.__name__, str(folder)]
        wanted = [kind, first, threads, at, "waits" if waits else ""]
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, *opening, *wanted],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TZ": "Asia/Tokyo"},
        )


def act(opened: OpenLedgers, folder: str, *wanted: str) -> None:
    """Be the other process: ask, say who got in, wait."""
    kind, first, threads, at, waits = wanted
    with opened(Path(folder), FixedClock(MORNING.fromisoformat(at))) as store:
        if waits:
            say("ready")
            sys.stdin.readline()
        ana = Spender(store.ledgers)
        asked = ReservationKind.QUERY if kind == "queries" else ReservationKind.INDEXING
        say(
            at_once(
                lambda number: gets_in(ana, int(first) + number, kind=asked),
                threads=int(threads),
            )
        )
        sys.stdin.readline()


def say(what: str | Sequence[bool]) -> None:
    """Tell the parent."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def told(child: "subprocess.Popen[str]") -> Any:
    """Return what a child says next."""
    assert child.stdout is not None
    return json.loads(child.stdout.readline())


def say_go(child: "subprocess.Popen[str]") -> None:
    """Let a child go on."""
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()
