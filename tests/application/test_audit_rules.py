"""The auditor's own fold of the log against the domain's: what it can decide is sound."""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.application.recorded_log import Lives

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.application.audit.finding import Findings, Place
from remembrancer.application.audit.invariants import INVARIANTS, OF_SEALS
from remembrancer.application.audit.natural_key import (
    dashed,
    entry_stream_key,
    stream_key,
    version_key,
)
from remembrancer.application.audit.permitted import check_ranks
from remembrancer.application.audit.reading import StateReader, utc_time
from remembrancer.application.audit.records import audit_records
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.reservation_ledger import ReservationLedger

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_domain_decides_is_sound(seed: int) -> None:
    rows = Lives(seed).live(400)

    findings = audit_records(rows, reader=FastStateReader())

    assert findings == []


def test_the_lives_hold_events_of_every_kind() -> None:
    """Or the test above would prove less than it says."""
    topics = {row[3] for seed in range(10) for row in Lives(seed).live(400)}

    assert len(topics) == 13


@pytest.mark.parametrize("recording", sorted(GOLDEN.glob("*.jsonl")), ids=lambda path: path.stem)
def test_old_recordings_are_read(recording: Path) -> None:
    exact, fast = StateReader(), FastStateReader()
    for line in recording.read_text().splitlines():
        row = json.loads(line)
        state = canonical_json(row["state"])

        assert exact.read(row["topic"], state)[1] == ""
        assert fast.read(row["topic"], state)[1] == ""


def _fields(state: object) -> dict[str, object]:
    names = [name for name in dir(state) if not name.startswith("_")]
    told = {name: getattr(state, name) for name in names}
    told["entries"] = [_fields(one) for one in told.get("entries", ())]
    return told


@pytest.mark.parametrize("seed", range(5))
def test_both_readers_read_the_same(seed: int) -> None:
    exact, fast = StateReader(), FastStateReader()
    for _, _, _, topic, state, _, _ in Lives(seed).live(300):
        assert _fields(exact.read(topic, state)[0]) == _fields(fast.read(topic, state)[0])


@cache
def _lived(seed: int) -> list[RawEvent]:
    return Lives(seed).live(60)


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), seed=st.integers(0, 3))
def test_both_readers_refuse_the_same(place: int, byte: int, seed: int) -> None:
    """A byte of a state is replaced by another."""
    rows = _lived(seed)
    _, _, _, topic, state, _, _ = rows[place % len(rows)]
    spot = place % len(state)
    altered = state[:spot] + bytes([byte]) + state[spot + 1 :]

    exact, fast = StateReader().read(topic, altered), FastStateReader().read(topic, altered)

    assert exact[1] == fast[1]


@pytest.mark.parametrize("altered", [{"filter": {"_type_": []}}, {"filter": {"_type_": ["a"]}}])
@pytest.mark.parametrize("space", ["as recorded", None])
def test_mark_of_typed_values_is_refused_as_a_key(altered: dict[str, Any], space: Any) -> None:
    """No writer can have recorded it, and the log doesn't read it."""
    topic, state = _selected(altered, space)

    for reader in (StateReader(), FastStateReader()):
        assert reader.read(topic, state)[1] == "has a typed value where none belongs"


@pytest.mark.parametrize("space", ["as recorded", None])
def test_mark_of_typed_values_is_a_name_like_any_other(space: Any) -> None:
    topic, state = _selected({"owner": "_type_", "filter": {"a": ["_type_"]}}, space)

    for reader in (StateReader(), FastStateReader()):
        assert reader.read(topic, state)[1] == ""


def _selected(altered: dict[str, Any], space: Any) -> tuple[str, bytes]:
    lines = (GOLDEN / "l3_selection-1.jsonl").read_text().splitlines()
    row = next(row for row in map(json.loads, lines) if "entries" in row["state"])
    if space is None:
        altered = {**altered, "embedding_tuple": None}
    return row["topic"], canonical_json({**row["state"], **altered})


numbers = st.sampled_from([0.0, -0.5, 1e-5, 1e-4, 0.25, 9.5, 1e16]) | st.floats(
    allow_nan=False, allow_infinity=False
)
ranks = st.none() | st.integers(-1, 3)


@given(
    entries=st.lists(
        st.fixed_dictionaries(
            {
                "digest": st.just("d"),
                "entry_id": st.just("e"),
                "version": st.just(1),
                "dense_rank": ranks,
                "dense_score": st.none() | numbers,
                "score": numbers,
                "sparse_rank": ranks,
                "sparse_score": st.none() | numbers,
            }
        ),
        max_size=3,
    ),
    space=st.sampled_from([None, {"model": "m"}]),
)
def test_both_readers_judge_a_selections_numbers_alike(
    entries: list[dict[str, object]], space: dict[str, object] | None
) -> None:
    """Also where the fast one has proved already what is asked of them."""
    topic = L3Selection.L3EntriesSelected.TOPIC
    usual = json.loads(next(row[4] for row in _lived(0) if row[3] == topic))
    spelt = canonical_json({**usual, "entries": entries, "embedding_tuple": space})

    said = []
    for reader in (StateReader(), FastStateReader()):
        state, problem = reader.read(topic, spelt)
        findings = Findings()
        check_ranks(state, Place(findings))
        said.append((problem, _fields(state), findings.kept))

    assert said[0] == said[1]


@pytest.mark.parametrize(
    "spelt",
    [
        "2030-01-31T12:00:00+00:00",
        "2030-01-31T12:00:00.000001+00:00",
        "2030-01-31T14:00:00+02:00",
    ],
)
def test_a_time_is_read_as_utc(spelt: str) -> None:
    at = utc_time(spelt)

    assert at.tzinfo is UTC
    assert at.replace(microsecond=0) == datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "spelt",
    [
        "2030-01-31T12:00:00.000000+00:00",
        "2030-01-31T12:00:00.100+00:00",
        "2030-01-31T12:00:00,000001+00:00",
        "2030-01-31T12:00:00+00:60",
        "2030-01-31T12:00:00Z",
        "2030-01-31 12:00:00+00:00",
        "2030-W05-4T12:00:00+00:00",
        "20300131T120000.000+00:00",
        "2030-01-31T12:00:00",
    ],
)
def test_a_time_has_one_spelling(spelt: str) -> None:
    with pytest.raises(ValueError, match=r"time|isoformat"):
        utc_time(spelt)


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(tenant=names, owner=names, other=names, number=st.uuids(), version=st.integers(1, 99))
def test_ids_are_those_of_the_domain(
    tenant: str, owner: str, other: str, number: UUID, version: int
) -> None:
    entry = MemoryEntry.create_id(tenant, number).bytes

    assert entry_stream_key(tenant, str(number)) == entry
    assert stream_key("memory_entry", tenant, str(number)) == entry
    assert dashed(number.hex) == str(number)
    assert version_key(number.bytes, version) == version_id(EntryId(number), version).bytes
    assert (
        stream_key("l3_selection", tenant, owner, other)
        == L3Selection.create_id(tenant, owner, other).bytes
    )
    assert (
        stream_key("reservation_ledger", tenant, owner)
        == ReservationLedger.create_id(tenant, owner).bytes
    )
    assert (
        stream_key("cache_context", tenant, owner, other)
        == CacheContext.create_id(tenant, owner, other).bytes
    )


def test_every_invariant_has_a_name_a_sentence_and_a_source() -> None:
    everything = (*INVARIANTS, *OF_SEALS)

    assert len({one.name for one in everything}) == len(everything)
    assert all(one.sentence.endswith(".") and one.source for one in everything)
