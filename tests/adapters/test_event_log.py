"""The event log over the memory and the SQLite recorder."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from uuid import UUID

import apsw
import pytest
from eventsourcing.persistence import ApplicationRecorder
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.event_log import _Row as MemoryRow
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.application.load import load
from remembrancer.application.ports.event_log import EventLog
from remembrancer.contracts.event_log import EventLogContract
from remembrancer.contracts.event_log_examples import history
from remembrancer.contracts.event_log_rows import RawRecord
from remembrancer.contracts.rollback import rolled_back
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.hash_chain import Link


def recorder_of(log: EventLog) -> ApplicationRecorder:
    return cast("RecordedEventLog", log)._recorder


class TestMemoryEventLog(EventLogContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[EventLog]:
        yield RecordedEventLog(recorder=MemoryRecorder(transactions=MemoryTransactions()))

    @override
    def plant(self, log: EventLog, record: RawRecord) -> None:
        recorder = cast("MemoryRecorder", recorder_of(log))
        link = Link(record.version, record.topic, record.state, record.predecessor, record.own)
        recorder._streams.setdefault(record.stream_id, []).append(link)
        recorder._rows.append(MemoryRow(record.stream_id, link))

    @override
    def alter(self, log: EventLog, stream_id: UUID, version: int, state: bytes) -> None:
        recorder = cast("MemoryRecorder", recorder_of(log))
        links = recorder._streams[stream_id]
        was = links[version - 1]
        links[version - 1] = was._replace(state=state)
        number = recorder._rows.index(MemoryRow(stream_id, was))
        recorder._rows[number] = MemoryRow(stream_id, links[version - 1])


class TestSqliteEventLog(EventLogContract):
    durable = True

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[EventLog]:
        with Database.open(folder / "memory.db") as database:
            yield RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))

    @override
    def plant(self, log: EventLog, record: RawRecord) -> None:
        connection_of(log).execute(
            "INSERT INTO stored_events VALUES (NULL, ?, ?, ?, ?, ?, ?)",
            (
                record.stream_id.bytes,
                record.version,
                record.topic,
                record.state,
                record.predecessor,
                record.own,
            ),
        )

    @override
    def alter(self, log: EventLog, stream_id: UUID, version: int, state: bytes) -> None:
        connection = connection_of(log)
        connection.execute("DROP TRIGGER stored_events_are_not_changed")
        connection.execute(
            "UPDATE stored_events SET state = ?"
            " WHERE originator_id = ? AND originator_version = ?",
            (state, stream_id.bytes, version),
        )


def connection_of(log: EventLog) -> apsw.Connection:
    return cast("SqliteApplicationRecorder", recorder_of(log))._database.connection()


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        yield database


@pytest.fixture
def log(database: Database) -> EventLog:
    return RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))


REPLACE_BY_VERSION = (
    "REPLACE INTO stored_events SELECT NULL, originator_id, originator_version, topic, state,"
    " predecessor_hash, event_hash FROM stored_events"
)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stored_events SET state = x'00'",
        "UPDATE stored_events SET notification_id = 99",
        "DELETE FROM stored_events",
        "REPLACE INTO stored_events SELECT * FROM stored_events",
        REPLACE_BY_VERSION,
    ],
)
def test_stored_events_can_not_be_touched(
    database: Database, log: EventLog, statement: str
) -> None:
    events = history(1, corrections=0)
    log.append(events)

    with pytest.raises(apsw.ConstraintError, match="stored event is never"):
        database.connection().execute(statement)

    assert list(log.read(events[0].originator_id)) == events


def test_a_number_is_not_used_again_after_a_row_was_removed_by_force(
    database: Database, log: EventLog
) -> None:
    log.append(history(1, corrections=1))
    database.connection().execute("DROP TRIGGER stored_events_are_not_removed")
    database.connection().execute("DELETE FROM stored_events")

    log.append(history(2, corrections=0))

    assert [one.position for one in log.follow(after_position=0, limit=9)] == [3]


def test_a_given_number_can_not_be_used_again(database: Database, log: EventLog) -> None:
    log.append(history(1, corrections=1))
    database.connection().execute("DROP TRIGGER stored_events_are_not_removed")
    database.connection().execute("DELETE FROM stored_events WHERE notification_id = 2")

    with pytest.raises(apsw.ConstraintError, match="number used again"):
        database.connection().execute(
            "INSERT INTO stored_events SELECT 2, originator_id, 2, topic, state,"
            " event_hash, event_hash FROM stored_events"
        )


def test_tracking_can_not_be_set_back(database: Database) -> None:
    connection = database.connection()
    connection.execute("INSERT INTO tracking VALUES ('index', 7)")

    with pytest.raises(apsw.ConstraintError, match="only moves forward"):
        connection.execute("UPDATE tracking SET notification_id = 6")
    with pytest.raises(apsw.ConstraintError, match="only moves forward"):
        connection.execute("DELETE FROM tracking")


def test_a_rolled_back_append_leaves_nothing(database: Database, log: EventLog) -> None:
    events = history(1, corrections=0)

    with rolled_back(SqliteTransactions(database=database)):
        log.append(events)

    assert log.position() == 0
    log.append(events)
    assert log.position() == 1


def test_a_stale_stream_in_a_transaction_is_still_named(database: Database, log: EventLog) -> None:
    events = history(1, corrections=0)
    log.append(events)

    with pytest.raises(StaleStreamError), database.write():
        log.append(events)


def test_loads_what_was_decided(log: EventLog) -> None:
    events = history(1, corrections=99)
    log.append(events)
    expected = events[0].mutate(None)
    for event in events[1:]:
        expected = event.mutate(expected)

    assert load(log, MemoryEntry, events[0].originator_id) == expected


WRITER = """
import sys
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.contracts.event_log_examples import history

path, process, threads, each = Path(sys.argv[1]), *map(int, sys.argv[2:])
with Database.open(path) as database:
    log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
    print("ready", flush=True)
    sys.stdin.readline()

    def write(thread):
        for i in range(each):
            log.append(history(1 + (process * threads + thread) * each + i, corrections=1))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(threads)))
"""


def test_two_processes_of_eight_threads_lose_nothing(tmp_path: Path) -> None:
    processes, threads, each = 2, 8, 10
    path = tmp_path / "memory.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(process), str(threads), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for process in range(processes)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()

    with Database.open(path) as database:
        log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        seen, position = list[UUID](), 0
        running = True
        while running or position != log.position():
            running = any(writer.poll() is None for writer in writers)
            for one in log.follow(after_position=position, limit=50):
                seen.append(one.event.originator_id)
                position = one.position
        for writer in writers:
            writer.communicate()

    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(seen) == 2 * processes * threads * each
    assert len(set(seen)) == processes * threads * each
