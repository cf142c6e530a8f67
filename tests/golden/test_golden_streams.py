"""Recorded streams must be read for ever, and today's code must still write their bytes.

A file holds one stream: an event a line, as canonical JSON, with its stored state and the hash
that chains it to the line before.  A file is never changed; a changed format gets an upcast and a
file of its own beside the old one.
"""

import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.domain import (
    EmbeddingTuple,
    EntryHeader,
    EntryId,
    LeftOut,
    LeftOutReason,
    RecallKind,
    RecallMode,
    Selection,
    Sensitivity,
)
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.l3_selection import AssembledPack, L3Selection, SelectedEntry
from remembrancer.domain.recall import Ranks
from remembrancer.domain.stored_format import EVENTS

HERE = Path(__file__).parent
START = datetime(2030, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
FIRST, SECOND = EntryId(UUID(int=1)), EntryId(UUID(int=2))
HEADER = EntryHeader(
    tenant="acme",
    owner="ana",
    entry_id=FIRST,
    version=1,
    scope="project/alpha",
    kind="decision",
    sensitivity=Sensitivity.INTERNAL,
)
SELECTION = Selection(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    session="session-1",
    stage="plan",
    kind=RecallKind.DELIBERATE,
    entries=(
        SelectedEntry(
            entry_id=SECOND,
            version=3,
            digest="b" * 64,
            score=1 / 61 + 1 / 62,
            ranks=Ranks(dense_rank=1, dense_score=0.75, sparse_rank=2, sparse_score=3.5),
        ),
        SelectedEntry(
            entry_id=FIRST,
            version=1,
            digest="a" * 64,
            score=1 / 61,
            ranks=Ranks(sparse_rank=1, sparse_score=4.25),
        ),
    ),
    mode=RecallMode.HYBRID,
    mode_reason="",
    left_out=(LeftOut(entry_id=EntryId(UUID(int=3)), reason=LeftOutReason.STALE),),
    left_out_count=7,
    limit=2,
    filter={"tenant": ("acme",), "owner": ("ana",), "scope": ("project", "project/ä")},
    embedding_tuple=EmbeddingTuple(
        provider="wordllama",
        model="l2-supercat",
        model_revision="0.4.0",
        dimensions=256,
        input_preparation="plain@1",
    ),
    sealed_query_vector="c2VhbGVkIHZlY3Rvcg==",
)
PACK = AssembledPack(
    number=1,
    digest="c" * 64,
    label="0123456789abcdef",
    format_version=1,
    included=("rules", str(SECOND)),
    omitted=((str(FIRST), "budget"),),
    token_budget=2000,
    tokens=311,
    token_counter="wordllama-l2-supercat@1",  # noqa: S106  # counts tokens, is no password
    items_digest="d" * 64,
)


def _life_of_an_entry() -> MemoryEntry:
    entry = MemoryEntry.remember(HEADER, digest="a" * 64, length=42, at=START)
    entry.correct(
        EntryHeader(
            tenant="acme",
            owner="ana",
            entry_id=FIRST,
            version=2,
            scope="project/älpha",
            kind="note",
            sensitivity=Sensitivity.RESTRICTED,
        ),
        digest="b" * 64,
        length=1_048_576,
        reason="It said something private.",
        at=START + timedelta(seconds=1),
    )
    entry.erase(reason="gdpr.request", at=START + timedelta(days=400))
    return entry


def _stage_with_two_packs() -> L3Selection:
    stage = L3Selection.select(SELECTION, at=START)
    stage.assemble(PACK, at=START + timedelta(seconds=1))
    stage.assemble(
        AssembledPack(
            number=2,
            digest="e" * 64,
            label="fedcba9876543210",
            format_version=1,
            included=(),
            omitted=(("rules", "budget"), (str(SECOND), "budget"), (str(FIRST), "erased")),
            token_budget=0,
            tokens=0,
            token_counter="wordllama-l2-supercat@1",  # noqa: S106  # as above
            items_digest="d" * 64,
        ),
        at=START + timedelta(seconds=2),
    )
    return stage


RECORDED = {
    "memory_entry-1.jsonl": _life_of_an_entry,
    "l3_selection-1.jsonl": _stage_with_two_packs,
}


def _lines(events: Iterable[Any]) -> bytes:
    """Return what a file holds for these events."""
    mapper, last, lines = ListedMapper(), GENESIS, []
    for event in events:
        record = mapper.to_stored_event(event)
        last = event_hash(last, record.topic, record.state)
        lines.append(
            canonical_json(
                {
                    "hash": last.hex(),
                    "state": json.loads(record.state),
                    "stream_id": str(record.originator_id),
                    "topic": record.topic,
                    "version": record.originator_version,
                }
            )
        )
    return b"".join(line + b"\n" for line in lines)


def _folded(name: str) -> Any:
    """Read a file as an auditor would, checking each hash, and fold its events."""
    mapper, last, aggregate = ListedMapper(), GENESIS, None
    for line in (HERE / name).read_bytes().splitlines():
        record = json.loads(line)
        state = canonical_json(record["state"])
        last = event_hash(last, record["topic"], state)
        assert last.hex() == record["hash"]
        stored = StoredEvent(UUID(record["stream_id"]), record["version"], record["topic"], state)
        aggregate = mapper.to_domain_event(stored).mutate(aggregate)
    return aggregate


@pytest.mark.parametrize("name", RECORDED)
def test_same_decisions_are_recorded_in_the_same_bytes(name: str) -> None:
    aggregate = RECORDED[name]()

    assert _lines(aggregate.pending_events) == (HERE / name).read_bytes()


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_stream_folds_to_what_was_decided(name: str) -> None:
    aggregate = RECORDED[name]()
    aggregate.collect_events()

    assert _folded(name) == aggregate


def test_recorded_entry_reads_so() -> None:
    entry = _folded("memory_entry-1.jsonl")

    assert str(entry.id) == "abc533fd-5a30-5cde-be6a-49ff5c6d5971"
    assert (entry.tenant, entry.owner, entry.entry_id) == ("acme", "ana", FIRST)
    assert (entry.scope, entry.kind, entry.sensitivity) == ("project/älpha", "note", "restricted")
    assert (entry.text_version, entry.erased) == (2, True)
    assert entry.digests == ["a" * 64, "b" * 64]
    assert entry.created_on == datetime(2030, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert entry.modified_on == datetime(2031, 2, 5, 12, 0, 0, 250_000, tzinfo=UTC)


def test_recorded_selection_reads_so() -> None:
    stage = _folded("l3_selection-1.jsonl")

    assert str(stage.id) == "d256d0a8-d8db-51d1-82f7-1b45d45863e9"
    assert stage.selection == SELECTION
    assert [one.score for one in stage.selection.entries] == [
        0.03252247488101534,
        0.01639344262295082,
    ]
    assert [pack.number for pack in stage.packs] == [1, 2]
    assert stage.packs[0] == PACK
    assert stage.packs[1].omitted[2] == (str(FIRST), "erased")


def test_words_of_a_reason_are_not_in_the_recording() -> None:
    recorded = (HERE / "memory_entry-1.jsonl").read_text()

    assert "private" not in recorded
    assert recorded.count('"reason":"stated"') == 1


def test_every_event_has_a_recording() -> None:
    topics = {
        json.loads(line)["topic"]
        for path in HERE.glob("*.jsonl")
        for line in path.read_text().splitlines()
    }

    assert topics == set(EVENTS)


FORMAT = {
    "remembrancer.memory_entry.entry_remembered": [
        "originator_topic",
        "tenant",
        "owner",
        "entry_id",
        "digest",
        "length",
        "scope",
        "kind",
        "sensitivity",
    ],
    "remembrancer.memory_entry.entry_corrected": [
        "entry_id",
        "digest",
        "length",
        "scope",
        "kind",
        "sensitivity",
        "reason",
    ],
    "remembrancer.memory_entry.entry_erased": [
        "entry_id",
        "reason",
    ],
    "remembrancer.l3_selection.l3_entries_selected": [
        "originator_topic",
        "tenant",
        "owner",
        "principal",
        "session",
        "stage",
        "kind",
        "entries",
        "mode",
        "mode_reason",
        "left_out",
        "left_out_count",
        "k",
        "filter",
        "embedding_tuple",
        "query_embedding",
    ],
    "remembrancer.l3_selection.context_pack_assembled": [
        "number",
        "digest",
        "label",
        "format_version",
        "included",
        "omitted",
        "token_budget",
        "tokens",
        "token_counter",
        "items_digest",
    ],
    "remembrancer.reservation_ledger.reservation_admitted": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "request_digest",
        "reserved_quanta",
        "lease_s",
        "day_quanta_before",
        "day_requests_before",
        "ceiling_quanta",
        "ceiling_requests",
        "mechanism_version",
        "configuration_digest",
        "embedding_tuple_digest",
        "pricing_digest",
        "kind",
        "deadline",
    ],
    "remembrancer.reservation_ledger.reservation_settled": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "reserved_quanta",
        "charged_quanta",
        "usage_tokens",
    ],
    "remembrancer.reservation_ledger.reservation_became_unknown": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "charged_quanta",
        "reason",
    ],
    "remembrancer.reservation_ledger.reservation_reconciled": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "unknown_quanta",
        "charged_quanta",
        "stated_quanta",
        "evidence_digest",
        "reconciled_by",
    ],
    "remembrancer.cache_context.cache_context_bound": [
        "originator_topic",
        "tenant",
        "owner",
        "surface",
        "generation",
        "context_digest",
        "configuration_digest",
    ],
    "remembrancer.cache_context.cache_context_replaced": [
        "tenant",
        "owner",
        "surface",
        "generation",
        "context_digest",
        "configuration_digest",
    ],
    "remembrancer.cache_context.query_vectors_prepared": [
        "tenant",
        "owner",
        "surface",
        "generation",
        "reservation_id",
        "vectors",
    ],
    "remembrancer.cache_context.admission_withdrawn": [
        "tenant",
        "owner",
        "surface",
        "generation",
        "reason",
    ],
}


@pytest.mark.parametrize("topic", EVENTS)
def test_fields_of_an_event_are_a_public_format(topic: str) -> None:
    """A new field needs a default or an upcast, a file of its own, and a line here."""
    common = {"originator_id", "originator_version", "timestamp"}

    assert [one.name for one in fields(EVENTS[topic]) if one.name not in common] == FORMAT[topic]
