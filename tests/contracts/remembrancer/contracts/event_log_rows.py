"""What every event log makes of rows that it didn't write, or not as they are now.

The first half of :class:`remembrancer.contracts.event_log.EventLogContract`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid5

import pytest

from remembrancer.application.ports.event_log import EventLog
from remembrancer.contracts.event_log_examples import AT, DIGEST, history
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import MalformedRecordError, UnknownTopicError
from remembrancer.domain.hash_chain import GENESIS, event_hash

STREAM = MemoryEntry.create_id("acme", UUID(int=10))


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


class EventLogRowsContract(ABC):
    """How an adapter is opened, and that it trusts no row."""

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
