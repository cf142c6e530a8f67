"""Restoring: into an empty store of any kind, the same as before."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.application.agreement import assert_agreement
from tests.application.exported import (
    KINDS,
    exported,
    found_by_words,
    live,
    recorded,
    replayed,
    restored,
    store_of,
    words_of,
)
from tests.application.house import House, a_context, a_query, an_entry

from remembrancer.contracts.spending import FIRST_ID, SECOND_ID, THIRD_ID, Spender
from remembrancer.domain import RecallKind, RecallMode


@pytest.fixture(params=itertools.product(KINDS, KINDS), ids="-to-".join)
def houses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[House, House]]:
    """Give a memory that has lived, and an empty one, of each kind to each other."""
    one, other = request.param
    with store_of(one, tmp_path / "lived") as lived, store_of(other, tmp_path / "empty") as empty:
        live(lived)
        yield lived, empty


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with store_of(request.param, tmp_path / "empty") as house:
        yield house


def test_every_event_is_there_byte_for_byte(houses: tuple[House, House]) -> None:
    lived, empty = houses

    told = restored(empty, exported(lived))

    assert recorded(empty) == recorded(lived)
    assert (told.events, told.owners, told.holds_originals) == (len(recorded(lived)), 3, True)


def test_packs_are_replayed_to_the_same_bytes(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))

    for number in (1, 2):
        assert replayed(empty, number) == replayed(lived, number)


def test_all_parts_agree_and_words_are_found(houses: tuple[House, House]) -> None:
    lived, empty = houses
    told = restored(empty, exported(lived))

    assert_agreement(empty.store, all_have_vectors=False)
    assert told.versions_by_words == words_of(empty) == words_of(lived)
    for kind in (RecallKind.DELIBERATE, RecallKind.HISTORICAL):
        assert found_by_words(empty, kind=kind) == found_by_words(lived, kind=kind) != []


def test_vectors_come_by_reindexing(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))
    before = empty.memory.recall(a_query(), a_context()).mode_reason

    empty.memory.reindex()

    assert before == "no_vector_index"
    after, there = (house.memory.recall(a_query(), a_context()) for house in (empty, lived))
    assert after.mode is RecallMode.HYBRID
    # Scores of words are each kind's own.
    assert {(one.entry_id, one.text) for one in after.entries} == {
        (one.entry_id, one.text) for one in there.entries
    }
    assert_agreement(empty.store)


def test_spend_is_what_it_was(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))

    assert empty.memory.spend(tenant="acme") == lived.memory.spend(tenant="acme") != []
    for owner, reservation_id in (("ana", FIRST_ID), ("ana", SECOND_ID), ("ben", THIRD_ID)):
        there = empty.store.ledger.receipt("acme", owner, reservation_id)
        assert there == lived.store.ledger.receipt("acme", owner, reservation_id) is not None


def test_history_and_explanations_are_the_same(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))

    for session in ("s", "gone"):
        there = empty.memory.explain(session, "plan", tenant="acme")
        assert there == lived.memory.explain(session, "plan", tenant="acme")


def test_an_audit_finds_nothing(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))

    for house in houses:
        if house.store.audit is not None:
            assert house.memory.audit().findings == ()


def test_life_goes_on(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))

    for house in houses:
        Spender(house.store.ledger, owner="ben").lose(THIRD_ID)
        house.memory.build_pack("s", "plan", a_query(), a_context(), token_budget=900)

    assert empty.memory.spend(tenant="acme") == lived.memory.spend(tenant="acme")
    assert len(recorded(empty)) == len(recorded(lived))


def test_it_can_be_exported_again_to_the_same_lines(houses: tuple[House, House]) -> None:
    lived, empty = houses
    first = exported(lived)
    restored(empty, first)

    again = exported(empty)

    events = first.told.events if first.told else 0
    assert again.data[:events] == first.data[:events]
    assert sorted(again.data[:-1]) == sorted(first.data[:-1])  # Originals come in any order.


@pytest.mark.parametrize("part", [{"tenant": "acme"}, {"tenant": "acme", "owner": "ben"}], ids=str)
def test_a_part_can_be_restored_too(houses: tuple[House, House], part: dict[str, str]) -> None:
    lived, empty = houses

    told = restored(empty, exported(lived, **part, originals=True))

    assert_agreement(empty.store, all_have_vectors=False)
    owners = {(one.tenant, one.owner) for one in recorded(empty)}
    assert len(owners) == told.owners
    assert owners <= {("acme", "ana"), ("acme", "ben")}


def test_without_originals_the_log_is_there_alone(houses: tuple[House, House]) -> None:
    lived, empty = houses

    told = restored(empty, exported(lived, originals=False))

    assert recorded(empty) == recorded(lived)
    assert (told.holds_originals, told.originals, told.versions_by_words) == (False, 0, 0)


def test_progress_reaches_its_end(empty: House, tmp_path: Path) -> None:
    with store_of("memory", tmp_path / "lived") as lived:
        lived.memory.remember_many([an_entry(f"invoice {number}") for number in range(400)])
        lines = exported(lived)
    told: list[tuple[int, int]] = []

    restored(empty, lines, progress=lambda *far: told.append(far))

    assert told == sorted(told)
    assert {total for _, total in told} == {1600}
    assert told[-1] == (1600, 1600)
