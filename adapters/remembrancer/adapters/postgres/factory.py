"""The event-sourcing library's infrastructure, for hosts that build applications with it.

``PERSISTENCE_MODULE=remembrancer.adapters.postgres.factory`` selects it; ``POSTGRES_DSN`` names
the database, ``POSTGRES_TENANT`` and ``POSTGRES_OWNER`` whose events are recorded.  Without an
owner all of the tenant's are read, and who writes must act for one.  Remembrancer itself is
composed without the library's factories.
"""

from contextlib import ExitStack

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ProcessRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.recorder import (
    PostgresAggregateRecorder,
    PostgresApplicationRecorder,
    PostgresProcessRecorder,
)
from remembrancer.adapters.postgres.snapshot_recorder import PostgresSnapshotRecorder
from remembrancer.adapters.postgres.tracking_recorder import PostgresTrackingRecorder
from remembrancer.domain.errors import SettingsError


class PostgresFactory(InfrastructureFactory[PostgresTrackingRecorder]):
    """Recorders that share one :class:`Database`, whose schema `migrate up` has made.

    ``CREATE_TABLE`` has therefore no effect.
    """

    POSTGRES_DSN = "POSTGRES_DSN"
    POSTGRES_TENANT = "POSTGRES_TENANT"
    POSTGRES_OWNER = "POSTGRES_OWNER"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        dsn = self.env.get(self.POSTGRES_DSN)
        if not dsn:
            raise SettingsError(setting=self.POSTGRES_DSN, problem="is missing; name a database")
        self._whose = {
            "tenant": self.env.get(self.POSTGRES_TENANT) or None,
            "owner": self.env.get(self.POSTGRES_OWNER) or None,
        }
        if self._whose["tenant"] is None:
            problem = "is missing; name the tenant whose events these are"
            raise SettingsError(setting=self.POSTGRES_TENANT, problem=problem)
        self._opened = ExitStack()
        self.database = self._opened.enter_context(Database.open(dsn))

    @override
    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        if purpose == "snapshots":
            return PostgresSnapshotRecorder(database=self.database, **self._whose)
        return PostgresAggregateRecorder(database=self.database, **self._whose)

    @override
    def application_recorder(self) -> ApplicationRecorder:
        topic = self.env.get(self.APPLICATION_RECORDER_TOPIC)
        recorder: type[PostgresApplicationRecorder] = (
            resolve_topic(topic) if topic else PostgresApplicationRecorder
        )
        return recorder(database=self.database, **self._whose)

    @override
    def tracking_recorder(
        self, tracking_recorder_class: type[PostgresTrackingRecorder] | None = None
    ) -> PostgresTrackingRecorder:
        topic = self.env.get(self.TRACKING_RECORDER_TOPIC)
        if tracking_recorder_class is None:
            tracking_recorder_class = resolve_topic(topic) if topic else PostgresTrackingRecorder
        return tracking_recorder_class(database=self.database)

    @override
    def process_recorder(self) -> ProcessRecorder:
        topic = self.env.get(self.PROCESS_RECORDER_TOPIC)
        recorder: type[PostgresProcessRecorder] = (
            resolve_topic(topic) if topic else PostgresProcessRecorder
        )
        return recorder(database=self.database, **self._whose)

    @override
    def close(self) -> None:
        self._opened.close()
