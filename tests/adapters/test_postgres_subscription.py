"""Following the log on PostgreSQL: told of commits by the server, and looking by oneself."""

import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from uuid import UUID

import psycopg
import pytest
from eventsourcing.persistence import StoredEvent
from tests.adapters.postgres_server import FreshDatabase, server

from remembrancer.adapters.postgres import bell, subscription
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder

PATIENCE_S = 20
NEVER_S = 3600.0


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with server().database() as fresh:
        yield fresh


@pytest.fixture
def here(fresh: FreshDatabase) -> Generator[Database]:
    with Database.open(fresh.app, reader_dsn=fresh.auditor) as database:
        yield database


@pytest.fixture
def elsewhere(fresh: FreshDatabase) -> Generator[Database]:
    """As another process would have it."""
    with Database.open(fresh.app) as database:
        yield database


def recorder(database: Database, *, tenant: str = "acme") -> PostgresApplicationRecorder:
    return PostgresApplicationRecorder(database=database, tenant=tenant, owner="ana")


def event(number: int) -> StoredEvent:
    return StoredEvent(UUID(int=number), 1, "t", b"s")


def first(database: Database, *, tenant: str = "acme") -> int:
    """Wait for one event of a new subscription; return its position."""
    with recorder(database, tenant=tenant).subscribe() as following:
        [found] = islice(following, 1)
    return found.id


def test_another_processs_commit_is_told_by_the_server(
    here: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "POLL_S", NEVER_S)
    with ThreadPoolExecutor(1) as pool, recorder(here).subscribe() as following:
        waiting = pool.submit(lambda: next(iter(following)).id)
        recorder(elsewhere).insert_events([event(1)])

        assert waiting.result(PATIENCE_S) == 1


def test_what_nobody_was_told_of_is_found_by_looking(
    here: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a pooler a session that listens isn't kept."""
    monkeypatch.setattr(elsewhere.bell, "ring", lambda: None)
    monkeypatch.setattr(subscription, "POLL_S", 0.05)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first, here)
        recorder(elsewhere).insert_events([event(1)])

        assert waiting.result(PATIENCE_S) == 1


def test_behind_a_pooler_nobody_listens_and_all_is_found(
    fresh: FreshDatabase, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session that listens would be given to somebody else."""
    monkeypatch.setattr(subscription, "POLL_S", 0.05)
    with (
        Database.open(fresh.app, limits=Limits(prepare_after=None)) as pooled,
        ThreadPoolExecutor(1) as pool,
        recorder(pooled).subscribe() as following,
    ):
        waiting = pool.submit(lambda: next(iter(following)).id)
        recorder(elsewhere).insert_events([event(1)])
        found = waiting.result(PATIENCE_S)
        listening = [one for one in threading.enumerate() if one.name == "remembrancer-listen"]

    assert (found, listening) == (1, [])


def test_a_listener_whose_connection_was_cut_listens_again(
    fresh: FreshDatabase, here: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "POLL_S", NEVER_S)
    monkeypatch.setattr(bell, "AGAIN_S", 0.01)
    with ThreadPoolExecutor(1) as pool, recorder(here).subscribe() as following:
        waiting = pool.submit(lambda: next(iter(following)).id)
        with psycopg.connect(fresh.superuser) as superuser:
            superuser.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND usename = 'remembrancer_app'"
            )
        recorder(elsewhere).insert_events([event(1)])

        assert waiting.result(PATIENCE_S) == 1


def test_many_commits_are_told_of_together(fresh: FreshDatabase, elsewhere: Database) -> None:
    """A notification takes a lock of the whole server."""
    commits = 200
    with psycopg.connect(fresh.app, autocommit=True) as listener:
        listener.execute(f"LISTEN {bell.CHANNEL}")
        for number in range(1, commits + 1):
            recorder(elsewhere).insert_events([event(number)])
        told = len(list(listener.notifies(timeout=0.5)))

    assert 1 <= told < commits / 2


def test_a_notification_says_nothing(fresh: FreshDatabase, elsewhere: Database) -> None:
    with psycopg.connect(fresh.app, autocommit=True) as listener:
        listener.execute(f"LISTEN {bell.CHANNEL}")
        recorder(elsewhere).insert_events([event(1)])
        [told] = listener.notifies(timeout=PATIENCE_S, stop_after=1)

    assert told.payload == ""


def test_nothing_is_told_before_the_commit(fresh: FreshDatabase, elsewhere: Database) -> None:
    with psycopg.connect(fresh.app, autocommit=True) as listener:
        listener.execute(f"LISTEN {bell.CHANNEL}")
        with elsewhere.begin():
            recorder(elsewhere).insert_events([event(1)])
            before = list(listener.notifies(timeout=0.1))
        after = list(listener.notifies(timeout=PATIENCE_S, stop_after=1))

    assert (len(before), len(after)) == (0, 1)


def test_a_subscription_sees_what_its_subscriber_may(here: Database, elsewhere: Database) -> None:
    """Its thread is another one, and acts for the same."""
    nobodys = PostgresApplicationRecorder(database=here)
    recorder(elsewhere, tenant="globex").insert_events([event(1)])
    recorder(elsewhere).insert_events([event(2)])

    with here.acting_for("acme"), nobodys.subscribe() as following:
        [mine] = islice(following, 1)
    with here.over_all_tenants(), nobodys.subscribe() as following:
        all_of_them = list(islice(following, 2))

    assert mine.originator_id == UUID(int=2)
    assert [one.originator_id for one in all_of_them] == [UUID(int=1), UUID(int=2)]


def test_closing_ends_the_threads(fresh: FreshDatabase) -> None:
    before = set(threading.enumerate())
    with Database.open(fresh.app) as database:
        recorder(database).insert_events([event(1)])
        first(database)
        began = set(threading.enumerate()) - before

    assert {"remembrancer-notify", "remembrancer-listen"} <= {one.name for one in began}
    assert not [one for one in began if one.is_alive() and one.name.startswith("remembrancer")]
