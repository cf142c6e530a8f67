"""What has expired becomes unknown because an operator says so."""

from datetime import timedelta

import pytest

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.expire import Expire
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import (
    FIRST_ID,
    LEASE,
    MORNING,
    QUERY,
    SECOND_ID,
    Spender,
)
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.reservation import ReservationState


class House:
    """Two owners of one tenant, and one of another."""

    def __init__(self) -> None:
        transactions = MemoryTransactions()
        log = RecordedEventLog(recorder=MemoryRecorder(transactions=transactions))
        self.clock = FixedClock(MORNING)
        self.ledgers = MemoryLedgerRepository(transactions=transactions, log=log, clock=self.clock)
        self.ana, self.ben = Spender(self.ledgers, "ana"), Spender(self.ledgers, "ben")
        self.other = Spender(self.ledgers, "ana", tenant="other")
        self.expire = Expire(ledger=self.ledgers)


@pytest.fixture
def house() -> House:
    house = House()
    for spender in (house.ana, house.ben, house.other):
        spender.admit(FIRST_ID, kind=QUERY, charge=10)
    return house


def test_what_has_expired_is_unknown_for_every_owner_of_the_tenant(house: House) -> None:
    house.clock.advance(LEASE)

    found = house.expire(tenant="acme")

    assert {owner: [one.charged_quanta for one in of] for owner, of in found.items()} == {
        "ana": [10],
        "ben": [10],
    }
    assert house.ana.state(FIRST_ID) is house.ben.state(FIRST_ID) is ReservationState.UNKNOWN
    assert house.other.state(FIRST_ID) is ReservationState.PENDING
    assert house.expire(tenant="acme") == {}


def test_what_has_not_expired_stays_pending(house: House) -> None:
    house.clock.advance(LEASE - timedelta(seconds=1))
    house.ben.admit(SECOND_ID, charge=1)

    assert house.expire(tenant="acme") == {}
    assert house.ana.state(FIRST_ID) is ReservationState.PENDING


def test_one_owner_may_be_named(house: House) -> None:
    house.clock.advance(LEASE)

    assert list(house.expire(tenant="acme", owner="ben")) == ["ben"]
    assert house.ana.state(FIRST_ID) is ReservationState.PENDING


def test_names_are_checked(house: House) -> None:
    with pytest.raises(InvalidInputError, match="tenant"):
        house.expire(tenant="")
    with pytest.raises(InvalidInputError, match="owner"):
        house.expire(tenant="acme", owner="")
