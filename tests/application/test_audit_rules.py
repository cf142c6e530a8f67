"""The auditor's own fold of the log against the domain's: what it can decide is sound."""

import json
from functools import cache
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.application.recorded_log import Lives

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.application.audit.invariants import INVARIANTS, OF_SEALS
from remembrancer.application.audit.natural_key import (
    dashed,
    entry_stream_key,
    stream_key,
    version_key,
)
from remembrancer.application.audit.reading import StateReader
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
