"""What every ledger repository promises to many owners and threads; see ``ledger_repository``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Lock
from typing import TypeVar
from uuid import UUID

import pytest

from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import (
    FIRST_ID,
    INDEXING,
    MORNING,
    QUERY,
    SECOND_ID,
    THIRD_ID,
    LedgerStore,
    Spender,
    recorded,
    require_within_ceilings,
    terms,
)
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import ReservationKind
from remembrancer.domain.spend_errors import OverMoneyCeilingError, QueryPendingError

THREADS = 16

_Result = TypeVar("_Result")


class LedgerOwnersContract(ABC):
    """The first part of ``LedgerRepositoryContract``, which is what to subclass."""

    @abstractmethod
    def opened(self, folder: Path, clock: FixedClock) -> AbstractContextManager[LedgerStore]:
        """Open a repository kept in ``folder``, empty at first, whose time is the clock's."""

    @pytest.fixture
    def clock(self) -> FixedClock:
        return FixedClock(MORNING)

    @pytest.fixture
    def store(self, tmp_path: Path, clock: FixedClock) -> Iterator[LedgerStore]:
        with self.opened(tmp_path, clock) as store:
            yield store

    @pytest.fixture
    def ana(self, store: LedgerStore) -> Spender:
        return Spender(store.ledgers)

    # -- Owners ------------------------------------------------------------

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (("acme", "ana"), ("acme-corp", "ana")),
            (("acme", "ana"), ("acme", "ana ")),
            (("a", "b_c"), ("a_b", "c")),
            (("a", "b"), ("b", "a")),
        ],
    )
    def test_owners_never_meet(
        self, store: LedgerStore, one: tuple[str, str], other: tuple[str, str]
    ) -> None:
        first = Spender(store.ledgers, tenant=one[0], owner=one[1])
        second = Spender(store.ledgers, tenant=other[0], owner=other[1])
        first.admit(FIRST_ID, kind=QUERY, charge=100, under=terms(quanta=100))

        found = store.ledgers.decide(*other, lambda held: held.find(FIRST_ID))
        answer = second.admit(FIRST_ID, kind=QUERY, charge=90, under=terms(quanta=100))

        assert (found, answer.repeated) == (None, False)
        assert [day.charged_quanta for day in first.days()] == [100]
        assert [day.charged_quanta for day in second.days()] == [90]

    def test_days_come_by_owner_and_day(self, store: LedgerStore, clock: FixedClock) -> None:
        ben, ana = Spender(store.ledgers, "ben"), Spender(store.ledgers, "ana")
        Spender(store.ledgers, "ana", tenant="other").admit(FIRST_ID)
        ben.admit(FIRST_ID, charge=1, under=terms(quanta=10, requests=5))
        ben.admit(SECOND_ID, charge=2, under=terms(quanta=20, requests=3))
        clock.advance(timedelta(days=1))
        ben.admit(THIRD_ID, charge=3)
        ana.admit(FIRST_ID, charge=4)

        of_all = store.ledgers.days("acme")
        since = store.ledgers.days("acme", since=UtcDay("2030-01-02"))

        assert [(one.owner, one.day) for one in of_all] == [
            ("ana", "2030-01-02"),
            ("ben", "2030-01-01"),
            ("ben", "2030-01-02"),
        ]
        assert [one.owner for one in since] == ["ana", "ben"]
        first = ben.days()[0]
        assert (first.requests, first.reserved_quanta, first.unknown) == (2, 3, 2)
        assert (first.ceiling_quanta, first.ceiling_requests) == (20, 3)

    # -- Many at once ------------------------------------------------------

    def test_many_may_be_the_first_of_an_owner(self, store: LedgerStore, ana: Spender) -> None:
        admitted = at_once(lambda number: gets_in(ana, number, kind=QUERY))

        assert sorted(admitted) == [False] * (THREADS - 1) + [True]
        assert len(recorded(store.log)) == 1

    def test_the_last_slot_is_given_once(self, store: LedgerStore, ana: Spender) -> None:
        ana.admit(UUID(int=99), charge=90, under=terms(quanta=100))

        admitted = at_once(lambda number: gets_in(ana, number, kind=INDEXING))

        assert sorted(admitted) == [False] * (THREADS - 1) + [True]
        require_within_ceilings(recorded(store.log))

    def test_many_owners_decide_side_by_side(self, store: LedgerStore) -> None:
        def spends(number: int) -> int:
            owner = Spender(store.ledgers, f"owner-{number}")
            for i in range(5):
                owner.admit(UUID(int=i), kind=QUERY)
                owner.settle(UUID(int=i), charge=3)
            return sum(day.charged_quanta for day in owner.days())

        assert at_once(spends) == [15] * THREADS

    def test_one_owners_decisions_come_one_after_the_other(self, store: LedgerStore) -> None:
        inside, seen = Lock(), list[bool]()

        def decision(_: HeldLedger) -> None:
            seen.append(inside.acquire(blocking=False))
            inside.release()

        at_once(lambda _: store.ledgers.decide("acme", "ana", decision))

        assert seen == [True] * THREADS

    def test_a_failure_leaves_other_owners_alone(self, store: LedgerStore) -> None:
        def decides(number: int) -> bool:
            owner = Spender(store.ledgers, f"owner-{number}")
            if number % 2:
                owner.admit(FIRST_ID)
                return True
            with pytest.raises(ZeroDivisionError):
                store.ledgers.decide("acme", owner.owner, lambda _: 1 // 0)
            return owner.receipt(FIRST_ID) is None

        assert all(at_once(decides))


def at_once(act: Callable[[int], _Result], *, threads: int = THREADS) -> list[_Result]:
    """Let this many threads begin together, each with its number; return what each got."""
    barrier = Barrier(threads)

    def begins(number: int) -> _Result:
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begins, range(threads)))


def gets_in(owner: Spender, number: int, *, kind: ReservationKind) -> bool:
    """Ask for ten of a hundred quanta; say whether they were given."""
    try:
        owner.admit(UUID(int=number), kind=kind, charge=10, under=terms(quanta=100))
    except (OverMoneyCeilingError, QueryPendingError):
        return False
    return True
