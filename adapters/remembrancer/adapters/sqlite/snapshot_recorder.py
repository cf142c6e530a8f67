"""Snapshots of aggregates, for hosts that use the event-sourcing library's applications."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, StoredEvent
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.stream_rows import conflicts, stream_key, within


class SqliteSnapshotRecorder(AggregateRecorder):
    """Snapshots: a cache, not chained."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        with conflicts(), self._database.write() as connection:
            connection.executemany(
                "INSERT INTO stored_snapshots VALUES (?, ?, ?, ?)",
                [
                    (stream_key(one.originator_id), one.originator_version, one.topic, one.state)
                    for one in stored_events
                ],
            )
        return None

    @override
    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        statement, values = within(
            "SELECT originator_version, topic, state FROM stored_snapshots"
            " WHERE originator_id = ?",
            [stream_key(originator_id)],
            gt=gt,
            lte=lte,
            desc=desc,
            limit=limit,
        )
        with self._database.read() as connection:
            return [
                StoredEvent(originator_id, version, topic, state)
                for version, topic, state in connection.execute(statement, values)
            ]
