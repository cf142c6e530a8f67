"""What was spent, and what an operator can correct, through the public face."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.composition.remote_world import WHO, World, a_context, a_query, an_entry, open_world

from remembrancer.composition import Remembrancer, embedded
from remembrancer.contracts.loopback_provider import honest, status
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.reservation import ReservationState
from remembrancer.domain.reservation_event import ReservationReconciled
from remembrancer.domain.spend_errors import ChargeNotLoweredError, ReservationNotUnknownError

STATED = 300


def _unknown(world: World) -> tuple[Remembrancer, UUID, int]:
    """Return a memory with one unknown charge: its reservation and how much."""
    world.admit()
    memory = world.open()
    report = memory.prepare([a_query("which rule?")], a_context(), **WHO)
    assert report.reservation_id is not None
    return memory, report.reservation_id, report.charged_quanta


def _document(reservation_id: UUID, **changes: Any) -> bytes:
    return json.dumps(
        {
            "reservation_id": str(reservation_id),
            "stated_quanta": STATED,
            "provider_statement": "usage export of January",
        }
        | changes
    ).encode()


def _reconciled(
    memory: Remembrancer, reservation_id: UUID, evidence: Path | bytes, charged: int = STATED
) -> Any:
    return memory.reconcile(
        reservation_id, **WHO, charged_quanta=charged, evidence=evidence, by="mia"
    )


def test_nothing_spent_is_an_empty_list(tmp_path: Path) -> None:
    with embedded(tmp_path / "memory.db") as memory:
        assert memory.spend(tenant="acme") == []


def test_spend_is_by_owner_and_day_with_the_ceilings_in_force(tmp_path: Path) -> None:
    with open_world(tmp_path, honest()) as world:
        world.admit()
        memory = world.open()
        memory.prepare([a_query("which rule?")], a_context(), **WHO)
        memory.prepare(
            [a_query("which rule?", owner="bo")], a_context(), tenant="acme", owner="bo"
        )
        memory.remember(an_entry("A rule."))

        days = memory.spend(tenant="acme")

        assert [(day.owner, day.requests) for day in days] == [("ana", 2), ("bo", 1)]
        assert {(day.ceiling_quanta, day.ceiling_requests) for day in days} == {
            (10_000_000, 1_000)
        }
        assert memory.spend(tenant="acme", owner="bo") == days[1:]
        assert memory.spend(tenant="another") == []
        assert memory.spend(tenant="acme", since=days[0].day) == days
        assert memory.spend(tenant="acme", since="2999-01-01") == []
        assert asyncio.run(memory.aspend(tenant="acme")) == days


@pytest.mark.parametrize("since", ["", "today", "2030-1-1", "2030-13-01", "2030-01-01T00:00"])
def test_since_must_be_a_day(since: str, tmp_path: Path) -> None:
    with embedded(tmp_path / "memory.db") as memory, pytest.raises(InvalidInputError):
        memory.spend(tenant="acme", since=since)


def test_an_unknown_charge_can_be_lowered_to_what_is_proved(tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        memory, reservation_id, charged = _unknown(world)
        file = tmp_path / "proof.json"
        file.write_bytes(_document(reservation_id))

        known = _reconciled(memory, reservation_id, file)

        assert charged > STATED
        assert (known.state, known.charged_quanta) == (ReservationState.RECONCILED, STATED)
        [day] = memory.spend(**WHO)
        assert (day.charged_quanta, day.unknown, day.reserved_quanta) == (STATED, 0, charged)
        assert day.day == known.day
        log = memory._container.store().log
        fact = log.follow(after_position=0, limit=100)[-1].event
        assert isinstance(fact, ReservationReconciled)
        assert fact.evidence_digest == hashlib.sha256(file.read_bytes()).hexdigest()
        assert (fact.reconciled_by, fact.stated_quanta) == ("mia", STATED)


def test_the_same_again_records_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        memory, reservation_id, _ = _unknown(world)
        _reconciled(memory, reservation_id, _document(reservation_id))
        before = memory.status().events

        again = asyncio.run(
            memory.areconcile(
                reservation_id,
                **WHO,
                charged_quanta=STATED,
                evidence=_document(reservation_id),
                by="mia",
            )
        )

        assert again.charged_quanta == STATED
        assert memory.status().events == before


@pytest.mark.parametrize("charged", [STATED - 1, 0, -1])
def test_never_below_what_the_evidence_states(charged: int, tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        memory, reservation_id, complete = _unknown(world)

        with pytest.raises(ChargeNotLoweredError):
            _reconciled(memory, reservation_id, _document(reservation_id), charged)

        assert memory.spend(**WHO)[0].charged_quanta == complete


def test_never_raised_and_never_left_as_it_was(tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        memory, reservation_id, complete = _unknown(world)

        for charged in (complete, complete + 1):
            with pytest.raises(ChargeNotLoweredError):
                _reconciled(memory, reservation_id, _document(reservation_id), charged)


def test_a_settled_charge_is_proved_already(tmp_path: Path) -> None:
    with open_world(tmp_path, honest()) as world:
        memory, reservation_id, charged = _unknown(world)

        with pytest.raises(ReservationNotUnknownError):
            _reconciled(
                memory, reservation_id, _document(reservation_id, stated_quanta=1), charged - 1
            )


def test_another_owner_has_no_such_reservation(tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        memory, reservation_id, _ = _unknown(world)

        with pytest.raises(ReservationNotUnknownError) as refusal:
            memory.reconcile(
                reservation_id,
                tenant="acme",
                owner="bo",
                charged_quanta=STATED,
                evidence=_document(reservation_id),
                by="mia",
            )

        assert refusal.value.state == "absent"


def test_evidence_must_be_about_this_reservation_and_readable(tmp_path: Path) -> None:
    with open_world(tmp_path, status(500)) as world:
        memory, reservation_id, complete = _unknown(world)

        for evidence in (_document(uuid4()), b"", tmp_path / "none.json", tmp_path):
            with pytest.raises(InvalidInputError):
                _reconciled(memory, reservation_id, evidence)

        assert memory.spend(**WHO)[0].charged_quanta == complete


def test_what_was_given_back_can_be_spent_again(tmp_path: Path) -> None:
    """On the day of admission, and in no other way."""
    with open_world(
        tmp_path, status(500), honest(), ceilings={"quanta_per_day": 3_000}
    ) as world:  # fmt: skip
        memory, reservation_id, _ = _unknown(world)
        refused = memory.prepare([a_query("which other?")], a_context(), **WHO)
        assert refused.outcomes[0].reason == "over_money_ceiling"

        _reconciled(memory, reservation_id, _document(reservation_id))

        report = memory.prepare([a_query("which other?")], a_context(), **WHO)
        assert report.outcomes[0].reason == "prepared"
