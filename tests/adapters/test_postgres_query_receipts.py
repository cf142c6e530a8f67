"""The revision that tells receipts of queries apart: up, down and up again, under traffic."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.adapters.older_release import RECEIPT_COLUMNS, OlderRelease, UnknownFieldError
from tests.adapters.postgres_ledgers import LedgerBench, ledger_bench
from tests.adapters.postgres_server import APPLICATION, AUDITOR

from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.migrations import migrate
from remembrancer.adapters.postgres.migrations.row_security import Roles
from remembrancer.contracts.spending import (
    FIRST_ID,
    INDEXING,
    LEASE,
    QUERY,
    SECOND_ID,
    THIRD_ID,
    Spender,
    days_of,
    receipts_of,
    recorded,
    require_within_ceilings,
    terms,
)
from remembrancer.domain.errors import MigrationRefusedError, StoreError, StoreUnavailableError
from remembrancer.domain.reservation import Reservation, ReservationState
from remembrancer.domain.spend_errors import SpendRefusedError

ROLES = Roles(application=APPLICATION, auditor=AUDITOR)
ROOMY = terms(quanta=10**9, requests=10**6)
TIMES = 3
BASE, QUERIES = "0001", "0002"
FORCED = (
    "SELECT relname::text, relrowsecurity AND relforcerowsecurity FROM pg_class"
    " WHERE relname IN ('spend_receipts', 'stored_events') ORDER BY 1"
)
COLUMNS = (
    "SELECT attname::text FROM pg_attribute WHERE attrelid = 'spend_receipts'::regclass"
    " AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


@pytest.fixture
def bench() -> Iterator[LedgerBench]:
    with ledger_bench(limits=Limits(connections=12)) as bench:
        yield bench


def _up(bench: LedgerBench) -> None:
    migrate.up(bench.fresh.owner, roles=ROLES)


def _down(bench: LedgerBench) -> None:
    """Take it back as a role from which row security hides nothing."""
    migrate.down(bench.fresh.superuser, roles=ROLES, to=BASE)


def _revision(bench: LedgerBench) -> str | None:
    return migrate.status(bench.fresh.owner).found


def _every_state(bench: LedgerBench) -> dict[UUID, Reservation | None]:
    """Leave receipts of both kinds in every state but pending queries."""
    ana = bench.ana
    for number, kind in enumerate((QUERY, INDEXING), start=1):
        settled, lost, expired, reconciled = (UUID(int=10 * number + i) for i in range(4))
        for one in (settled, lost, reconciled):
            ana.admit(one, kind=kind, charge=20 + number)
            if one is settled:
                ana.settle(one, charge=number)
            else:
                ana.lose(one)
        ana.reconcile(reconciled, charge=5)
        ana.admit(expired, kind=kind, charge=7)
        bench.clock.advance(LEASE)
        bench.ledgers.decide("acme", "ana", lambda held: held.ledger.expire(at=held.now))
    ana.admit(UUID(int=99), kind=INDEXING, charge=9)  # Pending.
    return receipts_of(recorded(bench.log))


def _receipts(bench: LedgerBench) -> dict[UUID, Reservation | None]:
    ids = receipts_of(recorded(bench.log))
    return {one: bench.ana.receipt(one) for one in ids}


# -- The shape of index receipts, and the older release ---------------------------------


def test_a_receipt_of_an_index_request_is_as_it_was(bench: LedgerBench) -> None:
    """What only queries have is absent, as in its event."""
    bench.ana.admit(FIRST_ID, kind=INDEXING)
    bench.ana.admit(SECOND_ID, kind=QUERY)

    index, query = [
        row
        for (row,) in bench.execute(
            "SELECT jsonb_strip_nulls(to_jsonb(receipt)) FROM spend_receipts AS receipt"
            " ORDER BY admitted_version"
        )
    ]

    absent = {"usage_tokens", "unknown_reason"}
    assert index.keys() == set(RECEIPT_COLUMNS) - absent
    assert query.keys() == index.keys() | {"kind", "deadline"}


def test_the_base_has_no_column_of_queries(bench: LedgerBench) -> None:
    _down(bench)

    assert [name for (name,) in bench.execute(COLUMNS)] == [
        name for (name,) in bench.execute(COLUMNS) if name in RECEIPT_COLUMNS
    ]


def test_an_older_release_reads_what_this_one_wrote(bench: LedgerBench) -> None:
    bench.ana.admit(FIRST_ID, kind=INDEXING, charge=40)
    bench.ana.settle(FIRST_ID, charge=3)
    bench.ana.admit(SECOND_ID, kind=QUERY, charge=20)
    older = OlderRelease(bench.fresh.app)

    assert [one["charged_quanta"] for one in older.receipts()] == [3, 20]
    assert older.charged() == {"2030-01-01": 23}
    assert len(older.events(FIRST_ID)) == 2
    with pytest.raises(UnknownFieldError):
        older.events(SECOND_ID)


def test_this_release_reads_what_an_older_one_wrote(bench: LedgerBench) -> None:
    """In the newer schema, and in the older one that is then brought up."""
    older = OlderRelease(bench.fresh.app)
    older.reserve(FIRST_ID, 40)
    _down(bench)
    older.reserve(SECOND_ID, 50)
    _up(bench)

    bench.ana.admit(THIRD_ID, kind=QUERY, charge=7)

    found = _receipts(bench)
    assert found == receipts_of(recorded(bench.log))
    assert [one and one.charged_quanta for one in found.values()] == [1, 1, 7]
    assert len(older.events(FIRST_ID)) == len(older.events(SECOND_ID)) == 2


# -- Down, and up again ----------------------------------------------------------------


def test_down_and_up_again_restores_every_receipt(bench: LedgerBench) -> None:
    before, days = _every_state(bench), bench.ana.days()
    rows = bench.execute("SELECT to_jsonb(one) FROM spend_receipts AS one ORDER BY 1")

    _down(bench)
    older = OlderRelease(bench.fresh.app)
    kept = older.charged()
    _up(bench)

    assert kept == {day.day: day.charged_quanta for day in days}
    assert bench.execute("SELECT to_jsonb(one) FROM spend_receipts AS one ORDER BY 1") == rows
    assert _receipts(bench) == before
    assert bench.ana.days() == days == days_of(recorded(bench.log))
    assert bench.execute(FORCED) == [("spend_receipts", True), ("stored_events", True)]


def test_going_up_and_down_changes_the_shape_and_back(bench: LedgerBench) -> None:
    columns = set(bench.execute(COLUMNS))

    _down(bench)
    down = set(bench.execute(COLUMNS))
    _up(bench)

    assert columns - down == {("kind",), ("deadline",)}
    assert set(bench.execute(COLUMNS)) == columns


def test_down_is_refused_while_query_work_is_pending_and_says_what_to_do(
    bench: LedgerBench,
) -> None:
    bench.ana.admit(FIRST_ID, kind=QUERY)
    bench.clock.advance(LEASE)  # Expired, but nobody has said so yet.

    with pytest.raises(MigrationRefusedError, match=r"pending.*acme.*spend expire") as refused:
        _down(bench)

    assert refused.value.__cause__ is not None
    assert _revision(bench) == QUERIES
    bench.ledgers.decide("acme", "ana", lambda held: held.ledger.expire(at=held.now))
    _down(bench)
    _up(bench)
    assert bench.ana.state(FIRST_ID) is ReservationState.UNKNOWN


def test_pending_index_work_does_not_keep_it_from_going_down(bench: LedgerBench) -> None:
    bench.ana.admit(FIRST_ID, kind=INDEXING)

    _down(bench)

    assert _revision(bench) == BASE


def test_down_fails_closed_for_the_owner_from_whom_rows_are_hidden(bench: LedgerBench) -> None:
    """Case 21: it would count no pending row, and there is one."""
    bench.ana.admit(FIRST_ID, kind=QUERY, charge=10)
    bench.ana.admit(SECOND_ID, charge=30)
    bench.ana.settle(SECOND_ID, charge=4)
    shape, days = bench.execute(COLUMNS), bench.ana.days()

    with pytest.raises(MigrationRefusedError, match="row security hides") as refused:
        migrate.down(bench.fresh.owner, roles=ROLES, to=BASE)

    cause: Any = refused.value.__cause__
    assert cause.sqlstate == "42501"
    assert bench.execute(COLUMNS) == shape
    assert bench.execute(FORCED) == [("spend_receipts", True), ("stored_events", True)]
    assert (bench.ana.days(), _revision(bench)) == (days, QUERIES)


def test_a_running_process_is_told_when_the_schema_was_taken_back(bench: LedgerBench) -> None:
    bench.ana.admit(FIRST_ID)
    _down(bench)

    with pytest.raises(StoreUnavailableError, match="migrate up"):
        bench.ana.settle(FIRST_ID)

    _up(bench)
    bench.ana.settle(FIRST_ID, charge=3)
    assert bench.ana.days()[0].charged_quanta == 3


def test_the_ledger_waits_for_the_downgrade_and_the_downgrade_for_the_ledger(
    bench: LedgerBench,
) -> None:
    """Both take owners first, so neither holds what the other waits for."""
    bench.ana.admit(FIRST_ID)
    going = Event()
    with ThreadPoolExecutor(1) as pool:

        def decides(held: Any) -> None:
            going.set()
            waiting.append(pool.submit(_down, bench))
            while not bench.execute("SELECT 1 FROM pg_locks WHERE NOT granted"):
                pass
            held.ledger.settle(
                FIRST_ID, charged_quanta=2, usage_tokens=2, earlier=None, at=held.now
            )

        waiting = list[Any]()
        bench.ledgers.decide("acme", "ana", decides)
        waiting[0].result()

    assert _revision(bench) == BASE
    assert OlderRelease(bench.fresh.app).charged() == {"2030-01-01": 2}


# -- While traffic runs --------------------------------------------------------------------


def test_nothing_is_lost_while_traffic_runs(bench: LedgerBench) -> None:
    """Both releases spend while the schema goes down and up; who is confirmed is there."""
    ended = Event()

    def spends(number: int) -> dict[UUID, int]:
        confirmed = dict[UUID, int]()
        owner = Spender(bench.ledgers, f"owner-{number}")
        kind = QUERY if number % 2 else INDEXING
        while not ended.is_set():
            reservation_id = uuid4()
            with suppress(StoreError, SpendRefusedError):
                owner.admit(reservation_id, kind=kind, under=ROOMY)
                confirmed[reservation_id] = 10
                owner.settle(reservation_id, charge=2)
                confirmed[reservation_id] = 2
                continue
            with suppress(SpendRefusedError):
                try:
                    owner.lose(reservation_id)
                except StoreError:
                    bench.clock.advance(LEASE)  # Or it would keep the schema where it is.
        return confirmed

    def older_spends(number: int) -> dict[UUID, int]:
        confirmed = dict[UUID, int]()
        older = OlderRelease(bench.fresh.app, owner=f"older-{number}")
        while not ended.is_set():
            reservation_id = uuid4()
            older.reserve(reservation_id, 10)
            confirmed[reservation_id] = 1
        return confirmed

    with ThreadPoolExecutor(6) as pool:
        newer = {f"owner-{n}": pool.submit(spends, n) for n in range(4)}
        old = {f"older-{n}": pool.submit(older_spends, n) for n in range(2)}
        try:
            for _ in range(TIMES):
                _eventually(_down, bench)
                _eventually(_up, bench)
        finally:
            ended.set()
        confirmed = {owner: one.result() for owner, one in {**newer, **old}.items()}

    for owner, charges in confirmed.items():
        events = recorded(bench.log, owner=owner)
        require_within_ceilings(events)
        told = receipts_of(events)
        ledger = Spender(bench.ledgers, owner)
        assert {one: ledger.receipt(one) for one in told} == told
        assert list(bench.ledgers.days("acme", owner)) == days_of(events)
        for reservation_id, charge in charges.items():
            found = told[reservation_id]
            assert found is not None
            assert found.charged_quanta in {charge, 2 if charge == 10 else charge}
        assert charges


def _eventually(step: Any, bench: LedgerBench) -> None:
    """Try again while a query is pending just now, or others hold the locks for too long."""
    for _ in range(200):
        try:
            step(bench)
        except (MigrationRefusedError, StoreUnavailableError):
            continue
        return
    raise AssertionError("it never got through")
