"""What every event log promises.

Enrol an adapter by subclassing :class:`EventLogContract`::

    class TestMyEventLog(EventLogContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[EventLog]:
            with MyLog.open(folder) as log:
                yield log

and say how a row is planted or altered behind its back.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, cast
from uuid import UUID

import pytest
from eventsourcing.domain import Aggregate, AggregateEvent

from remembrancer.application.ports.event_log import EventLog
from remembrancer.contracts.event_log_examples import AT, DIGEST, header, history, pending
from remembrancer.contracts.event_log_rows import EventLogRowsContract
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import (
    MalformedRecordError,
    StaleStreamError,
    UnknownTopicError,
)


class EventLogContract(EventLogRowsContract):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    durable: ClassVar[bool] = False
    """Whether opening the same folder again must find what was appended before."""

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

    # -- Lasting -----------------------------------------------------------

    def test_survives_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            # The flag says so: what ends with its process can't be opened again.
            pytest.skip("this adapter does not promise durability")
        events = history(1, corrections=1)
        with self.opened(tmp_path) as log:
            log.append(events)

        with self.opened(tmp_path) as log:
            found = list(log.read(events[0].originator_id))

        assert found == events
