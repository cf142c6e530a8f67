"""The recorder and factory suites that the event-sourcing library ships, over PostgreSQL."""

from collections.abc import Iterator
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
from tests.adapters.postgres_server import server

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.factory import PostgresFactory
from remembrancer.adapters.postgres.recorder import (
    PostgresAggregateRecorder,
    PostgresApplicationRecorder,
    PostgresProcessRecorder,
)
from remembrancer.adapters.postgres.tracking_recorder import PostgresTrackingRecorder
from remembrancer.domain.errors import SettingsError

TENANT, OWNER = "acme", "ana"


class _OnPostgres:
    @pytest.fixture(autouse=True)
    def _database(self) -> Iterator[None]:
        with server().database() as fresh, Database.open(fresh.app) as self.database:
            yield


class TestPostgresAggregateRecorder(_OnPostgres, library.AggregateRecorderTestCase):
    def create_recorder(self) -> AggregateRecorder:
        return PostgresAggregateRecorder(database=self.database, tenant=TENANT, owner=OWNER)


class TestPostgresApplicationRecorder(
    _OnPostgres, library.ApplicationRecorderTestCase[PostgresApplicationRecorder]
):
    def create_recorder(self) -> PostgresApplicationRecorder:
        return PostgresApplicationRecorder(database=self.database, tenant=TENANT, owner=OWNER)

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestPostgresTrackingRecorder(_OnPostgres, library.TrackingRecorderTestCase):
    def create_recorder(self) -> TrackingRecorder:
        return PostgresTrackingRecorder(database=self.database)


class TestPostgresProcessRecorder(_OnPostgres, library.ProcessRecorderTestCase):
    def create_recorder(self) -> ProcessRecorder:
        return PostgresProcessRecorder(database=self.database, tenant=TENANT, owner=OWNER)


class TestPostgresNotificationsDoNotInterleave(
    _OnPostgres, library.NonInterleavingNotificationIDsBaseCase
):
    def create_recorder(self) -> ApplicationRecorder:
        return PostgresApplicationRecorder(database=self.database, tenant=TENANT, owner=OWNER)


class OwnTrackingRecorder(PostgresTrackingRecorder):
    """A host's subclass, found by its topic."""


class TestPostgresFactory(library.InfrastructureFactoryTestCase[PostgresFactory]):
    def setUp(self) -> None:
        self.fresh = server().fresh_database()
        self.env = Environment("Ours")
        self.env["PERSISTENCE_MODULE"] = "remembrancer.adapters.postgres.factory"
        self.env["POSTGRES_DSN"] = self.fresh.app
        self.env["POSTGRES_TENANT"] = TENANT
        self.env["POSTGRES_OWNER"] = OWNER
        super().setUp()

    def tearDown(self) -> None:
        super().tearDown()
        server().drop(self.fresh)

    def expected_factory_class(self) -> type[PostgresFactory]:
        return PostgresFactory

    def expected_aggregate_recorder_class(self) -> type[AggregateRecorder]:
        return PostgresAggregateRecorder

    def expected_application_recorder_class(self) -> type[ApplicationRecorder]:
        return PostgresApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[TrackingRecorder]:
        return PostgresTrackingRecorder

    def tracking_recorder_subclass(self) -> type[TrackingRecorder]:
        return OwnTrackingRecorder

    def expected_process_recorder_class(self) -> type[ProcessRecorder]:
        return PostgresProcessRecorder


class Counted(Aggregate):
    """Something for the library's own application to keep."""

    @event("Raised")
    def rise(self) -> None:
        self.times = getattr(self, "times", 0) + 1


def test_the_librarys_application_runs_over_the_factory() -> None:
    with (
        server().database() as fresh,
        Application[UUID](
            env={
                "PERSISTENCE_MODULE": "remembrancer.adapters.postgres.factory",
                "POSTGRES_DSN": fresh.app,
                "POSTGRES_TENANT": TENANT,
                "POSTGRES_OWNER": OWNER,
                "IS_SNAPSHOTTING_ENABLED": "y",
            }
        ) as application,
    ):
        counted = Counted()
        counted.rise()
        application.save(counted)
        application.take_snapshot(counted.id)
        counted.rise()
        application.save(counted)
        found: Counted = application.repository.get(counted.id)

        assert (found.times, found.version) == (2, 3)
        assert [one.id for one in application.notification_log.select(1, limit=9)] == [1, 2, 3]


@pytest.mark.parametrize("env", [{}, {"POSTGRES_DSN": ""}, {"POSTGRES_DSN": "host=127.0.0.1"}])
def test_the_factory_says_which_setting_is_wrong(env: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="POSTGRES_"):
        PostgresFactory(env)
