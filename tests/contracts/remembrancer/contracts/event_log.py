"""What every event log promises."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, cast
from uuid import UUID, uuid5

import pytest
from eventsourcing.domain import Aggregate, AggregateEvent

from remembrancer.application.ports.event_log import EventLog
from remembrancer.domain.entry import EntryHeader, MemoryEntry
from remembrancer.domain.errors import (
    MalformedRecordError,
    StaleStreamError,
    UnknownTopicError,
)
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

AT = datetime(2030, 1, 1, tzinfo=UTC)
DIGEST = "ab" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecord:
    """A stored row as it is, for an adapter to plant or to alter."""

    stream_id: UUID
    version: int
    topic: str
    state: bytes
    predecessor: bytes = GENESIS

    @property
    def own(self) -> bytes:
        """The hash it would rightly be stored with."""
        return event_hash(self.predecessor, self.topic, self.state)


def header(number: int, *, tenant: str = "acme") -> EntryHeader:
    """Return labels of the entry with this number."""
    return EntryHeader(
        tenant=tenant,
        owner="ana",
        entry_id=EntryId(UUID(int=number)),
        version=1,
        scope="project/alpha",
        kind="note",
        sensitivity=Sensitivity.INTERNAL,
    )


def remembered(number: int) -> MemoryEntry:
    """Return a new entry, its first event pending."""
    return MemoryEntry.remember(header(number), digest=DIGEST, length=7, at=AT)


def history(number: int, *, corrections: int) -> list[AggregateEvent]:
    """Return the events of an entry that was corrected this often."""
    entry = remembered(number)
    for i in range(corrections):
        entry.correct(
            header(number),
            digest=DIGEST,
            length=i,
            reason="edited",
            at=AT + timedelta(seconds=i + 1),
        )
    return pending(entry)


def pending(entry: MemoryEntry) -> list[AggregateEvent]:
    """Return what an entry has decided and nobody has stored."""
    return [cast("AggregateEvent", event) for event in entry.collect_events()]


class EventLogContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    durable: ClassVar[bool] = False
    """Whether opening the same folder again must find what was appended before."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[EventLog]:
        """Open a log kept in ``folder``; empty at first."""

    @abstractmethod
    def plant(self, log: EventLog, record: RawRecord) -> None:
        """Store a row behind the log's back, with its rightful hash, as a foreign writer could."""

    @abstractmethod
    def alter(self, log: EventLog, stream_id: UUID, version: int, state: bytes) -> None:
        """Overwrite a row's state behind the log's back, and nothing else of it."""

    @pytest.fixture
    def log(self, tmp_path: Path) -> Iterator[EventLog]:
        with self.opened(tmp_path) as log:
            yield log

    # -- Appending and reading ---------------------------------------------

    def test_empty_log_has_nothing(self, log: EventLog) -> None:
        assert log.position() == 0
        assert log.follow(after_position=0, limit=10) == []
        assert list(log.read(UUID(int=1))) == []

    def test_reads_a_stream_back_as_it_was_appended(self, log: EventLog) -> None:
        events = history(1, corrections=3)
        log.append(events)

        assert list(log.read(events[0].originator_id)) == events

    def test_reads_behind_a_version(self, log: EventLog) -> None:
        events = history(1, corrections=3)
        log.append(events)

        assert list(log.read(events[0].originator_id, after_version=2)) == events[2:]

    def test_appends_to_a_stream_that_exists(self, log: EventLog) -> None:
        events = history(1, corrections=2)
        log.append(events[:1])
        log.append(events[1:])

        assert list(log.read(events[0].originator_id)) == events

    def test_appending_nothing_is_no_change(self, log: EventLog) -> None:
        log.append([])

        assert log.position() == 0

    def test_appends_several_streams_at_once(self, log: EventLog) -> None:
        first, second = history(1, corrections=1), history(2, corrections=1)
        log.append([first[0], second[0], first[1], second[1]])

        assert list(log.read(first[0].originator_id)) == first
        assert list(log.read(second[0].originator_id)) == second

    def test_streams_do_not_mix(self, log: EventLog) -> None:
        log.append(history(1, corrections=0))

        assert list(log.read(history(2, corrections=0)[0].originator_id)) == []

    # -- Refusing ----------------------------------------------------------

    def test_a_version_that_exists_is_stale(self, log: EventLog) -> None:
        events = history(1, corrections=1)
        log.append(events)

        with pytest.raises(StaleStreamError) as refused:
            log.append(events[1:])

        assert refused.value.stream_id == events[0].originator_id

    def test_names_the_stale_stream_of_several(self, log: EventLog) -> None:
        fresh, stale = history(1, corrections=0), history(2, corrections=0)
        log.append(stale)

        with pytest.raises(StaleStreamError) as refused:
            log.append(fresh + stale)

        assert refused.value.stream_id == stale[0].originator_id

    def test_a_stale_stream_refuses_all(self, log: EventLog) -> None:
        fresh, stale = history(1, corrections=0), history(2, corrections=0)
        log.append(stale)

        with pytest.raises(StaleStreamError):
            log.append(fresh + stale)

        assert list(log.read(fresh[0].originator_id)) == []
        assert log.position() == 1

    def test_a_refused_append_can_be_repeated_without_the_stale_one(self, log: EventLog) -> None:
        fresh, stale = history(1, corrections=0), history(2, corrections=0)
        log.append(stale)
        with pytest.raises(StaleStreamError):
            log.append(fresh + stale)

        log.append(fresh)

        assert list(log.read(fresh[0].originator_id)) == fresh

    def test_a_gap_is_refused(self, log: EventLog) -> None:
        events = history(1, corrections=2)
        log.append(events[:1])

        with pytest.raises(MalformedRecordError, match="gap"):
            log.append(events[2:])

        assert list(log.read(events[0].originator_id)) == events[:1]

    def test_a_commit_of_unknown_outcome_is_recognised(self, log: EventLog) -> None:
        """The writer never heard that its append had succeeded."""
        events = history(1, corrections=0)
        log.append(events)
        with pytest.raises(StaleStreamError):
            log.append(events)

        [found] = log.read(events[0].originator_id)

        assert found == events[0]

    def test_another_writers_event_is_told_apart(self, log: EventLog) -> None:
        log.append(history(1, corrections=0))
        own = MemoryEntry.remember(header(1), digest="cd" * 32, length=8, at=AT)
        events = pending(own)
        with pytest.raises(StaleStreamError):
            log.append(events)

        [found] = log.read(events[0].originator_id)

        assert found != events[0]

    def test_an_unlisted_event_is_refused(self, log: EventLog) -> None:
        foreign = cast("AggregateEvent", Aggregate().collect_events()[0])

        with pytest.raises(UnknownTopicError):
            log.append([foreign])

        assert log.position() == 0

    @pytest.mark.parametrize("length", [float("nan"), float("inf"), 7.5, "7", True, None])
    def test_a_value_of_another_type_is_not_written(self, log: EventLog, length: Any) -> None:
        entry = MemoryEntry.remember(header(1), digest=DIGEST, length=length, at=AT)

        with pytest.raises(MalformedRecordError):
            log.append(pending(entry))

        assert log.position() == 0

    def test_a_lone_surrogate_is_not_written(self, log: EventLog) -> None:
        entry = MemoryEntry.remember(header(1), digest="\ud800", length=1, at=AT)

        with pytest.raises(MalformedRecordError):
            log.append(pending(entry))

        assert log.position() == 0

    def test_a_time_without_offset_is_not_written(self, log: EventLog) -> None:
        naive = AT.replace(tzinfo=None)
        entry = MemoryEntry.remember(header(1), digest=DIGEST, length=1, at=naive)

        with pytest.raises(MalformedRecordError):
            log.append(pending(entry))

        assert log.position() == 0

    # -- Following ---------------------------------------------------------

    def test_follows_in_order_of_appending(self, log: EventLog) -> None:
        first, second = history(1, corrections=1), history(2, corrections=0)
        log.append(first)
        log.append(second)

        followed = log.follow(after_position=0, limit=10)

        assert [one.event for one in followed] == first + second
        assert [one.position for one in followed] == sorted({one.position for one in followed})
        assert followed[-1].position == log.position()

    def test_follows_from_where_it_was(self, log: EventLog) -> None:
        events = history(1, corrections=4)
        log.append(events)
        first = log.follow(after_position=0, limit=2)

        rest = log.follow(after_position=first[-1].position, limit=10)

        assert [one.event for one in first + rest] == events

    def test_a_follower_misses_nothing_of_concurrent_writers(self, log: EventLog) -> None:
        """Every position that appears later than a seen one is larger."""
        writers, each, written = 4, 25, Event()

        def write(writer: int) -> None:
            for i in range(each):
                log.append(history(1 + writer * each + i, corrections=1))

        def follow() -> list[UUID]:
            seen, position = list[UUID](), 0
            while True:
                last_round = written.is_set()
                for one in log.follow(after_position=position, limit=7):
                    seen.append(one.event.originator_id)
                    position = one.position
                if last_round and position == log.position():
                    return seen

        with ThreadPoolExecutor(writers + 1) as pool:
            follower = pool.submit(follow)
            for writer in [pool.submit(write, number) for number in range(writers)]:
                writer.result()
            written.set()
            seen = follower.result()

        assert len(seen) == 2 * writers * each
        assert len(set(seen)) == writers * each

    def test_of_racing_writers_one_wins(self, log: EventLog) -> None:
        racers = 8

        def race(number: int) -> int | None:
            entry = MemoryEntry.remember(header(1), digest=DIGEST, length=number, at=AT)
            try:
                log.append(pending(entry))
            except StaleStreamError:
                return None
            return number

        with ThreadPoolExecutor(racers) as pool:
            winners = [won for won in pool.map(race, range(racers)) if won is not None]

        [event] = log.read(history(1, corrections=0)[0].originator_id)
        assert winners == [event.length]  # type: ignore[attr-defined]  # of EntryRemembered

    # -- What lies in the store --------------------------------------------

    def test_a_foreign_topic_imports_nothing(
        self, log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The library would import the module that a record names."""
        trap = tmp_path / "module_of_a_foreign_topic.py"
        trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()\nclass Event: pass\n")
        monkeypatch.syspath_prepend(tmp_path)
        topic = f"{trap.stem}:Event"
        self.plant(log, RawRecord(stream_id=UUID(int=1), version=1, topic=topic, state=b"{}"))

        with pytest.raises(UnknownTopicError) as unread:
            list(log.read(UUID(int=1)))
        with pytest.raises(UnknownTopicError):
            log.follow(after_position=0, limit=1)

        assert unread.value.topic == topic
        assert not (tmp_path / "sprung").exists()

    def test_a_foreign_aggregate_imports_nothing(
        self, log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trap = tmp_path / "module_of_a_foreign_aggregate.py"
        trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()\nclass Event: pass\n")
        monkeypatch.syspath_prepend(tmp_path)
        state = _state().replace(b"remembrancer.memory_entry", f"{trap.stem}:Event".encode())
        self.plant(log, _first(state))

        with pytest.raises(UnknownTopicError):
            list(log.read(STREAM))

        assert not (tmp_path / "sprung").exists()

    def test_a_rightful_foreign_row_is_read(self, log: EventLog) -> None:
        """So that the tests below fail for what they alter, not for how they plant."""
        self.plant(log, _first(_state()))

        [event] = log.read(STREAM)

        assert event.timestamp == AT

    @pytest.mark.parametrize(
        ("was", "becomes"),
        [
            (b'"length":7', b'"length":NaN'),
            (b'"length":7', b'"length":Infinity'),
            (b'"length":7', b'"length":-Infinity'),
            (b'"length":7', b'"length":1e400'),
            (b'"length":7', b'"length":7.0'),
            (b'"length":7', b'"length":"7"'),
            (b'"length":7', b'"length":true'),
            (b'"length":7', b'"length": 7'),
            (b'"length":7', b'"length":7,"length":8'),
            (b'"length":7', b'"length":7,"length":7'),
            (b'"length":7', b'"length":7,"more":1'),
            (b'"length":7', b'"length":7,"class_version":2'),
            (b',"length":7', b""),
            (b'"kind":"note","length":7', b'"length":7,"kind":"note"'),
            (b'"note"', b'"\\u006eote"'),
            (b'"note"', b'"\xff"'),
            (b'"note"', b'"\\ud800"'),
            (b'"uuid_hex"', b'"uuid"'),
            (b"0000000000000000000000000000000a", b"0000000000000000000000000000000A"),
            (b"2030-01-01T00:00:00+00:00", b"2030-01-01T00:00:00"),
            (b"2030-01-01T00:00:00+00:00", b"2030-01-01T00:00:00Z"),
            (b"}", b""),
        ],
    )
    def test_what_we_can_not_have_written_is_not_read(
        self, log: EventLog, was: bytes, becomes: bytes
    ) -> None:
        state = _state()
        assert was in state
        self.plant(log, _first(state.replace(was, becomes)))

        with pytest.raises(MalformedRecordError) as unread:
            list(log.read(STREAM))

        assert (unread.value.stream_id, unread.value.version) == (STREAM, 1)

    @pytest.mark.parametrize("state", [b"", b"[]", b"1", b"null", b"{}", b"[" * 100_000])
    def test_what_is_no_event_is_not_read(self, log: EventLog, state: bytes) -> None:
        self.plant(log, _first(state))

        with pytest.raises(MalformedRecordError):
            list(log.read(STREAM))

    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_an_altered_event_breaks_the_chain(self, log: EventLog, version: int) -> None:
        events = history(1, corrections=2)
        log.append(events)
        stream_id = events[0].originator_id
        self.alter(log, stream_id, version, _state())

        with pytest.raises(MalformedRecordError, match="chain") as unread:
            list(log.read(stream_id))

        assert unread.value.version == version

    def test_a_follower_is_not_given_an_altered_event(self, log: EventLog) -> None:
        events = history(1, corrections=2)
        log.append(events)
        self.alter(log, events[0].originator_id, 3, _state())

        with pytest.raises(MalformedRecordError, match="chain"):
            log.follow(after_position=0, limit=10)

    def test_an_event_from_another_stream_breaks_the_chain(self, log: EventLog) -> None:
        events = history(1, corrections=0)
        log.append(events)
        wrong = uuid5(UUID(int=1), "no predecessor of its").bytes * 2
        self.plant(
            log,
            RawRecord(
                stream_id=events[0].originator_id,
                version=2,
                topic=MemoryEntry.EntryErased.TOPIC,
                state=_state(),
                predecessor=wrong,
            ),
        )

        with pytest.raises(MalformedRecordError, match="chain"):
            list(log.read(events[0].originator_id))
        with pytest.raises(MalformedRecordError, match="chain"):
            list(log.read(events[0].originator_id, after_version=1))

    # -- Lasting -----------------------------------------------------------

    def test_survives_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            pytest.skip("this adapter does not promise durability")
        events = history(1, corrections=1)
        with self.opened(tmp_path) as log:
            log.append(events)

        with self.opened(tmp_path) as log:
            found = list(log.read(events[0].originator_id))

        assert found == events


STREAM = MemoryEntry.create_id("acme", UUID(int=10))


def _first(state: bytes) -> RawRecord:
    return RawRecord(
        stream_id=STREAM, version=1, topic=MemoryEntry.EntryRemembered.TOPIC, state=state
    )


def _state() -> bytes:
    """Return what the first event of entry 10 is stored as; the format itself, spelt out."""
    return (
        b'{"digest":"' + DIGEST.encode() + b'",'
        b'"entry_id":{"_data_":"0000000000000000000000000000000a","_type_":"uuid_hex"},'
        b'"kind":"note","length":7,"originator_topic":"remembrancer.memory_entry",'
        b'"owner":"ana","scope":"project/alpha","sensitivity":"internal","tenant":"acme",'
        b'"timestamp":{"_data_":"2030-01-01T00:00:00+00:00","_type_":"datetime_iso"}}'
    )
