"""Restoring what nobody's ledger or clock can have recorded: refused alike by every store."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.application.exported import KINDS, Lines, exported, live, restored, store_of

from remembrancer.application.restored_spend import RestoredSpend
from remembrancer.contracts.spending import INDEXING, MORNING, QUERY, terms
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import RemembrancerError
from remembrancer.domain.export_errors import DamagedExportError
from remembrancer.domain.hash_chain import event_hash
from remembrancer.domain.reservation import (
    ReconciliationEvidence,
    Reservation,
    ReservationRequest,
    UnknownReason,
)
from remembrancer.domain.reservation_event import LedgerEvent
from remembrancer.domain.reservation_ledger import ReservationLedger

Said = list[dict[str, Any]]
ADMITTED, SETTLED = "reservation_admitted", "reservation_settled"
UNKNOWN, RECONCILED = "reservation_became_unknown", "reservation_reconciled"
AMOUNTS = {
    ADMITTED: ("reserved_quanta", "day_quanta_before", "ceiling_quanta", "ceiling_requests",
               "day_requests_before", "lease_s"),
    SETTLED: ("reserved_quanta", "charged_quanta", "usage_tokens"),
    UNKNOWN: ("charged_quanta",),
    RECONCILED: ("unknown_quanta", "charged_quanta", "stated_quanta"),
}  # fmt: skip
IMPOSSIBLE = (-1, 2**63, 2**80, 10**14, True, 1.5, "7", None)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    with store_of("memory", tmp_path_factory.mktemp("lived")) as house:
        live(house)
        return exported(house)


def forged(topic: str, **fields: Any) -> Callable[[Said], None]:
    """Return a change of the first event of a topic, and of all hashes after it."""

    def change(said: Said) -> None:
        events = [one for one in said if one["line"] == "event"]
        first = next(one for one in events if one["topic"].endswith(topic))
        first["state"] = canonical_json(json.loads(first["state"]) | fields).decode()
        before = first["predecessor"]
        for one in events:
            if one["stream"] == first["stream"] and one["version"] >= first["version"]:
                one["predecessor"] = before
                state = one["state"].encode()
                one["hash"] = event_hash(bytes.fromhex(before), one["topic"], state).hex()
                before = one["hash"]

    return change


def recorded_at(time: str) -> Callable[[Said], None]:
    """Return a change of when the first text was recorded."""

    def change(said: Said) -> None:
        next(one for one in said if one["line"] == "original")["recorded_at"] = time

    return change


def assert_refused(folder: Path, kind: str, lines: Lines) -> None:
    """See that a store of this kind refuses the whole."""
    with store_of(kind, folder) as house:
        with pytest.raises(DamagedExportError):
            restored(house, lines)

        with house.store.transactions.over_all_tenants():
            assert house.store.archive.is_empty()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [
        recorded_at("0001-01-01T00:00:00+14:00"),
        recorded_at("9999-12-31T23:59:59-14:00"),
        forged(SETTLED, charged_quanta=10**6),
        forged(SETTLED, charged_quanta=10**6, reserved_quanta=10**6),
        forged(SETTLED, charged_quanta=-5),
        forged(SETTLED, usage_tokens=2**80),
        forged(ADMITTED, reserved_quanta=2**80),
        forged(ADMITTED, ceiling_quanta=2**80),
        forged(ADMITTED, day="2031-01-01"),
    ],
    ids=range(9),
)
def test_every_store_refuses_what_its_driver_would(
    tmp_path: Path, lines: Lines, kind: str, change: Callable[[Said], None]
) -> None:
    assert_refused(tmp_path, kind, lines.altered(change))


@pytest.mark.parametrize("value", IMPOSSIBLE)
@pytest.mark.parametrize(
    ("topic", "name"), [(t, n) for t, names in AMOUNTS.items() for n in names]
)
def test_no_amount_is_let_in_that_cannot_be(
    tmp_path: Path, lines: Lines, topic: str, name: str, value: object
) -> None:
    assert_refused(tmp_path, "memory", lines.altered(forged(topic, **{name: value})))


@pytest.mark.parametrize("topic", AMOUNTS)
@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_no_time_is_let_in_that_utc_cannot_tell(
    tmp_path: Path, lines: Lines, topic: str, time: str
) -> None:
    stamp = {"_data_": time, "_type_": "datetime_iso"}

    assert_refused(tmp_path, "memory", lines.altered(forged(topic, timestamp=stamp)))


@pytest.mark.parametrize("kind", KINDS)
def test_no_reservation_is_admitted_twice(tmp_path: Path, lines: Lines, kind: str) -> None:
    """Also after its end, when nobody follows it any more."""

    def admit_again(said: Said) -> None:
        events = [one for one in said if one["line"] == "event"]
        first = next(one for one in events if one["topic"].endswith(ADMITTED))
        last = [one for one in events if one["stream"] == first["stream"]][-1]
        version = last["version"] + 1
        state = json.loads(first["state"]) | {"originator_version": version}
        state.pop("originator_topic", None)
        again = first | {"version": version, "predecessor": last["hash"], "of": last["of"]}
        again |= {"state": canonical_json(state).decode(), "position": events[-1]["position"] + 1}
        hashed = event_hash(bytes.fromhex(last["hash"]), again["topic"], again["state"].encode())
        said.insert(said.index(events[-1]) + 1, again | {"hash": hashed.hex()})
        for one in (said[0], said[-1]):
            one["events"] += 1

    assert_refused(tmp_path, kind, lines.altered(admit_again))


def test_no_query_is_admitted_while_another_is_pending() -> None:
    spend, problems = RestoredSpend(), list[str | None]()
    for about in (UUID(int=1), UUID(int=2)):
        ledger = ReservationLedger.unused("acme", "ana")
        request = ReservationRequest(
            reservation_id=about, kind=QUERY, request_digest="a" * 64, charge_quanta=1
        )
        ledger.admit(request, terms=terms(), earlier=None, at=MORNING)

        problems += [spend.problem_of(fact) for fact in _recorded(ledger)]

    assert problems == [None, "a query is admitted while another is pending"]


@given(st.randoms(use_true_random=False))
def test_whatever_a_ledger_decides_is_let_in(chance: Random) -> None:
    """The rules of restoring are never stricter than those that recorded it."""
    ledger = ReservationLedger.unused("acme", "ana")
    spend, now, known = RestoredSpend(), MORNING, dict[UUID, Reservation]()
    for number in range(chance.randrange(40)):
        now += timedelta(seconds=chance.choice([-5, 0, 7, 20, 40_000]))
        about = UUID(int=chance.randrange(12))
        with suppress(RemembrancerError):
            _decide(ledger, chance, about, known.get(about), now, number)
        facts = _recorded(ledger)

        assert [spend.problem_of(fact) for fact in facts] == [None] * len(facts)
        for fact in facts:
            after = fact.reservation_after(known.get(fact.reservation_id))
            assert after is not None
            known[fact.reservation_id] = after


def _recorded(ledger: ReservationLedger) -> list[LedgerEvent]:
    return [fact for fact in ledger.collect_events() if isinstance(fact, LedgerEvent)]


def _decide(
    ledger: ReservationLedger,
    chance: Random,
    about: UUID,
    earlier: Reservation | None,
    now: datetime,
    number: int,
) -> None:
    charge = chance.randint(0, 30)
    what = chance.choice(["admit", "admit", "settle", "lose", "reconcile"])
    if what == "admit":
        request = ReservationRequest(
            reservation_id=about,
            kind=chance.choice([QUERY, INDEXING]),
            request_digest="a" * 64,
            charge_quanta=charge + 1,
        )
        under = terms(quanta=100, requests=4)
        ledger.admit(request, terms=under, earlier=earlier, at=now)
    elif what == "settle":
        ledger.settle(about, charged_quanta=charge, usage_tokens=number, earlier=earlier, at=now)
    elif what == "lose":
        ledger.mark_unknown(about, reason=UnknownReason.TIMEOUT, earlier=earlier, at=now)
    else:
        evidence = ReconciliationEvidence(digest="b" * 64, stated_quanta=charge // 2, by="ana")
        ledger.reconcile(about, charged_quanta=charge, evidence=evidence, earlier=earlier, at=now)
