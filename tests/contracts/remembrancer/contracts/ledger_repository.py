"""What every ledger repository promises (design 4.2, seen from outside).

Enrol an adapter by subclassing :class:`LedgerRepositoryContract`; or, if it keeps what processes
share, ``ledger_repository_durable.DurableLedgerRepositoryContract``, which adds to it::

    class TestMyLedgerRepository(LedgerRepositoryContract):
        @contextmanager
        def opened(self, folder: Path, clock: FixedClock) -> Generator[LedgerStore]:
            with MyStore.open(folder) as store:
                ledgers = MyLedgerRepository(store, clock=clock)
                yield LedgerStore(ledgers, MyEventLog(store), MyTransactions(store), clock)

A store with a clock of its own is told to read this one for the suite.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import ClassVar, NoReturn
from uuid import UUID

import pytest

from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.ledger_repository_model import agrees_with_the_ledger_alone
from remembrancer.contracts.ledger_repository_owners import LedgerOwnersContract
from remembrancer.contracts.spending import (
    FIRST_ID,
    INDEXING,
    LEASE,
    MORNING,
    QUERY,
    SECOND,
    SECOND_ID,
    THIRD_ID,
    LedgerStore,
    Spender,
    admission,
    days_of,
    receipts_of,
    recorded,
    terms,
)
from remembrancer.domain.reservation import ReservationKind, ReservationState
from remembrancer.domain.spend_errors import (
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
    ReservationNotUnknownError,
    ReservationReusedError,
    ReservationUnknownError,
    SpendRefusedError,
)

ZONES = ("Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati")
THREADS = 16


class LedgerRepositoryContract(LedgerOwnersContract):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    tiny_requests: ClassVar[int] = 10_000
    """How many requests of less than a quantum are settled; fewer where each takes a disk."""

    # -- The door ----------------------------------------------------------

    def test_an_owner_without_history_has_spent_nothing(
        self, store: LedgerStore, ana: Spender
    ) -> None:
        found = store.ledgers.decide("acme", "ana", lambda held: held.ledger.version)

        assert (found, ana.receipt(FIRST_ID), ana.days()) == (0, None, [])
        assert recorded(store.log) == []

    def test_gives_the_decisions_result(self, store: LedgerStore) -> None:
        assert store.ledgers.decide("acme", "ana", lambda held: held.now) == MORNING

    def test_a_decision_finds_the_ledger_as_the_last_one_left_it(
        self, store: LedgerStore, ana: Spender
    ) -> None:
        ana.admit(FIRST_ID)
        ana.settle(FIRST_ID)

        version, pending = store.ledgers.decide(
            "acme", "ana", lambda held: (held.ledger.version, held.ledger.pending)
        )

        assert (version, pending) == (2, ())

    def test_a_decision_that_fails_leaves_nothing(self, store: LedgerStore, ana: Spender) -> None:
        def fails(held: HeldLedger) -> NoReturn:
            admission(FIRST_ID)(held)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.ledgers.decide("acme", "ana", fails)

        assert (recorded(store.log), ana.receipt(FIRST_ID), ana.days()) == ([], None, [])
        assert not ana.admit(FIRST_ID).repeated

    def test_an_interrupt_leaves_no_lock_and_passes(
        self, store: LedgerStore, ana: Spender
    ) -> None:
        def interrupted(held: HeldLedger) -> NoReturn:
            admission(FIRST_ID)(held)
            raise KeyboardInterrupt

        for _ in range(50):
            with pytest.raises(KeyboardInterrupt):
                store.ledgers.decide("acme", "ana", interrupted)

        assert recorded(store.log) == []
        assert not ana.admit(FIRST_ID).repeated

    def test_a_decision_inside_a_transaction_is_a_bug(
        self, store: LedgerStore, ana: Spender
    ) -> None:
        """Nothing could be durable when it returns, and a request might leave."""
        with pytest.raises(RuntimeError), store.transactions.begin():
            ana.admit(FIRST_ID)

        with pytest.raises(RuntimeError), store.transactions.snapshot():
            ana.admit(FIRST_ID)

        assert recorded(store.log) == []

    # -- Admission ---------------------------------------------------------

    @pytest.mark.parametrize("kind", ReservationKind)
    def test_an_admission_is_pending_at_its_complete_charge(
        self, ana: Spender, kind: ReservationKind
    ) -> None:
        answer = ana.admit(FIRST_ID, kind=kind, charge=10)

        assert ana.receipt(FIRST_ID) == answer.reservation
        assert answer.reservation.state is ReservationState.PENDING
        assert answer.reservation.charged_quanta == 10
        assert answer.reservation.expires_at == MORNING + LEASE

    def test_the_same_request_again_is_answered_and_not_recorded(
        self, store: LedgerStore, ana: Spender
    ) -> None:
        first = ana.admit(FIRST_ID)

        again = ana.admit(FIRST_ID)

        assert (again.repeated, again.reservation) == (True, first.reservation)
        assert len(recorded(store.log)) == 1

    def test_a_reservation_is_known_however_old(
        self, store: LedgerStore, ana: Spender, clock: FixedClock
    ) -> None:
        ana.admit(FIRST_ID)
        settled = ana.settle(FIRST_ID)
        for number in range(10, 60):
            clock.advance(timedelta(hours=7))
            ana.admit(UUID(int=number))

        again = ana.admit(FIRST_ID)

        assert (again.repeated, again.reservation) == (True, settled)
        found = store.ledgers.decide("acme", "ana", lambda held: held.find(FIRST_ID))
        assert found == settled

    def test_a_decision_finds_the_same_whatever_it_is_said_to_be_about(
        self, store: LedgerStore, ana: Spender
    ) -> None:
        ana.admit(FIRST_ID)
        settled, pending = ana.settle(FIRST_ID), ana.admit(SECOND_ID).reservation

        for about in (None, FIRST_ID, SECOND_ID, THIRD_ID):
            found = store.ledgers.decide(
                "acme",
                "ana",
                lambda held: [held.find(one) for one in (FIRST_ID, SECOND_ID, THIRD_ID)],
                about=about,
            )
            assert found == [settled, pending, None]

    def test_an_id_stands_for_one_request(self, store: LedgerStore, ana: Spender) -> None:
        ana.admit(FIRST_ID, digest="a" * 64)

        with pytest.raises(ReservationReusedError):
            ana.admit(FIRST_ID, digest="b" * 64)

        assert len(recorded(store.log)) == 1

    def test_one_query_is_pending_at_a_time(self, ana: Spender) -> None:
        ana.admit(FIRST_ID, kind=QUERY)

        with pytest.raises(QueryPendingError):
            ana.admit(SECOND_ID, kind=QUERY)

        assert ana.receipt(SECOND_ID) is None

    @pytest.mark.parametrize(("first", "second"), [(QUERY, INDEXING), (INDEXING, QUERY)])
    def test_both_kinds_share_one_budget(
        self, ana: Spender, first: ReservationKind, second: ReservationKind
    ) -> None:
        ana.admit(FIRST_ID, kind=first, charge=60, under=terms(quanta=100))

        with pytest.raises(OverMoneyCeilingError):
            ana.admit(SECOND_ID, kind=second, charge=41, under=terms(quanta=100))
        with pytest.raises(OverRequestCeilingError):
            ana.admit(SECOND_ID, kind=second, charge=40, under=terms(quanta=100, requests=1))

        assert not ana.admit(SECOND_ID, kind=second, charge=40, under=terms(quanta=100)).repeated

    def test_another_ceiling_does_not_reset_what_was_spent(self, ana: Spender) -> None:
        ana.admit(FIRST_ID, charge=60, under=terms(quanta=60))

        with pytest.raises(OverMoneyCeilingError):
            ana.admit(SECOND_ID, charge=50, under=terms(quanta=100))

    # -- Settlement --------------------------------------------------------

    def test_a_settlement_lowers_the_charge(self, ana: Spender) -> None:
        ana.admit(FIRST_ID, charge=10)

        settled = ana.settle(FIRST_ID, charge=3, usage=7)

        assert ana.receipt(FIRST_ID) == settled
        assert (settled.reserved_quanta, settled.charged_quanta) == (10, 3)
        assert settled.usage_tokens == 7

    @pytest.mark.parametrize("zone", ZONES)
    def test_a_settlement_after_midnight_belongs_to_the_day_of_admission(
        self, ana: Spender, clock: FixedClock, zone: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        clock.set(datetime(2030, 1, 1, 23, 59, 59, 900_000, tzinfo=UTC))
        ana.admit(FIRST_ID, charge=60, under=terms(quanta=100))
        clock.set(datetime(2030, 1, 2, 0, 0, 0, 500_000, tzinfo=UTC))

        ana.settle(FIRST_ID, charge=5)
        ana.admit(SECOND_ID, charge=100, under=terms(quanta=100))

        monkeypatch.undo()
        time.tzset()
        assert [(one.day, one.requests, one.charged_quanta) for one in ana.days()] == [
            ("2030-01-01", 1, 5),
            ("2030-01-02", 1, 100),
        ]

    def test_less_than_a_quantum_costs_one(self, ana: Spender) -> None:
        roomy = terms(quanta=10 * self.tiny_requests, requests=self.tiny_requests)
        for number in range(self.tiny_requests):
            ana.admit(UUID(int=number), kind=QUERY, charge=10, under=roomy)
            ana.settle(UUID(int=number), charge=1, usage=15)

        [day] = ana.days()

        assert (day.requests, day.charged_quanta) == (self.tiny_requests, self.tiny_requests)
        assert type(day.charged_quanta) is int

    # -- Leases ------------------------------------------------------------

    def test_a_lease_lives_to_its_end(self, ana: Spender, clock: FixedClock) -> None:
        ana.admit(FIRST_ID, kind=QUERY)
        clock.advance(LEASE - SECOND)

        with pytest.raises(QueryPendingError):
            ana.admit(SECOND_ID, kind=QUERY)

        assert ana.state(FIRST_ID) is ReservationState.PENDING

    def test_an_expired_reservation_is_unknown_before_it_is_replaced(
        self, store: LedgerStore, ana: Spender, clock: FixedClock
    ) -> None:
        ana.admit(FIRST_ID, kind=QUERY, charge=10)
        clock.advance(LEASE)

        ana.admit(SECOND_ID, kind=QUERY, charge=10)

        events = recorded(store.log)
        assert [type(one).__name__ for one in events] == [
            "ReservationAdmitted",
            "ReservationBecameUnknown",
            "ReservationAdmitted",
        ]
        [day] = ana.days()
        assert (day.unknown_quanta, day.pending_quanta, day.charged_quanta) == (10, 10, 20)

    def test_a_refusal_commits_what_has_expired(self, ana: Spender, clock: FixedClock) -> None:
        ana.admit(FIRST_ID, kind=QUERY, charge=10)
        clock.advance(LEASE)

        with pytest.raises(OverMoneyCeilingError):
            ana.admit(SECOND_ID, kind=QUERY, charge=10, under=terms(quanta=19))

        receipt = ana.receipt(FIRST_ID)
        assert receipt is not None
        assert (receipt.state, receipt.charged_quanta) == (ReservationState.UNKNOWN, 10)
        assert ana.receipt(SECOND_ID) is None

    def test_a_late_settlement_is_refused_and_changes_nothing(
        self, store: LedgerStore, ana: Spender, clock: FixedClock
    ) -> None:
        ana.admit(FIRST_ID, charge=10)
        clock.advance(LEASE)

        with pytest.raises(ReservationUnknownError):
            ana.settle(FIRST_ID, charge=3)

        assert len(recorded(store.log)) == 1
        ana.lose(FIRST_ID)
        with pytest.raises(ReservationUnknownError):
            ana.settle(FIRST_ID, charge=3)
        assert ana.days()[0].unknown_quanta == 10

    def test_time_never_goes_back_for_an_owner(
        self, store: LedgerStore, ana: Spender, clock: FixedClock
    ) -> None:
        ana.admit(FIRST_ID, kind=QUERY, charge=60, under=terms(quanta=100))
        clock.advance(LEASE)
        ana.admit(SECOND_ID, kind=QUERY, charge=40, under=terms(quanta=100))
        clock.set(MORNING - timedelta(days=1))

        with pytest.raises(SpendRefusedError):
            ana.admit(THIRD_ID, charge=1, under=terms(quanta=100))

        seen = store.ledgers.decide("acme", "ana", lambda held: held.now)
        assert seen == MORNING + LEASE
        assert [one.day for one in ana.days()] == ["2030-01-01"]
        assert ana.state(FIRST_ID) is ReservationState.UNKNOWN

    # -- Reconciliation ----------------------------------------------------

    def test_an_operator_lowers_an_unknown_charge_on_its_day(
        self, ana: Spender, clock: FixedClock
    ) -> None:
        ana.admit(FIRST_ID, charge=10)
        ana.lose(FIRST_ID)
        clock.advance(timedelta(days=3))

        reconciled = ana.reconcile(FIRST_ID, charge=4, stated=4)

        assert ana.receipt(FIRST_ID) == reconciled
        [day] = ana.days()
        assert (day.day, day.charged_quanta, day.unknown) == ("2030-01-01", 4, 0)

    def test_a_settled_charge_is_not_reconciled(self, ana: Spender) -> None:
        ana.admit(FIRST_ID, charge=10)
        ana.settle(FIRST_ID, charge=5)

        with pytest.raises(ReservationNotUnknownError):
            ana.reconcile(FIRST_ID, charge=4)

    # -- Receipts ----------------------------------------------------------

    def test_receipts_are_what_the_events_say(
        self, store: LedgerStore, ana: Spender, clock: FixedClock
    ) -> None:
        for number in range(40):
            ana.admit(UUID(int=number), charge=10 + number)
            if number % 3:
                ana.settle(UUID(int=number), charge=1 + number % 7)
            clock.advance(timedelta(hours=1))
        ana.lose(UUID(int=39))
        ana.reconcile(UUID(int=39), charge=2)

        events = recorded(store.log)

        assert receipts_of(events) == {
            UUID(int=number): ana.receipt(UUID(int=number)) for number in range(40)
        }
        assert ana.days() == days_of(events)

    def test_any_history_agrees_with_the_ledger_alone(self) -> None:
        agrees_with_the_ledger_alone(self.opened)
