"""Ledgers in PostgreSQL when connections, backends, the server or a statement break.

Whatever breaks: no charge twice, none lost, no owner stuck (cases 2 and 18).
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NoReturn
from uuid import UUID

import psycopg
import pytest
from tests.adapters.cutting_relay import Cut
from tests.adapters.postgres_ledgers import LedgerBench, ledger_bench
from tests.adapters.postgres_server import OwnServer

from remembrancer.adapters.postgres.limits import Limits
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.spending import (
    FIRST_ID,
    LEASE,
    QUERY,
    SECOND,
    SECOND_ID,
    Spender,
    admission,
    recorded,
    require_within_ceilings,
)
from remembrancer.domain.errors import OutcomeUnknownError, StoreUnavailableError
from remembrancer.domain.reservation import ReservationState
from remembrancer.domain.spend_errors import QueryPendingError

Deed = Callable[[Spender], object]

KILL = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE usename = 'remembrancer_app' AND datname = current_database()"
)


@pytest.fixture
def bench() -> Iterator[LedgerBench]:
    with ledger_bench() as bench:
        yield bench


def _admit(ana: Spender) -> object:
    return ana.admit(FIRST_ID, kind=QUERY)


def _settle(ana: Spender) -> object:
    return ana.settle(FIRST_ID, charge=3)


deeds = pytest.mark.parametrize("deed", [_admit, _settle])


def _prepared(bench: LedgerBench, deed: Deed) -> int:
    """Bring the ledger to where the deed can be done; return how many events there are."""
    if deed is _settle:
        bench.ana.admit(FIRST_ID, kind=QUERY)
        return 1
    return 0


def _charges(bench: LedgerBench) -> list[int]:
    require_within_ceilings(recorded(bench.log))
    return [day.charged_quanta for day in bench.ana.days()]


# -- The connection breaks at the commit --------------------------------------


@deeds
def test_a_commit_that_got_lost_changed_nothing(bench: LedgerBench, deed: Deed) -> None:
    before = _prepared(bench, deed)
    bench.relay.next_cut = Cut.COMMIT

    with pytest.raises(StoreUnavailableError) as refused:
        deed(bench.ana)

    assert type(refused.value) is StoreUnavailableError
    assert len(recorded(bench.log)) == before
    deed(bench.ana)
    assert len(recorded(bench.log)) == before + 1
    assert _charges(bench) == [3 if deed is _settle else 10]


@deeds
def test_a_commit_whose_answer_got_lost_is_a_success(bench: LedgerBench, deed: Deed) -> None:
    before = _prepared(bench, deed)
    bench.relay.next_cut = Cut.ANSWER

    deed(bench.ana)

    assert bench.relay.next_cut is None
    assert len(recorded(bench.log)) == before + 1
    deed(bench.ana)  # The same again records nothing.
    assert len(recorded(bench.log)) == before + 1
    assert _charges(bench) == [3 if deed is _settle else 10]


@deeds
def test_a_server_that_has_not_noticed_keeps_no_owner_waiting(
    bench: LedgerBench, deed: Deed
) -> None:
    before = _prepared(bench, deed)
    bench.relay.next_cut = Cut.SILENCE

    with pytest.raises(StoreUnavailableError):
        deed(bench.ana)

    deed(bench.ana)
    assert len(recorded(bench.log)) == before + 1


@deeds
@pytest.mark.parametrize("cut", [Cut.COMMIT, Cut.ANSWER])
def test_what_can_not_be_found_out_can_be_asked_for(
    bench: LedgerBench, deed: Deed, cut: Cut
) -> None:
    before = _prepared(bench, deed)
    bench.relay.next_cut, bench.relay.stays_cut = cut, True

    with pytest.raises(OutcomeUnknownError):
        deed(bench.ana)

    bench.relay.stays_cut = False
    asked_for = bench.ana.state(FIRST_ID)
    assert (len(recorded(bench.log)) > before) == (cut is Cut.ANSWER)
    if deed is _admit:
        assert asked_for is (ReservationState.PENDING if cut is Cut.ANSWER else None)
    deed(bench.ana)
    assert len(recorded(bench.log)) == before + 1


def test_an_admission_whose_answer_got_lost_may_send(bench: LedgerBench) -> None:
    """A repeated admission must not send; this one is the first."""
    bench.relay.next_cut = Cut.ANSWER

    assert not bench.ana.admit(FIRST_ID).repeated


# -- Backends and the server end ------------------------------------------------


@deeds
def test_a_backend_that_is_killed_in_the_middle_changed_nothing(
    bench: LedgerBench, deed: Deed
) -> None:
    before = _prepared(bench, deed)

    def kills(held: HeldLedger) -> NoReturn:
        admission(SECOND_ID)(held)
        bench.execute(KILL)
        held.find(UUID(int=9))
        raise AssertionError("the connection is gone")

    with pytest.raises(StoreUnavailableError):
        bench.ledgers.decide("acme", "ana", kills)

    assert len(recorded(bench.log)) == before
    deed(bench.ana)
    assert _charges(bench) == [3 if deed is _settle else 10]


@deeds
def test_a_backend_that_is_killed_before_the_commit_changed_nothing(
    bench: LedgerBench, deed: Deed
) -> None:
    before = _prepared(bench, deed)

    def decides(held: HeldLedger) -> None:
        admission(SECOND_ID)(held)
        bench.execute(KILL)

    with pytest.raises(StoreUnavailableError) as refused:
        bench.ledgers.decide("acme", "ana", decides)

    assert type(refused.value) is StoreUnavailableError
    assert len(recorded(bench.log)) == before
    deed(bench.ana)


def test_leases_and_locks_stand_after_the_server_has_crashed() -> None:
    """At +14 s the old lease lives; at +16 s it is unknown, whole, and a new one may follow."""
    own = OwnServer({"fsync": "on"})
    try:
        with ledger_bench(own.fresh_database()) as bench:
            bench.ana.admit(FIRST_ID, kind=QUERY, charge=10)

            def crashes(held: HeldLedger) -> None:
                admission(SECOND_ID)(held)
                own.restart()

            with pytest.raises(StoreUnavailableError):
                bench.ledgers.decide("acme", "ana", crashes)
            bench.clock.advance(LEASE - SECOND)
            with pytest.raises(QueryPendingError):
                bench.ana.admit(SECOND_ID, kind=QUERY)
            own.restart()
            bench.afresh()
            bench.clock.advance(2 * SECOND)
            bench.ana.admit(SECOND_ID, kind=QUERY, charge=10)

            [day] = bench.ana.days()
            assert (day.unknown_quanta, day.pending_quanta, day.requests) == (10, 10, 2)
            assert len(recorded(bench.log)) == 3
    finally:
        own.stop()


def test_what_was_rolled_back_leaves_prepared_what_was() -> None:
    """Else the next decision of the session fails first, and the server's log tells of it."""
    with ledger_bench(limits=Limits(connections=1)) as bench:
        for number in range(10):
            bench.ana.admit(UUID(int=number))
        with pytest.raises(ZeroDivisionError), bench.database.write(tenant="acme", owner="ana"):
            _ = 1 / 0
        with (
            bench.database.write(tenant="acme", owner="ana"),
            pytest.raises(ZeroDivisionError),
            bench.database.attempt(),
        ):
            _ = 1 / 0

        with bench.database.read(tenant="acme") as connection:
            prepared = connection.execute("SELECT name FROM pg_prepared_statements").fetchall()

    assert ("remembrancer_open",) in prepared


# -- A statement fails ------------------------------------------------------------


STEPS = [
    ("owners", "INSERT"),
    ("stored_events", "INSERT"),
    ("spend_receipts", "INSERT"),
    ("spend_receipts", "UPDATE"),
    ("ledger_snapshots", "INSERT"),
    ("ledger_snapshots", "UPDATE"),
]


@pytest.mark.parametrize("when", ["at once", "at the commit"])
@pytest.mark.parametrize(("table", "step"), STEPS)
def test_a_decision_that_breaks_at_any_statement_leaves_nothing(
    bench: LedgerBench, table: str, step: str, when: str
) -> None:
    """Its last admission expires what is pending, admits, and keeps a snapshot."""
    if (table, step) != ("owners", "INSERT"):
        _spend(bench, events=31 if step == "UPDATE" and table == "ledger_snapshots" else 15)
    before, charges = len(recorded(bench.log)), _charges(bench)
    _break(bench, table, step, at_the_commit=when == "at the commit")

    with pytest.raises(psycopg.errors.DataException):
        bench.ana.admit(SECOND_ID, kind=QUERY)

    assert (len(recorded(bench.log)), _charges(bench)) == (before, charges)
    assert bench.ana.receipt(SECOND_ID) is None
    bench.execute(f"DROP TRIGGER breaks ON {table}")
    assert not bench.ana.admit(SECOND_ID, kind=QUERY).repeated
    assert len(recorded(bench.log)) == before + (2 if before else 1)


def _spend(bench: LedgerBench, *, events: int) -> None:
    """Record so many events, of which the last leaves a query that has expired."""
    for number in range(100, 100 + events // 2):
        bench.ana.admit(UUID(int=number))
        bench.ana.settle(UUID(int=number))
    bench.ana.admit(FIRST_ID, kind=QUERY)
    bench.clock.advance(LEASE + timedelta(seconds=1))


def _break(bench: LedgerBench, table: str, step: str, *, at_the_commit: bool) -> None:
    bench.execute(
        "CREATE FUNCTION breaks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'broken' USING ERRCODE = 'data_exception'; END $$"
    )
    kind, rest = (
        ("CONSTRAINT TRIGGER breaks AFTER", "DEFERRABLE INITIALLY DEFERRED")
        if at_the_commit
        else ("TRIGGER breaks BEFORE", "")
    )
    bench.execute(f"CREATE {kind} {step} ON {table} {rest} FOR EACH ROW EXECUTE FUNCTION breaks()")
