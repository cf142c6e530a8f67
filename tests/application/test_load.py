"""Aggregates from their streams, and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from eventsourcing.domain import AggregateEvent

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.load import append, load
from remembrancer.application.ports import EventLog
from remembrancer.contracts.originals import FIRST, MORNING, an_original
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import MalformedRecordError, StaleStreamError, StoreFullError
from remembrancer.domain.l3_selection import L3Selection

STREAM = MemoryEntry.create_id("acme", FIRST)
SELECTION = L3Selection.create_id("acme", "s", "plan")


@pytest.fixture
def log() -> EventLog:
    return RecordedEventLog(recorder=MemoryRecorder(transactions=MemoryTransactions()))


def _remembered() -> MemoryEntry:
    original = an_original()
    return MemoryEntry.remember(original.header, digest="d" * 64, length=3, at=MORNING)


def test_what_was_appended_is_loaded(log: EventLog) -> None:
    append(log, _remembered())

    entry = load(log, MemoryEntry, STREAM)

    assert entry is not None
    assert entry.header == an_original().header
    assert entry.version == 1


def test_an_empty_stream_is_nothing(log: EventLog) -> None:
    assert load(log, MemoryEntry, STREAM) is None


def test_a_stream_of_something_else_is_malformed(log: EventLog) -> None:
    append(log, _remembered())

    with pytest.raises(MalformedRecordError, match="L3Selection"):
        load(log, L3Selection, STREAM)


# An event of the right fields, chained as it should be, that nobody's decision recorded.


def _selected(**changes: Any) -> AggregateEvent:
    values: dict[str, Any] = {
        "tenant": "acme",
        "owner": "ana",
        "principal": "agent-7",
        "session": "s",
        "stage": "plan",
        "kind": "deliberate",
        "entries": [],
        "mode": "sparse",
        "mode_reason": "",
        "left_out": [],
        "left_out_count": 0,
        "k": 10,
        "filter": {},
        "embedding_tuple": None,
        "query_embedding": None,
        "originator_topic": L3Selection.TOPIC,
    }
    return L3Selection.L3EntriesSelected(
        originator_id=SELECTION, originator_version=1, timestamp=MORNING, **values | changes
    )


def _assembled(**changes: Any) -> AggregateEvent:
    values: dict[str, Any] = {
        "number": 1,
        "digest": "d",
        "label": "l",
        "format_version": 1,
        "included": ["rules"],
        "omitted": [["task", "budget"]],
        "token_budget": 10,
        "tokens": 1,
        "token_counter": "words",
        "items_digest": "i",
    }
    return L3Selection.ContextPackAssembled(
        originator_id=SELECTION, originator_version=2, timestamp=MORNING, **values | changes
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "clairvoyant"},
        {"mode": ""},
        {"entries": [1]},
        {"entries": [{"entry_id": "first"}]},
        {"entries": [{"entry_id": 1.5}]},
        {"filter": {"tenant": None}},
        {"embedding_tuple": {"provider": ""}},
        {"embedding_tuple": {"temperature": 1}},
    ],
    ids=repr,
)
def test_a_selection_that_nobody_made_is_malformed(log: EventLog, changes: dict[str, Any]) -> None:
    log.append([_selected(**changes)])

    with pytest.raises(MalformedRecordError, match="no decision recorded this"):
        load(log, L3Selection, SELECTION)


def test_a_selection_that_begins_another_aggregate_is_malformed(log: EventLog) -> None:
    log.append([_selected(originator_topic=MemoryEntry.TOPIC)])

    with pytest.raises(MalformedRecordError, match="no decision recorded this"):
        load(log, L3Selection, SELECTION)


def test_a_selection_that_begins_in_the_middle_is_malformed(log: EventLog) -> None:
    log.append([_selected(), replace(_selected(), originator_version=2)])

    with pytest.raises(MalformedRecordError, match="version 2: no decision recorded this"):
        load(log, L3Selection, SELECTION)


@pytest.mark.parametrize(
    "changes",
    [{"included": [["rules"]]}, {"included": [1]}, {"omitted": [["task"]]}, {"omitted": [[1, 2]]}],
    ids=repr,
)
def test_a_pack_that_nobody_assembled_is_malformed(log: EventLog, changes: dict[str, Any]) -> None:
    log.append([_selected(), _assembled(**changes)])

    with pytest.raises(MalformedRecordError, match="version 2: no decision"):
        load(log, L3Selection, SELECTION)


def test_a_stream_without_its_beginning_is_malformed(log: EventLog) -> None:
    log.append([replace(_assembled(), originator_version=1)])

    with pytest.raises(MalformedRecordError):
        load(log, L3Selection, SELECTION)


class _Full:
    """All of a log that appending needs."""

    def __init__(self, real: EventLog) -> None:
        self._real, self.full = real, True

    def append(self, events: Sequence[AggregateEvent]) -> None:
        if self.full:
            raise StoreFullError(store="disk")
        self._real.append(events)


def test_a_failed_append_can_be_repeated(log: EventLog) -> None:
    full = _Full(log)
    entry, narrow = _remembered(), cast("EventLog", full)
    with pytest.raises(StoreFullError):
        append(narrow, entry)
    full.full = False

    append(narrow, entry)

    assert load(log, MemoryEntry, STREAM) is not None
    assert entry.pending_events == []


def test_of_two_writers_the_second_is_stale(log: EventLog) -> None:
    append(log, _remembered())
    first, second = (load(log, MemoryEntry, STREAM) for _ in range(2))
    assert first is not None
    assert second is not None
    for entry in (first, second):
        header = an_original().header._replace(version=2)
        entry.correct(header, digest="e" * 64, length=4, reason="edited", at=MORNING)
    append(log, first)

    with pytest.raises(StaleStreamError):
        append(log, second)
