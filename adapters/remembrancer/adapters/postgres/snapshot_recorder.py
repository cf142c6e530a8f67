"""Snapshots of aggregates, for hosts that use the event-sourcing library's applications."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, StoredEvent
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.stream_rows import conflicts, stream_key, within

_INSERT = "INSERT INTO stored_snapshots VALUES (%s, %s, %s, %s, %s, %s)"
_SELECT = "SELECT originator_version, topic, state FROM stored_snapshots WHERE originator_id = %s"


class PostgresSnapshotRecorder(AggregateRecorder):
    """Snapshots: a cache, not chained."""

    def __init__(
        self, *, database: Database, tenant: str | None = None, owner: str | None = None
    ) -> None:
        """Keep snapshots of one owner's aggregates, or of whoever is acted for."""
        self._database = database
        self._tenant, self._owner = tenant, owner

    @override
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        with (
            conflicts(),
            self._database.write(tenant=self._tenant, owner=self._owner) as connection,
        ):
            whose = self._database.owned
            connection.cursor().executemany(
                _INSERT,
                [
                    (
                        *whose,
                        stream_key(one.originator_id),
                        one.originator_version,
                        one.topic,
                        one.state,
                    )
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
            _SELECT, [stream_key(originator_id)], gt=gt, lte=lte, desc=desc, limit=limit
        )
        with self._database.read(tenant=self._tenant, owner=self._owner) as connection:
            return [
                StoredEvent(originator_id, version, topic, state)
                for version, topic, state in connection.execute(statement, values, binary=True)
            ]
