"""Recorded streams must be read for ever, and today's code must still write their bytes.

A file holds one stream: an event a line, as canonical JSON, with its stored state and the hash
that chains it to the line before.  A file is never changed; a changed format gets an upcast and a
file of its own beside the old one.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent
from tests.golden.decided import CRASHED, FIRST, INDEXED, LATE, LOST, PACK, RECORDED, SELECTION

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.reservation import DayTotals, ReservationKind, ReservationState
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.stored_format import EVENTS

HERE = Path(__file__).parent
LAST_HASHES = {
    "memory_entry-1": "115a536e07f16f30320adabb189e78855c35379a3e9a821a7a24986a30e66654",
    "l3_selection-1": "a7cebbf4f677a55f61988af6e0505f28ce1d35f71d0f08ca625a93236a2d2256",
    "reservation_ledger-1": "94015a8f5fa6f2680385fea9cfc15594a5ad396ee97d2610a822fc2a2e62b797",
    "cache_context-1": "a9b560dc99c08da082baf223acb0e4b9453d73c897b74bfcbadd8f1b84e51c90",
}
"""Each file's last hash, which covers every byte of its events."""


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


def _records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_bytes().splitlines()]


def _events(name: str) -> Iterator[Any]:
    """Read a file as an auditor would, checking each hash."""
    mapper, last = ListedMapper(), GENESIS
    for record in _records(name):
        state = canonical_json(record["state"])
        last = event_hash(last, record["topic"], state)
        assert last.hex() == record["hash"]
        stored = StoredEvent(UUID(record["stream_id"]), record["version"], record["topic"], state)
        yield mapper.to_domain_event(stored)


def _folded(name: str) -> Any:
    aggregate = None
    for event in _events(name):
        aggregate = event.mutate(aggregate)
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


def test_recordings_are_not_changed_together_with_the_code() -> None:
    last_hashes = {path.stem: _records(path.name)[-1]["hash"] for path in HERE.glob("*.jsonl")}

    assert last_hashes == LAST_HASHES
    assert {Path(name).stem for name in RECORDED} == set(LAST_HASHES)


def test_every_event_has_a_recording() -> None:
    topics = {record["topic"] for path in HERE.glob("*.jsonl") for record in _records(path.name)}

    assert topics == set(EVENTS)


def test_recorded_entry_reads_so() -> None:
    entry = _folded("memory_entry-1.jsonl")

    assert str(entry.id) == "abc533fd-5a30-5cde-be6a-49ff5c6d5971"
    assert (entry.tenant, entry.owner, entry.entry_id) == ("acme", "ana", FIRST)
    assert (entry.scope, entry.kind, entry.sensitivity) == ("project/älpha", "note", "restricted")
    assert (entry.text_version, entry.erased) == (2, True)
    assert entry.digests == ["a" * 64, "b" * 64]
    assert entry.created_on == datetime(2030, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert entry.modified_on == datetime(2031, 2, 5, 12, 0, 0, 250_000, tzinfo=UTC)


def test_words_of_a_reason_are_not_in_the_recording() -> None:
    recorded = (HERE / "memory_entry-1.jsonl").read_text()

    assert "private" not in recorded
    assert recorded.count('"reason":"stated"') == 1


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


def test_recorded_ledger_reads_so() -> None:
    ledger = _folded("reservation_ledger-1.jsonl")

    assert str(ledger.id) == "609bf062-7c5a-5170-8db7-1a92c38c4438"
    assert (ledger.tenant, ledger.owner, ledger.version) == ("acme", "ana", 9)
    assert ledger.days == {"2030-01-02": DayTotals(quanta=25, requests=1)}
    assert ledger.pending == ()
    assert ledger.modified_on == datetime(2030, 1, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reservation_id", "kind", "state", "day", "reserved_quanta", "charged_quanta"),
    [
        (INDEXED, "indexing", "settled", "2030-01-01", 40, 3),
        (LOST, "query", "reconciled", "2030-01-01", 300, 120),
        (LATE, "query", "settled", "2030-01-01", 25, 2),
        (CRASHED, "query", "unknown", "2030-01-02", 25, 25),
    ],
)
def test_recorded_reservation_reads_so(
    reservation_id: UUID,
    kind: str,
    state: str,
    day: str,
    reserved_quanta: int,
    charged_quanta: int,
) -> None:
    reservation = reservation_in(_events("reservation_ledger-1.jsonl"), reservation_id)

    assert reservation is not None
    assert (reservation.kind, reservation.state) == (
        ReservationKind(kind),
        ReservationState(state),
    )
    assert reservation.day == day
    assert (reservation.reserved_quanta, reservation.charged_quanta) == (
        reserved_quanta,
        charged_quanta,
    )


def test_recorded_indexing_is_as_it_was_before_queries() -> None:
    """An older release must still read it (design 4.2, rule 7)."""
    indexing, query, *_ = (one["state"] for one in _records("reservation_ledger-1.jsonl"))

    assert not {"kind", "deadline"} & set(indexing)
    assert set(query) - set(indexing) == {"kind", "deadline"}
    assert query["deadline"]["_data_"] == "2030-01-01T12:00:16.250000+00:00"


def test_recorded_days_add_up_to_what_was_spent() -> None:
    """An auditor's sum: every change of each day, from the events alone."""
    spent: dict[str, int] = {}
    for event in _events("reservation_ledger-1.jsonl"):
        spent[event.day] = spent.get(event.day, 0) + event.day_change().quanta

    assert spent == {"2030-01-01": 3 + 120 + 2, "2030-01-02": 25}


def test_recorded_context_reads_so() -> None:
    context = _folded("cache_context-1.jsonl")

    assert str(context.id) == "719180a5-4362-5ee0-86c1-3d04eb2cb7b9"
    assert (context.tenant, context.owner, context.surface) == ("acme", "ana", "ide")
    assert (context.generation, context.version) == (3, 4)
    assert (context.context_digest, context.configuration_digest) == (None, None)
    assert context.modified_on == datetime(2030, 1, 1, 12, 6, 0, 250_000, tzinfo=UTC)


def test_generations_of_the_recorded_context_began_so() -> None:
    states = [record["state"] for record in _records("cache_context-1.jsonl")]

    assert [state["generation"] for state in states] == [1, 1, 2, 3]
    assert [state.get("context_digest", "")[:1] for state in states] == ["a", "", "b", ""]
    assert (states[1]["vectors"], states[3]["reason"]) == (4, "evidence_revoked")
