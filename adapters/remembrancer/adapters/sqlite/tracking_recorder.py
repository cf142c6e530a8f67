"""How far projections have followed a log."""

import apsw
from eventsourcing.persistence import Tracking, TrackingRecorder
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.stream_rows import conflicts

_TRACK = (
    "INSERT INTO tracking (application_name, notification_id) VALUES (?, ?)"
    " ON CONFLICT (application_name) DO UPDATE SET notification_id = excluded.notification_id"
)


class SqliteTrackingRecorder(TrackingRecorder):
    """How far projections have come; a position only rises."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def insert_tracking(self, tracking: Tracking) -> None:
        with conflicts(), self._database.write() as connection:
            track(connection, tracking)

    @override
    def max_tracking_id(self, application_name: str) -> int | None:
        with self._database.read() as connection:
            position: int | None = connection.execute(
                "SELECT notification_id FROM tracking WHERE application_name = ?",
                (application_name,),
            ).get
            return position


def track(connection: apsw.Connection, tracking: Tracking) -> None:
    """Move a position forward within the open transaction."""
    connection.execute(_TRACK, (tracking.application_name, tracking.notification_id))
