"""Aggregates from their streams, and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

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
        header = replace(an_original().header, version=2)
        entry.correct(header, digest="e" * 64, length=4, reason="edited", at=MORNING)
    append(log, first)

    with pytest.raises(StaleStreamError):
        append(log, second)
