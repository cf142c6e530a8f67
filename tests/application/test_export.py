"""Exporting: everything or a part, as lines of a format that is written down in adr/0024."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.application.exported import KINDS, exported, live, recorded, store_of
from tests.application.house import House, an_entry

from remembrancer.application.export import ExportRequest
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import InvalidInputError, MalformedRecordError
from remembrancer.domain.l3_selection import L3Selection


@pytest.fixture(params=KINDS)
def lived(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with store_of(request.param, tmp_path / "lived") as house:
        live(house)
        yield house


def kinds(said: list[dict[str, Any]]) -> set[str]:
    return {one["line"] for one in said}


def test_the_first_line_says_what_it_is_and_how_much(lived: House) -> None:
    header, *lines = exported(lived).parsed()

    assert (header["format"], header["version"]) == ("remembrancer-export", 1)
    assert header["holds_originals"]
    for kind in ("event", "original", "session"):
        assert header[f"{kind}s"] == len([one for one in lines if one["line"] == kind]) > 0


def test_the_last_line_has_the_digest_of_all_before(lived: House) -> None:
    lines = exported(lived)

    end = lines.parsed()[-1]

    assert end["line"] == "end"
    assert end["lines"] == len(lines.data) - 1
    assert end["sha256"] == hashlib.sha256(b"".join(lines.data[:-1])).hexdigest()
    assert lines.told is not None
    assert lines.told.sha256 == end["sha256"]


def test_events_are_there_byte_for_byte(lived: House) -> None:
    said = exported(lived).parsed()

    owners = {one["number"]: one for one in said if one["line"] == "owner"}
    events = [one for one in said if one["line"] == "event"]
    for line, event in zip(events, recorded(lived), strict=True):
        assert line["state"].encode() == event.state
        assert (line["stream"], line["version"]) == (str(event.stream_id), event.version)
        assert (line["predecessor"], line["hash"]) == (event.predecessor.hex(), event.own.hex())
        assert owners[line["of"]]["owner"] == event.owner


def test_the_same_store_gives_the_same_bytes(lived: House) -> None:
    assert exported(lived).data == exported(lived).data


def test_an_owner_is_named_once_before_its_first_line(lived: House) -> None:
    said = exported(lived).parsed()

    known: set[int] = set()
    for one in said:
        if one["line"] == "owner":
            assert one["number"] == len(known) + 1
            known.add(one["number"])
        assert one.get("of", 1) in known | {1}
    assert len(known) == 3


def test_without_originals_no_text_salt_or_key_is_in_it(lived: House) -> None:
    lines = exported(lived, originals=False)

    assert kinds(lines.parsed()) == {"header", "owner", "event", "end"}
    assert b"invoice" not in b"".join(lines.data)


def test_a_tenants_part_holds_no_other(lived: House) -> None:
    lines = exported(lived, tenant="acme", originals=True)

    owners = [one for one in lines.parsed() if one["line"] == "owner"]
    assert {(one["tenant"], one["owner"]) for one in owners} == {("acme", "ana"), ("acme", "ben")}
    assert b"abroad" not in b"".join(lines.data)


def test_an_owners_part_is_without_originals_unless_asked(lived: House) -> None:
    plain = exported(lived, tenant="acme", owner="ben").parsed()
    whole = exported(lived, tenant="acme", owner="ben", originals=True).parsed()

    assert kinds(plain) == {"header", "owner", "event", "end"}
    assert [one["text"] for one in whole if one["line"] == "original"] == ["invoice of ben's"]


def test_one_stream_brings_its_own_originals(lived: House) -> None:
    entry_id = lived.memory.remember(an_entry("invoice four"))
    entry = MemoryEntry.create_id("acme", entry_id)
    selection = L3Selection.create_id("acme", "s", "plan")

    of_entry = exported(lived, stream=entry, originals=True).parsed()
    of_selection = exported(lived, stream=selection, originals=True).parsed()

    assert [one["text"] for one in of_entry if one["line"] == "original"] == ["invoice four"]
    [session] = [one for one in of_selection if one["line"] == "session"]
    assert session["selection"] == str(selection)
    assert [number for number, _ in session["items"]] == [1, 2]


@pytest.mark.parametrize(
    "part",
    [
        {"tenant": "nobody"},
        {"tenant": "acme", "owner": "nobody"},
        {"stream": UUID(int=1)},
        {"owner": "ana"},
        {"tenant": "acme", "stream": UUID(int=1)},
        {"tenant": ""},
    ],
    ids=str,
)
def test_a_part_that_nobody_has_is_refused(lived: House, part: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        exported(lived, **part)


def test_an_empty_store_is_exported_as_one(tmp_path: Path) -> None:
    with store_of("sqlite", tmp_path / "empty") as house:
        lines = exported(house)

    assert kinds(lines.parsed()) == {"header", "end"}


def test_progress_is_told(lived: House) -> None:
    told: list[tuple[int, int]] = []
    lines: list[bytes] = []
    lived.container.export()(ExportRequest(), lines.append, progress=lambda *far: told.append(far))

    assert told[-1][0] == told[-1][1] > 0


def test_an_event_that_was_altered_ends_the_export(tmp_path: Path) -> None:
    with store_of("sqlite", tmp_path / "lived") as house:
        live(house)
        connection = house.store.archive._database.connection()  # type: ignore[attr-defined]  # SQLite.
        connection.execute("DROP TRIGGER stored_events_are_not_changed")
        connection.execute(
            "UPDATE stored_events SET state = CAST(replace(state, 'ana', 'eve') AS BLOB)"
            " WHERE notification_id = 1"
        )

        with pytest.raises(MalformedRecordError) as refused:
            exported(house)

    assert refused.value.version == 1
