"""How far projections have followed a log."""

from eventsourcing.persistence import Tracking, TrackingRecorder
from typing_extensions import override

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.stream_rows import conflicts

_TRACK = (
    "INSERT INTO tracking (application_name, notification_id) VALUES (%s, %s)"
    " ON CONFLICT (application_name) DO UPDATE SET notification_id = excluded.notification_id"
)
_POSITION = "SELECT notification_id FROM tracking WHERE application_name = %s"


class PostgresTrackingRecorder(TrackingRecorder):
    """How far projections have come; a position only rises.  It belongs to no tenant."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def insert_tracking(self, tracking: Tracking) -> None:
        with conflicts(), self._database.begin() as connection:
            track(connection, tracking)

    @override
    def max_tracking_id(self, application_name: str) -> int | None:
        with self._database.read_common() as connection:
            row = connection.execute(_POSITION, (application_name,)).fetchone()
        return None if row is None else row[0]


def track(connection: Connection, tracking: Tracking) -> None:
    """Move a position forward within the open transaction."""
    connection.execute(_TRACK, (tracking.application_name, tracking.notification_id))
