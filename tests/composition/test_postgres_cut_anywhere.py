"""A memory in PostgreSQL that loses its connection at each thing that it sends, one after another.

What it was doing is told of as done or as not done, and whatever was written of it agrees.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.adapters.cutting_relay import CuttingRelay, relay_before
from tests.application.agreement import assert_agreement
from tests.application.house import (
    House,
    a_context,
    a_query,
    an_entry,
    open_house,
    postgres_place,
    replay_of,
)

from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.composition.settings import StoreSettings
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.identity import EntryId

ENOUGH = 80
"""More than any of them sends."""

Deed = Callable[[House, EntryId, int], object]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[StoreSettings, CuttingRelay]]:
    """Lend an empty database, and the relay through which the application goes to it."""
    with postgres_place(tmp_path) as place:
        assert place.dsn_file is not None
        direct = place.dsn_file.read_text()
        with relay_before(direct) as relay:
            place.dsn_file.write_text(relay.through(direct))
            yield place, relay


def _remember(house: House, _: EntryId, number: int) -> EntryId:
    return house.memory.remember(an_entry(f"common {number}", idempotency_key=f"{number}"))


def _correct(house: House, entry_id: EntryId, number: int) -> None:
    text = f"common and corrected {number}"
    house.memory.correct(entry_id, text=text, reason="edited", tenant="acme")


def _erase(house: House, entry_id: EntryId, _: int) -> None:
    house.memory.erase(entry_id, reason="user_request", tenant="acme", owner="ana")


def _erase_owner(house: House, _: EntryId, number: int) -> None:
    del number
    house.memory.erase_owner(tenant="acme", owner="ana", reason="gone")


def _pack(house: House, _: EntryId, number: int) -> None:
    query = a_query("common")
    house.memory.build_pack(f"s{number}", "plan", query, a_context(), token_budget=300)


DEEDS: dict[str, Deed] = {
    "remember": _remember,
    "correct": _correct,
    "erase": _erase,
    "erase an owner": _erase_owner,
    "build a pack": _pack,
}


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DEEDS)
def test_what_loses_its_connection_anywhere_is_done_or_not_done(
    place: tuple[StoreSettings, CuttingRelay], name: str, step: int
) -> None:
    settings, relay = place
    cuts, failures = 0, 0
    with open_house(settings) as house:
        assert isinstance(house.store.transactions, PostgresTransactions)
        house.store.transactions._database.bell.close()  # It would be counted as well.
        for number in count(step=step):
            entry_id = house.memory.remember(an_entry(f"common before {number}"))
            relay.cut_after = number
            try:
                DEEDS[name](house, entry_id, number)
            except StoreUnavailableError:
                failures += 1
            was_cut, relay.cut_after = relay.cut_after is None, None

            entries = assert_agreement(house.store, common_word="common")
            if not was_cut:
                break
            cuts += 1
            _may_be_done_again(house, name, entry_id, number, before=len(entries))
            assert number < ENOUGH

    assert cuts >= failures > 0


def _may_be_done_again(
    house: House, name: str, entry_id: EntryId, number: int, *, before: int
) -> None:
    """Who was told that it isn't done, or isn't sure, does it again: once more is no harm."""
    if name == "remember":
        first = _remember(house, entry_id, number)
        assert _remember(house, entry_id, number) == first
        assert len(assert_agreement(house.store)) <= before + 1
    if name == "build a pack":
        _pack(house, entry_id, number)
        replayed = house.memory.replay(f"s{number}", "plan", **replay_of())
        assert replayed.differences == ()
    if name == "erase an owner":
        _erase_owner(house, entry_id, number)
        assert all(told.erased for told in assert_agreement(house.store).values())
    if name == "erase":
        _erase(house, entry_id, number)
        assert assert_agreement(house.store)[entry_id].erased
