"""The event-sourcing library's recorders, over PostgreSQL.

What differs from the library's own: a writer locks its owner, not the table (adr/0017); events are
chained by hash and checked on reading; nobody may change them; a stream has no gaps; and nothing
is tried again: what became of a commit that wasn't confirmed is found out instead.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    IntegrityError,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
)
from typing_extensions import override

from remembrancer.adapters.postgres.connection import Connection, together
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.stream_rows import conflicts, stream_key, within
from remembrancer.adapters.postgres.subscription import PostgresSubscription
from remembrancer.adapters.postgres.tracking_recorder import PostgresTrackingRecorder, track
from remembrancer.domain.hash_chain import GENESIS, Link, check_chain, check_link, event_hash

# Rows get their positions in the order of the list.
_INSERT = """
    INSERT INTO stored_events (tenant, owner, originator_id, originator_version, topic, state,
        predecessor_hash, event_hash)
    SELECT %s, %s, originator_id, originator_version, topic, state, predecessor_hash, event_hash
    FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::bytea[], %s::bytea[], %s::bytea[])
        WITH ORDINALITY AS new (originator_id, originator_version, topic, state,
            predecessor_hash, event_hash, place)
    ORDER BY place
    RETURNING position
"""
_HEADS = """
    SELECT stream.id, head.originator_version, head.event_hash
    FROM unnest(%s::uuid[]) AS stream (id)
    CROSS JOIN LATERAL (
        SELECT originator_version, event_hash FROM stored_events
        WHERE tenant = %s AND originator_id = stream.id
        ORDER BY originator_version DESC LIMIT 1
    ) AS head
"""
_SELECT = (
    "SELECT originator_version, topic, state, predecessor_hash, event_hash FROM stored_events"
    " WHERE originator_id = %s"
)
_NOTIFICATIONS = (
    "SELECT position, originator_id, originator_version, topic, state, predecessor_hash,"
    " event_hash FROM stored_events WHERE position <= %s"
)

_FIND = """
    SELECT position FROM unnest(%s::uuid[], %s::bigint[]) AS one (id, version)
    JOIN stored_events ON originator_id = one.id AND originator_version = one.version
    ORDER BY position
"""

_Head = tuple[int, bytes]


class PostgresAggregateRecorder(AggregateRecorder):
    """Streams of chained events."""

    def __init__(
        self, *, database: Database, tenant: str | None = None, owner: str | None = None
    ) -> None:
        """Record one owner's events, or those of whoever is acted for."""
        self._database = database
        self._tenant, self._owner = tenant, owner

    @override
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        self._record(stored_events, **kwargs)
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
        """Read a stream, or a part of it, and check its chain.

        Raises:
            MalformedRecordError: the chain is broken.
        """
        key = stream_key(originator_id)
        statement, values = within(_SELECT, [key], gt=gt, lte=lte, desc=desc, limit=limit)
        before = None
        with self._database.read(tenant=self._tenant, owner=self._owner) as connection:
            links = [Link(*row) for row in connection.execute(statement, values, binary=True)]
            in_order = links[::-1] if desc else links
            if in_order and (gt is not None or desc):
                before = _link_before(connection, key, in_order[0].version)
        check_chain(key, in_order, before=before)
        return [StoredEvent(originator_id, one.version, one.topic, one.state) for one in links]

    def _record(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> list[int]:
        """Commit events, or add them to this thread's transaction; return their positions."""
        with (
            conflicts(),
            self._database.write(
                tenant=self._tenant, owner=self._owner, pipelined=True
            ) as connection,
        ):
            cursor = self._insert(connection, stored_events, **kwargs)
        if cursor is None:
            return []
        try:
            return [position for (position,) in cursor]
        except psycopg.Error:  # The answer got lost; the events were found to be in.
            return self._positions(stored_events)

    def _positions(self, stored_events: Sequence[StoredEvent]) -> list[int]:
        keys = [stream_key(one.originator_id) for one in stored_events]
        versions = [one.originator_version for one in stored_events]
        with self._database.read(tenant=self._tenant, owner=self._owner) as connection:
            return [position for (position,) in connection.execute(_FIND, (keys, versions))]

    def _insert(
        self, connection: Connection, stored_events: Sequence[StoredEvent], **_: Any
    ) -> Any:
        """Insert within the open transaction; return the cursor that will have the positions."""
        if not stored_events:
            return None
        tenant, owner = self._database.owned
        keys = [stream_key(one.originator_id) for one in stored_events]
        with together(connection):
            self._database.lock_position()
            found = connection.execute(_HEADS, (list(set(keys)), tenant), binary=True)
        heads: dict[UUID, _Head] = {key: (version, own) for key, version, own in found}
        rows = []
        for key, one in zip(keys, stored_events, strict=True):
            head = heads.get(key)
            version = one.originator_version
            if head is not None and version != head[0] + 1:
                raise IntegrityError(f"the stream is at version {head[0]}, not before {version}")
            predecessor = GENESIS if head is None else head[1]
            own = event_hash(predecessor, one.topic, one.state)
            rows.append((key, version, one.topic, one.state, predecessor, own))
            heads[key] = (version, own)
        columns = [list(column) for column in zip(*rows, strict=True)]
        return connection.execute(_INSERT, (tenant, owner, *columns), binary=True)


class PostgresApplicationRecorder(PostgresAggregateRecorder, ApplicationRecorder):
    """Chained events, also in one total order, with gaps."""

    @override
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        return self._record(stored_events, **kwargs)

    @override
    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return notifications, each checked against its hash.

        Raises:
            MalformedRecordError: a row isn't what was recorded.
        """
        statement, values = _NOTIFICATIONS, list[Any]()
        if start is not None:
            statement += f" AND position {'>=' if inclusive_of_start else '>'} %s"
            values.append(start)
        if stop is not None:
            statement += " AND position <= %s"
            values.append(stop)
        if topics:
            statement += " AND topic = ANY(%s)"
            values.append(list(topics))
        statement += " ORDER BY position LIMIT %s"
        with self._database.read(tenant=self._tenant, owner=self._owner) as connection:
            bound = self._database.last_settled(connection)
            rows = connection.execute(statement, (bound, *values, limit), binary=True).fetchall()
        return [_notification(number, key, Link(*link)) for number, key, *link in rows]

    @override
    def max_notification_id(self) -> int | None:
        with self._database.read(tenant=self._tenant, owner=self._owner) as connection:
            bound = self._database.last_settled(connection)
            row = connection.execute(
                "SELECT max(position) FROM stored_events WHERE position <= %s", (bound,)
            ).fetchone()
        return None if row is None else row[0]

    @override
    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return PostgresSubscription(recorder=self, database=self._database, gt=gt, topics=topics)


class PostgresProcessRecorder(
    PostgresTrackingRecorder, PostgresApplicationRecorder, ProcessRecorder
):
    """Events and the position they were derived from, in one transaction."""

    def __init__(
        self, *, database: Database, tenant: str | None = None, owner: str | None = None
    ) -> None:
        """Record one owner's events, or those of whoever is acted for."""
        PostgresApplicationRecorder.__init__(self, database=database, tenant=tenant, owner=owner)

    @override
    def _insert(
        self,
        connection: Connection,
        stored_events: Sequence[StoredEvent],
        *,
        tracking: Tracking | None = None,
        **kwargs: Any,
    ) -> Any:
        cursor = super()._insert(connection, stored_events, **kwargs)
        if tracking is not None:
            track(connection, tracking)
        return cursor


def _notification(number: int, stream_id: UUID, link: Link) -> Notification:
    check_link(stream_id, link)
    return Notification(stream_id, link.version, link.topic, link.state, number)


def _link_before(connection: Connection, key: UUID, version: int) -> Link | None:
    row = connection.execute(
        f"{_SELECT} AND originator_version = %s", (key, version - 1), binary=True
    ).fetchone()
    return None if row is None else Link(*row)
