"""The recorder and factory suites that the event-sourcing library ships, over ours."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    ProcessRecorder,
    TrackingRecorder,
)
from eventsourcing.tests import persistence as library
from eventsourcing.utils import Environment

from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.factory import SqliteFactory
from remembrancer.adapters.sqlite.recorder import (
    SqliteAggregateRecorder,
    SqliteApplicationRecorder,
    SqliteProcessRecorder,
)
from remembrancer.adapters.sqlite.tracking_recorder import SqliteTrackingRecorder
from remembrancer.domain.errors import SettingsError


class TestMemoryApplicationRecorder(library.ApplicationRecorderTestCase[MemoryRecorder]):
    def create_recorder(self) -> MemoryRecorder:
        return MemoryRecorder(transactions=MemoryTransactions())

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestMemoryTrackingRecorder(library.TrackingRecorderTestCase):
    def create_recorder(self) -> TrackingRecorder:
        return MemoryRecorder(transactions=MemoryTransactions())


class TestMemoryProcessRecorder(library.ProcessRecorderTestCase):
    def create_recorder(self) -> ProcessRecorder:
        return MemoryRecorder(transactions=MemoryTransactions())


class TestMemoryNotificationsDoNotInterleave(library.NonInterleavingNotificationIDsBaseCase):
    def create_recorder(self) -> ApplicationRecorder:
        return MemoryRecorder(transactions=MemoryTransactions())


class _OnSqlite:
    @pytest.fixture(autouse=True)
    def _database(self, tmp_path: Path) -> Iterator[None]:
        with Database.open(tmp_path / "memory.db") as self.database:
            yield


class TestSqliteAggregateRecorder(_OnSqlite, library.AggregateRecorderTestCase):
    def create_recorder(self) -> AggregateRecorder:
        return SqliteAggregateRecorder(database=self.database)


class TestSqliteApplicationRecorder(
    _OnSqlite, library.ApplicationRecorderTestCase[SqliteApplicationRecorder]
):
    def create_recorder(self) -> SqliteApplicationRecorder:
        return SqliteApplicationRecorder(database=self.database)

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestSqliteTrackingRecorder(_OnSqlite, library.TrackingRecorderTestCase):
    def create_recorder(self) -> TrackingRecorder:
        return SqliteTrackingRecorder(database=self.database)


class TestSqliteProcessRecorder(_OnSqlite, library.ProcessRecorderTestCase):
    def create_recorder(self) -> ProcessRecorder:
        return SqliteProcessRecorder(database=self.database)


class TestSqliteNotificationsDoNotInterleave(
    _OnSqlite, library.NonInterleavingNotificationIDsBaseCase
):
    def create_recorder(self) -> ApplicationRecorder:
        return SqliteApplicationRecorder(database=self.database)


class OwnTrackingRecorder(SqliteTrackingRecorder):
    """A host's subclass, found by its topic."""


class TestSqliteFactory(library.InfrastructureFactoryTestCase[SqliteFactory]):
    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path: Path) -> None:
        # `setUp` of the suite runs before a fixture could, so the path is made here as well.
        self.path = tmp_path

    def setUp(self) -> None:
        self.env = Environment("Ours")
        self.env["PERSISTENCE_MODULE"] = "remembrancer.adapters.sqlite.factory"
        self.env["SQLITE_DBNAME"] = os.fspath(self.path / "memory.db")
        super().setUp()

    def expected_factory_class(self) -> type[SqliteFactory]:
        return SqliteFactory

    def expected_aggregate_recorder_class(self) -> type[AggregateRecorder]:
        return SqliteAggregateRecorder

    def expected_application_recorder_class(self) -> type[ApplicationRecorder]:
        return SqliteApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[TrackingRecorder]:
        return SqliteTrackingRecorder

    def tracking_recorder_subclass(self) -> type[TrackingRecorder]:
        return OwnTrackingRecorder

    def expected_process_recorder_class(self) -> type[ProcessRecorder]:
        return SqliteProcessRecorder


class Counted(Aggregate):
    """Something for the library's own application to keep."""

    @event("Raised")
    def rise(self) -> None:
        self.times = getattr(self, "times", 0) + 1


def test_the_librarys_application_runs_over_the_factory(tmp_path: Path) -> None:
    with Application[UUID](
        env={
            "PERSISTENCE_MODULE": "remembrancer.adapters.sqlite.factory",
            "SQLITE_DBNAME": os.fspath(tmp_path / "memory.db"),
            "IS_SNAPSHOTTING_ENABLED": "y",
        }
    ) as application:
        counted = Counted()
        counted.rise()
        application.save(counted)
        application.take_snapshot(counted.id)
        counted.rise()
        application.save(counted)
        found: Counted = application.repository.get(counted.id)

        assert (found.times, found.version) == (2, 3)
        assert [one.id for one in application.notification_log.select(1, limit=9)] == [1, 2, 3]


@pytest.mark.parametrize(
    "env", [{}, {"SQLITE_DBNAME": ""}, {"SQLITE_DBNAME": "x.db", "SQLITE_LOCK_TIMEOUT": "soon"}]
)
def test_the_factory_says_which_setting_is_wrong(env: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="SQLITE_"):
        SqliteFactory(env)
