"""Restoring: or nothing at all, of a file that is cut off, altered, forged, foreign or newer."""

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
    live,
    recorded,
    restored,
    store_of,
    words_of,
)
from tests.application.house import House, an_entry

from remembrancer.application.ports.archive import Counts
from remembrancer.domain.errors import UnknownTopicError
from remembrancer.domain.export_errors import (
    DamagedExportError,
    StoreNotEmptyError,
    UnreadableExportError,
)
from remembrancer.domain.hash_chain import event_hash


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    with store_of("memory", tmp_path_factory.mktemp("lived")) as house:
        live(house)
        return exported(house)


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with store_of(request.param, tmp_path / "empty") as house:
        yield house


def assert_empty(house: House) -> None:
    """See that nothing was written."""
    with house.store.transactions.over_all_tenants():
        assert house.store.archive.is_empty()
    assert words_of(house) == 0
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
