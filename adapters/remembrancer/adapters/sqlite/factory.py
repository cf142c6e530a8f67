"""The event-sourcing library's infrastructure, for hosts that build applications with it.

``PERSISTENCE_MODULE=remembrancer.adapters.sqlite.factory`` and ``SQLITE_DBNAME=<path>`` select it.
Remembrancer itself is composed without the library's factories.
"""

from contextlib import ExitStack
from pathlib import Path

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ProcessRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.recorder import (
    SqliteAggregateRecorder,
    SqliteApplicationRecorder,
    SqliteProcessRecorder,
)
from remembrancer.adapters.sqlite.snapshot_recorder import SqliteSnapshotRecorder
from remembrancer.adapters.sqlite.tracking_recorder import SqliteTrackingRecorder
from remembrancer.domain.errors import SettingsError


class SqliteFactory(InfrastructureFactory[SqliteTrackingRecorder]):
    """Recorders that share one :class:`Database`; the schema is always in place.

    ``CREATE_TABLE`` has therefore no effect.
    """

    SQLITE_DBNAME = "SQLITE_DBNAME"
    SQLITE_LOCK_TIMEOUT = "SQLITE_LOCK_TIMEOUT"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        path = self.env.get(self.SQLITE_DBNAME)
        if not path:
            raise SettingsError(setting=self.SQLITE_DBNAME, problem="is missing; name a file")
        timeout_text = (self.env.get(self.SQLITE_LOCK_TIMEOUT) or "").strip() or "5"
        try:
            timeout_s = float(timeout_text)
        except ValueError:
            raise SettingsError(
                setting=self.SQLITE_LOCK_TIMEOUT, problem="must be a number of seconds"
            ) from None
        self._opened = ExitStack()
        self.database = self._opened.enter_context(
            Database.open(Path(path), busy_timeout_s=timeout_s)
        )

    @override
    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        if purpose == "snapshots":
            return SqliteSnapshotRecorder(database=self.database)
        return SqliteAggregateRecorder(database=self.database)

    @override
    def application_recorder(self) -> ApplicationRecorder:
        topic = self.env.get(self.APPLICATION_RECORDER_TOPIC)
        recorder: type[SqliteApplicationRecorder] = (
            resolve_topic(topic) if topic else SqliteApplicationRecorder
        )
        return recorder(database=self.database)

    @override
    def tracking_recorder(
        self, tracking_recorder_class: type[SqliteTrackingRecorder] | None = None
    ) -> SqliteTrackingRecorder:
        topic = self.env.get(self.TRACKING_RECORDER_TOPIC)
        if tracking_recorder_class is None:
            tracking_recorder_class = resolve_topic(topic) if topic else SqliteTrackingRecorder
        return tracking_recorder_class(database=self.database)

    @override
    def process_recorder(self) -> ProcessRecorder:
        topic = self.env.get(self.PROCESS_RECORDER_TOPIC)
        recorder: type[SqliteProcessRecorder] = (
            resolve_topic(topic) if topic else SqliteProcessRecorder
        )
        return recorder(database=self.database)

    @override
    def close(self) -> None:
        self._opened.close()
