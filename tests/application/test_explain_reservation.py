"""Explaining a reservation: its life, its cost, and what it was for."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.application.house import House

from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.explain_reservation import Fed, ReservationExplained
from remembrancer.contracts.spending import (
    FIRST_ID,
    INDEXING,
    QUERY,
    SECOND,
    SECOND_ID,
    Spender,
    terms,
)
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.reservation import ReservationState, UnknownReason
from remembrancer.domain.spend_errors import NoSuchReservationError

SURFACE = Surface(tenant="acme", owner="ana", surface="cli")


def explained(house: House, reservation_id: UUID = FIRST_ID) -> ReservationExplained:
    return house.memory.explain_reservation(reservation_id, tenant="acme", owner="ana")


@pytest.fixture
def spender(house: House) -> Spender:
    return Spender(house.store.ledger)


def test_tells_its_life_step_by_step(house: House, spender: Spender) -> None:
    spender.admit(FIRST_ID, kind=QUERY, charge=10)
    house.clock.advance(timedelta(seconds=2))
    spender.settle(FIRST_ID, charge=3, usage=7)

    found = explained(house)

    assert [(one.state, one.charged_quanta) for one in found.steps] == [
        (ReservationState.PENDING, 10), (ReservationState.SETTLED, 3)]  # fmt: skip
    assert found.steps[0].at <= found.steps[1].at
    assert found.steps[1].detail == "usage of 7 tokens"
    assert (found.reservation.kind, found.reservation.charged_quanta) == (QUERY, 3)


def test_tells_the_day_and_the_ceilings_at_its_admission(house: House, spender: Spender) -> None:
    spender.admit(FIRST_ID, charge=10)
    spender.admit(SECOND_ID, charge=20, under=terms(quanta=500, requests=9))

    found = explained(house, SECOND_ID)

    assert (found.day_quanta_before, found.day_requests_before) == (10, 1)
    assert (found.ceiling_quanta, found.ceiling_requests) == (500, 9)
    assert found.configuration_digest == "0" * 64


def test_an_unknown_one_is_told_with_the_reason(house: House, spender: Spender) -> None:
    spender.admit(FIRST_ID, charge=10)
    spender.lose(FIRST_ID, reason=UnknownReason.TIMEOUT)

    found = explained(house)

    assert found.steps[-1].detail == "timeout"
    assert found.reservation.charged_quanta == found.reservation.reserved_quanta == 10


def test_one_whose_lease_has_run_out_is_overdue(house: House, spender: Spender) -> None:
    spender.admit(FIRST_ID)
    expires_at = explained(house).reservation.expires_at  # By the store's own clock.
    house.clock.set(expires_at - SECOND)
    before = explained(house).is_overdue
    house.clock.set(expires_at)

    after = explained(house)

    assert (before, after.is_overdue) == (False, True)
    assert after.reservation.state is ReservationState.PENDING


def test_tells_which_cache_its_vectors_were_for(house: House, spender: Spender) -> None:
    contexts = CacheContexts(
        log=house.store.log, transactions=house.store.transactions, clock=house.clock
    )
    generation = contexts.bind(SURFACE, context_digest="a" * 64, configuration_digest="b" * 64)
    spender.admit(FIRST_ID, kind=QUERY)
    spender.settle(FIRST_ID)
    contexts.record_prepared(SURFACE, generation, reservation_id=FIRST_ID, vectors=2)

    found = explained(house)

    assert found.fed == (
        Fed(at=house.clock.now(), surface="cli", generation=generation, vectors=2),
    )


def test_indexing_feeds_no_cache(house: House, spender: Spender) -> None:
    spender.admit(FIRST_ID, kind=INDEXING)
    spender.settle(FIRST_ID)

    found = explained(house)

    assert (found.reservation.kind, found.fed) == (INDEXING, ())


def test_what_was_never_admitted_is_unknown(house: House, spender: Spender) -> None:
    spender.admit(FIRST_ID)

    with pytest.raises(NoSuchReservationError):
        explained(house, SECOND_ID)
    with pytest.raises(NoSuchReservationError):
        house.memory.explain_reservation(FIRST_ID, tenant="acme", owner="ben")
    with pytest.raises(InvalidInputError):
        house.memory.explain_reservation(FIRST_ID, tenant="acme", owner="")
