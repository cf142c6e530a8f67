"""A position of the log, once seen, has no unseen smaller one: adr/0017's proof, tried out."""

import random
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from uuid import UUID

import psycopg
import pytest
from eventsourcing.persistence import StoredEvent
from tests.adapters.postgres_server import FreshDatabase, server

from remembrancer.adapters.postgres import positions
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.domain.errors import StoreUnavailableError

TENANT = "acme"
NUMBERS = count(1)


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with server().database() as fresh:
        yield fresh


@pytest.fixture
def database(fresh: FreshDatabase) -> Generator[Database]:
    with Database.open(fresh.app, reader_dsn=fresh.auditor) as database:
        yield database


# -- Every order of steps ------------------------------------------------------

_PLANT = (
    "INSERT INTO remembrancer.stored_events (tenant, owner, originator_id, originator_version,"
    " topic, state, predecessor_hash, event_hash)"
    " VALUES ('acme', 'ana', %s, 1, 't', '', %s, %s)"
)
_ROWS = (
    "SELECT position, originator_id FROM remembrancer.stored_events"
    " WHERE position > %s AND position <= %s ORDER BY position"
)
LAST_VALUE = "SELECT last_value FROM remembrancer.event_positions"


class Writer:
    """One write transaction, a step at a time."""

    steps = 5

    def __init__(self, connection: psycopg.Connection, *, commits: bool) -> None:
        self.connection, self.commits = connection, commits
        self.stream = UUID(int=next(NUMBERS))
        self.done = 0
        self.lock = 0

    def step(self) -> None:
        [
            self._begin,
            self._look,
            self._lock,
            self._insert,
            self._end,
        ][self.done]()
        self.done += 1

    def _begin(self) -> None:
        self.connection.execute("BEGIN")
        self.connection.execute("SELECT pg_current_xact_id()")

    def _look(self) -> None:
        """Half of what ``LOCK_LAST`` does, so that others may come in between."""
        (last,) = self.connection.execute(LAST_VALUE).fetchone() or (0,)
        self.lock = (positions._TAG << 48) + last

    def _lock(self) -> None:
        self.connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (self.lock,))

    def _insert(self) -> None:
        self.connection.execute(_PLANT, (self.stream, bytes(32), bytes(32)))

    def _end(self) -> None:
        self.connection.execute("COMMIT" if self.commits else "ROLLBACK")


class Follower:
    """Two rounds of following, a step at a time."""

    steps = 6

    def __init__(self, connection: psycopg.Connection, *, after: int) -> None:
        self.connection = connection
        self.position = after
        self.seen = list[UUID]()
        self.done = 0
        self.bounds = list[int]()

    def step(self) -> None:
        [self._last, self._locked, self._rows][self.done % 3]()
        self.done += 1

    def _last(self) -> None:
        (last,) = self.connection.execute(positions._LAST).fetchone() or (0,)
        self.bounds = [last]

    def _locked(self) -> None:
        row = self.connection.execute(positions._LOCKED, (positions._TAG,)).fetchone()
        if row is not None and row[0] is not None:
            self.bounds.append(row[0])

    def _rows(self) -> None:
        for position, stream in self.connection.execute(
            _ROWS, (self.position, min(self.bounds))
        ).fetchall():
            self.position = position
            self.seen.append(stream)


def test_no_order_of_two_writers_steps_makes_a_follower_miss_an_event(
    fresh: FreshDatabase,
) -> None:
    """Five steps of each writer, six of a follower, in thousands of orders."""
    chosen = random.Random(17)  # noqa: S311 - an example
    with (
        psycopg.connect(fresh.superuser, autocommit=True) as one,
        psycopg.connect(fresh.superuser, autocommit=True) as two,
        psycopg.connect(fresh.superuser, autocommit=True) as three,
    ):
        for _ in range(700):
            (after,) = three.execute(LAST_VALUE).fetchone() or (0,)
            writers = [Writer(one, commits=True), Writer(two, commits=chosen.random() < 0.7)]
            follower = Follower(three, after=after)
            parts: list[Writer | Follower] = [*writers, follower]
            steps = [part for part in parts for _ in range(part.steps)]
            chosen.shuffle(steps)
            for part in steps:
                part.step()
            for _ in range(3):
                follower.step()

            rows = three.execute(_ROWS, (after, 1 << 47)).fetchall()
            assert follower.seen == [stream for _, stream in rows]


def test_without_the_lock_these_orders_would_show_it(fresh: FreshDatabase) -> None:
    """So that the test above fails for what it says."""

    class Careless(Writer):
        def _lock(self) -> None:
            pass

    with (
        psycopg.connect(fresh.superuser, autocommit=True) as one,
        psycopg.connect(fresh.superuser, autocommit=True) as two,
        psycopg.connect(fresh.superuser, autocommit=True) as three,
    ):
        first, second = Careless(one, commits=True), Careless(two, commits=True)
        follower = Follower(three, after=0)
        order: list[Writer | Follower] = [*[first] * 4, *[second] * 5, *[follower] * 3, first]
        for part in [*order, *[follower] * 3]:
            part.step()

    assert follower.seen == [second.stream]


# -- Real writers and followers ------------------------------------------------


def _recorder(database: Database, owner: str | None) -> PostgresApplicationRecorder:
    return PostgresApplicationRecorder(database=database, tenant=TENANT, owner=owner)


def _event(number: int) -> StoredEvent:
    return StoredEvent(UUID(int=number), 1, "t", b"s")


def test_a_follower_waits_for_who_was_before(database: Database) -> None:
    ana, ben, all_owners = (_recorder(database, owner) for owner in ("ana", "ben", None))
    with database.acting_for(TENANT, "ana"), database.begin():
        ana.insert_events([_event(1)])
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ben.insert_events, [_event(2)]).result()
            waiting = pool.submit(all_owners.select_notifications, 1, 9).result()
            last = pool.submit(all_owners.max_notification_id).result()

    assert (waiting, last) == ([], None)
    assert [one.id for one in all_owners.select_notifications(1, 9)] == [1, 2]
    assert all_owners.max_notification_id() == 2


def test_owners_do_not_wait_for_each_other(database: Database) -> None:
    with database.acting_for(TENANT, "ana"), database.begin():
        _recorder(database, "ana").insert_events([_event(1)])
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(_recorder(database, "ben").insert_events, [_event(2)])

            assert written.result(5) == [2]


def test_a_rolled_back_writer_leaves_a_gap_and_nobody_waits_for_it(database: Database) -> None:
    class _StoppedError(Exception):
        pass

    def stop() -> None:
        with database.acting_for(TENANT, "ana"), database.begin():
            _recorder(database, "ana").insert_events([_event(1)])
            raise _StoppedError

    with pytest.raises(_StoppedError):
        stop()
    _recorder(database, "ana").insert_events([_event(2)])

    assert [one.id for one in _recorder(database, None).select_notifications(1, 9)] == [2]


def test_a_writer_that_was_killed_keeps_nobody_waiting(
    fresh: FreshDatabase, database: Database
) -> None:
    def be_killed() -> None:
        with database.acting_for(TENANT, "ana"), database.begin() as connection:
            _recorder(database, "ana").insert_events([_event(1)])
            _kill(fresh, connection.info.backend_pid)

    _recorder(database, "ben").insert_events([_event(3)])
    with pytest.raises(StoreUnavailableError):
        be_killed()
    _recorder(database, "ben").insert_events([_event(2)])

    assert [one.id for one in _recorder(database, None).select_notifications(1, 9)] == [1, 3]


def test_a_snapshot_shows_no_position_whose_smaller_one_it_misses(database: Database) -> None:
    """Its bound is older than its rows, never the other way round."""
    everybody = _recorder(database, None)
    with ThreadPoolExecutor(1) as pool, database.snapshot():
        before = everybody.select_notifications(1, 9)
        pool.submit(_recorder(database, "ana").insert_events, [_event(1)]).result()
        inside = everybody.select_notifications(1, 9)
        last = everybody.max_notification_id()

    assert (before, inside, last) == ([], [], None)


def test_two_roles_in_a_snapshot_see_one_state(database: Database) -> None:
    mine, all_tenants = _recorder(database, None), PostgresApplicationRecorder(database=database)
    with ThreadPoolExecutor(1) as pool, database.snapshot():
        before = mine.select_notifications(1, 9)
        pool.submit(_recorder(database, "ana").insert_events, [_event(1)]).result()
        with database.over_all_tenants():
            inside = all_tenants.select_notifications(1, 9)

    assert (before, inside) == ([], [])
    with database.over_all_tenants():
        assert len(all_tenants.select_notifications(1, 9)) == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_followers_miss_nothing_of_busy_writers_some_of_whom_fail(
    fresh: FreshDatabase, database: Database, seed: int
) -> None:
    """Writers of several owners commit, roll back, or are killed in the middle."""
    writers, followers, each = 5, 2, 40
    finished = threading.Event()

    def write(number: int) -> None:
        chosen = random.Random(seed * 100 + number)  # noqa: S311 - an example
        recorder, owner = _recorder(database, f"owner-{number}"), f"owner-{number}"
        for i in range(each):
            with (
                suppress(_GivenUpError, StoreUnavailableError),
                database.acting_for(TENANT, owner),
                database.begin() as connection,
            ):
                for k in range(chosen.randrange(1, 4)):
                    recorder.insert_events([_event((number * each + i) * 10 + k + 1)])
                _meet_fate(chosen.random(), fresh, connection.info.backend_pid)

    def follow() -> list[int]:
        recorder, seen = PostgresApplicationRecorder(database=database), [0]
        with database.over_all_tenants():
            while True:
                last_round = finished.is_set()
                found = recorder.select_notifications(seen[-1], 7, inclusive_of_start=False)
                seen += [one.id for one in found]
                if last_round and not found:
                    return seen[1:]

    with ThreadPoolExecutor(writers + followers) as pool:
        following = [pool.submit(follow) for _ in range(followers)]
        for writer in [pool.submit(write, number) for number in range(writers)]:
            writer.result()
        finished.set()
        seen = [one.result() for one in following]

    with psycopg.connect(fresh.superuser) as connection:
        rows = connection.execute(
            "SELECT position FROM remembrancer.stored_events ORDER BY position"
        ).fetchall()
    assert seen == [[position for (position,) in rows]] * followers
    assert len(rows) > writers * each


class _GivenUpError(Exception):
    """What a writer's use case may raise."""


def _meet_fate(fate: float, fresh: FreshDatabase, pid: int) -> None:
    if fate < 0.1:
        _kill(fresh, pid)
    elif fate < 0.2:
        raise _GivenUpError


def _kill(fresh: FreshDatabase, pid: int) -> None:
    with psycopg.connect(fresh.superuser) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
