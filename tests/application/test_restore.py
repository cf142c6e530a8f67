"""Restoring: into an empty store of any kind, the same as before; or nothing at all."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.application.agreement import assert_agreement
from tests.application.exported import (
    KINDS,
    Lines,
    exported,
    found_by_words,
    live,
    recorded,
    replayed,
    restored,
    store_of,
)
from tests.application.house import House, a_context, a_query, an_entry

from remembrancer.application.ports.archive import Counts
from remembrancer.contracts.spending import FIRST_ID, SECOND_ID, THIRD_ID, Spender
from remembrancer.domain import RecallKind
from remembrancer.domain.errors import UnknownTopicError
from remembrancer.domain.export_errors import (
    DamagedExportError,
    StoreNotEmptyError,
    UnreadableExportError,
)
from remembrancer.domain.hash_chain import event_hash


@pytest.fixture(params=itertools.product(KINDS, KINDS), ids="-to-".join)
def houses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[House, House]]:
    """Give a memory that has lived, and an empty one, of each kind to each other."""
    one, other = request.param
    with store_of(one, tmp_path / "lived") as lived, store_of(other, tmp_path / "empty") as empty:
        live(lived)
        yield lived, empty


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    with store_of("memory", tmp_path_factory.mktemp("lived")) as house:
        live(house)
        return exported(house)


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with store_of(request.param, tmp_path / "empty") as house:
        yield house


# -- The same as before --------------------------------------------------------


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
    assert told.versions_by_words == empty.store.sparse.count() == lived.store.sparse.count()
    for kind in (RecallKind.DELIBERATE, RecallKind.HISTORICAL):
        assert found_by_words(empty, kind=kind) == found_by_words(lived, kind=kind) != []


def test_vectors_come_by_reindexing(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))
    before = empty.memory.recall(a_query(), a_context()).mode_reason

    empty.memory.reindex()

    assert before == "no_vector_index"
    assert empty.memory.recall(a_query(), a_context()) == lived.memory.recall(
        a_query(), a_context()
    )
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


def test_life_goes_on(houses: tuple[House, House]) -> None:
    lived, empty = houses
    restored(empty, exported(lived))

    for house in houses:
        Spender(house.store.ledger, owner="ben").settle(THIRD_ID, charge=1)
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


# -- Or nothing at all ---------------------------------------------------------


def assert_empty(house: House) -> None:
    """See that nothing was written."""
    assert house.store.archive.is_empty()
    assert house.store.sparse.count() == 0
    assert house.memory.spend(tenant="acme") == []


def test_only_an_empty_store_takes_it(empty: House, lines: Lines) -> None:
    empty.memory.remember(an_entry("here before"))

    with pytest.raises(StoreNotEmptyError):
        restored(empty, lines)

    assert len(recorded(empty)) == 1


def test_a_file_that_is_cut_off_anywhere_is_refused(empty: House, lines: Lines) -> None:
    for length in range(len(lines.data)):
        with pytest.raises((DamagedExportError, UnreadableExportError)):
            restored(empty, Lines(lines.data[:length]))

    assert_empty(empty)


def test_a_line_that_is_cut_off_is_refused(empty: House, lines: Lines) -> None:
    for length in (len(lines.data) - 1, len(lines.data) // 2):
        cut = [*lines.data[:length], lines.data[length][:-1]]

        with pytest.raises(DamagedExportError) as refused:
            restored(empty, Lines(cut))

        assert refused.value.line == length + 1
    assert_empty(empty)


def test_any_byte_that_changed_is_seen(empty: House, lines: Lines) -> None:
    for number in range(1, len(lines.data)):
        line = bytearray(lines.data[number])
        line[len(line) // 2] ^= 1
        changed = [*lines.data[:number], bytes(line), *lines.data[number + 1 :]]

        with pytest.raises(DamagedExportError):
            restored(empty, Lines(changed))

    assert_empty(empty)


@pytest.mark.parametrize(
    "foreign",
    [[], [b"\n"], [b"{}\n"], [b"\x00\xff" * 9], [b'{"line":"header","format":"x","version":1}\n'],
     [b"SQLite format 3\0"], [b"[" * 100_000]],
    ids=range(7),
)  # fmt: skip
def test_a_foreign_file_is_called_one(empty: House, foreign: list[bytes]) -> None:
    with pytest.raises(UnreadableExportError):
        restored(empty, Lines(foreign))

    assert_empty(empty)


def test_a_newer_format_is_called_newer(empty: House, lines: Lines) -> None:
    newer = lines.altered(lambda said: said[0].update(version=2, more="of it"))

    with pytest.raises(UnreadableExportError, match="upgrade"):
        restored(empty, newer)

    assert_empty(empty)


def test_an_event_of_a_newer_release_is_told_by_its_topic(empty: House, lines: Lines) -> None:
    def add(said: list[dict[str, Any]]) -> None:
        event = next(one for one in said if one["line"] == "event" and one["version"] == 1)
        event["topic"] = "remembrancer.of_tomorrow"
        event["hash"] = _hash(event)

    with pytest.raises(UnknownTopicError):
        restored(empty, lines.altered(add))

    assert_empty(empty)


def test_something_behind_the_end_is_refused(empty: House, lines: Lines) -> None:
    with pytest.raises(DamagedExportError, match="follows the end"):
        restored(empty, Lines([*lines.data, b"\n"]))

    assert_empty(empty)


def _of(said: list[dict[str, Any]], kind: str, number: int = 0) -> dict[str, Any]:
    return [one for one in said if one["line"] == kind][number]


def _hash(event: dict[str, Any]) -> str:
    predecessor = bytes.fromhex(event["predecessor"])
    return event_hash(predecessor, event["topic"], event["state"].encode()).hex()


def _followed(said: list[dict[str, Any]], kind: str, version: int) -> dict[str, Any]:
    """Return a line of this version that another one follows."""
    name = "stream" if kind == "event" else "entry"
    there = {(one[name], one["version"]) for one in said if one["line"] == kind}
    return next(
        one
        for one in said
        if one["line"] == kind and one["version"] == version
        if (one[name], version + 1) in there
    )


def _drop_second_version(said: list[dict[str, Any]]) -> None:
    said.remove(_followed(said, "event", 2))
    said[0]["events"] -= 1
    said[-1]["events"] -= 1


def _rewrite_first_version(said: list[dict[str, Any]]) -> None:
    """As a forger would, who can't know that another event follows."""
    event = _followed(said, "event", 1)
    event["state"] = event["state"].replace('"kind":"note"', '"kind":"fact"')
    event["hash"] = _hash(event)


def _give_to_another_tenant(said: list[dict[str, Any]]) -> None:
    other = next(one for one in said if one["line"] == "owner" and one["tenant"] == "acme-corp")
    said.remove(other)
    said.insert(1, other)  # Known early enough, and the numbers as they rise.
    for number, one in enumerate((one for one in said if one["line"] == "owner"), start=1):
        one["number"] = number
    erased = next(one for one in said if one.get("topic", "").endswith("entry_erased"))
    erased["of"] = 1


def _swap_owner_of_first(said: list[dict[str, Any]]) -> None:
    _of(said, "owner")["owner"] = "eve"


def _alter_text(said: list[dict[str, Any]]) -> None:
    _of(said, "original")["text"] += "!"


def _drop_original(said: list[dict[str, Any]]) -> None:
    said.remove(_followed(said, "original", 1))
    said[0]["originals"] -= 1
    said[-1]["originals"] -= 1


def _swap_positions(said: list[dict[str, Any]]) -> None:
    one, two = _of(said, "event"), _of(said, "event", 1)
    one["position"], two["position"] = two["position"], one["position"]


def _put_an_event_last(said: list[dict[str, Any]]) -> None:
    said.insert(-1, said.pop(said.index(_of(said, "event", -1))))


def _name_nobody(said: list[dict[str, Any]]) -> None:
    _of(said, "session")["of"] = 99


def _miscount(said: list[dict[str, Any]]) -> None:
    said[0]["originals"] += 1


def _second_header(said: list[dict[str, Any]]) -> None:
    said.insert(1, dict(said[0]))


def _unknown_field(said: list[dict[str, Any]]) -> None:
    _of(said, "event")["more"] = 1


@pytest.mark.parametrize(
    "change",
    [
        _drop_second_version,
        _rewrite_first_version,
        _give_to_another_tenant,
        _swap_owner_of_first,
        _alter_text,
        _drop_original,
        _swap_positions,
        _put_an_event_last,
        _name_nobody,
        _miscount,
        _second_header,
        _unknown_field,
    ],
)
def test_what_a_forger_changed_is_refused(
    empty: House, lines: Lines, change: Callable[[list[dict[str, Any]]], None]
) -> None:
    """Also where the last line was made to agree."""
    with pytest.raises(DamagedExportError):
        restored(empty, lines.altered(change))

    assert_empty(empty)


def test_a_text_of_an_erased_entry_is_not_let_in(empty: House, lines: Lines) -> None:
    erased = next(one for one in lines.parsed() if one.get("topic", "").endswith("entry_erased"))

    def revive(said: list[dict[str, Any]]) -> None:
        text = dict(_of(said, "original"), version=1)
        text["entry"] = _entry_of(erased)
        said.insert(said.index(_of(said, "original")), text)
        said[0]["originals"] += 1
        said[-1]["originals"] += 1

    with pytest.raises(DamagedExportError, match="erased"):
        restored(empty, lines.altered(revive))

    assert_empty(empty)


def _entry_of(event: dict[str, Any]) -> str:
    return str(UUID(json.loads(event["state"])["entry_id"]["_data_"]))


def test_a_file_that_changes_between_the_readings_is_refused(empty: House, lines: Lines) -> None:
    def alter(said: list[dict[str, Any]]) -> None:
        original = _of(said, "original", -1)
        said.remove(original)
        said[0]["originals"] -= 1
        said[-1]["originals"] -= 1

    readings = iter([lines, lines.altered(alter)])

    with pytest.raises(DamagedExportError, match="meanwhile"):
        empty.container.restore()(lambda: next(readings).open())

    assert_empty(empty)


def test_a_failed_restore_can_be_done_again(empty: House, lines: Lines) -> None:
    with pytest.raises(DamagedExportError):
        restored(empty, lines.altered(_rewrite_first_version))

    told = restored(empty, lines)

    assert lines.told is not None
    assert Counts(events=told.events, originals=told.originals, sessions=told.sessions) == Counts(
        events=lines.told.events, originals=lines.told.originals, sessions=lines.told.sessions
    )
    assert_agreement(empty.store, all_have_vectors=False)
