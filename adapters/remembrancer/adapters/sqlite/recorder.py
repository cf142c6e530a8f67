"""The event-sourcing library's recorders, over one SQLite file.

What differs from the library's own: apsw instead of the standard module; events are chained by
hash and checked on reading; triggers keep them; a stream has no gaps; and nothing is tried again:
after a lock or a broken commit the caller reads back and decides.
"""

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

import apsw
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

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.heads import Head, Heads
from remembrancer.adapters.sqlite.stream_rows import conflicts, stream_key, within
from remembrancer.adapters.sqlite.subscription import SqliteSubscription
from remembrancer.adapters.sqlite.tracking_recorder import SqliteTrackingRecorder, track
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.hash_chain import GENESIS, Link, check_chain, check_link, event_hash

_INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state,"
    " predecessor_hash, event_hash) VALUES (?, ?, ?, ?, ?, ?)"
)
_SELECT = (
    "SELECT originator_version, topic, state, predecessor_hash, event_hash FROM stored_events"
    " WHERE originator_id = ?"
)
_HEAD = (
    "SELECT originator_version, event_hash FROM stored_events WHERE originator_id = ?"
    " ORDER BY originator_version DESC LIMIT 1"
)
_NOTIFICATIONS = (
    "SELECT notification_id, originator_id, originator_version, topic, state, predecessor_hash,"
    " event_hash FROM stored_events"
)


class SqliteAggregateRecorder(AggregateRecorder):
    """Streams of chained events."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        with conflicts(), self._database.write() as connection:
            self._insert(connection, stored_events, **kwargs)
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
        stream_id = originator_id if isinstance(originator_id, UUID) else UUID(originator_id)
        key = stream_id.bytes
        statement, values = within(_SELECT, [key], gt=gt, lte=lte, desc=desc, limit=limit)
        before = None
        with self._database.read() as connection:
            links = list(map(Link._make, connection.execute(statement, values)))
            in_order = links[::-1] if desc else links
            if in_order and (gt is not None or desc):
                before = _link_before(connection, key, in_order[0].version)
        check_chain(stream_id, in_order, before=before)
        return [StoredEvent(originator_id, one.version, one.topic, one.state) for one in links]

    def _insert(
        self, connection: apsw.Connection, stored_events: Sequence[StoredEvent], **_: Any
    ) -> int:
        """Insert within the open transaction; return the last number given out."""
        certain = self._database.heads
        heads: dict[bytes, Head] = {}
        rows = []
        for one in stored_events:
            key = stream_key(one.originator_id)
            version = one.originator_version
            head = heads.get(key)
            if head is None and version != 1:  # What already is at 1 can't be added once more.
                head = certain.take(key) or _head(connection, key)
            if head is not None and version != head[0] + 1:
                raise IntegrityError(f"the stream is at version {head[0]}, not before {version}")
            predecessor = GENESIS if head is None else head[1]
            own = event_hash(predecessor, one.topic, one.state)
            rows.append((key, version, one.topic, one.state, predecessor, own))
            heads[key] = (version, own)
        connection.executemany(_INSERT, rows)
        self._database.after_commit(partial(self._committed, certain, heads))
        return connection.last_insert_rowid() if rows else 0

    def _committed(self, certain: Heads, heads: dict[bytes, Head]) -> None:
        certain.keep(heads)


class SqliteApplicationRecorder(SqliteAggregateRecorder, ApplicationRecorder):
    """Chained events, also in one total order: numbers in the order of commits, without holes."""

    def __init__(self, *, database: Database) -> None:
        super().__init__(database=database)
        self._listening = set[threading.Event]()

    @override
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        with conflicts(), self._database.write() as connection:
            last = self._insert(connection, stored_events, **kwargs)
        return list(range(last - len(stored_events) + 1, last + 1)) if stored_events else []

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
        conditions, values = [], list[int | str]()
        if start is not None:
            conditions.append(f"notification_id {'>=' if inclusive_of_start else '>'} ?")
            values.append(start)
        if stop is not None:
            conditions.append("notification_id <= ?")
            values.append(stop)
        if topics:
            conditions.append(f"topic IN ({', '.join('?' * len(topics))})")
            values.extend(topics)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        statement = f"{_NOTIFICATIONS}{where} ORDER BY notification_id LIMIT ?"
        with self._database.read() as connection:
            rows: list[Any] = connection.execute(statement, (*values, limit)).fetchall()
        try:
            return [
                _notification(number, UUID(bytes=key), Link(*link)) for number, key, *link in rows
            ]
        except (TypeError, ValueError) as error:  # No id of a stream.
            problem = "the log is damaged"
            raise StoreCorruptError(store=str(self._database.path), problem=problem) from error

    @override
    def max_notification_id(self) -> int | None:
        with self._database.read() as connection:
            last: int | None = connection.execute(
                "SELECT max(notification_id) FROM stored_events"
            ).get
            return last

    @override
    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return SqliteSubscription(recorder=self, gt=gt, topics=topics, listening=self._listening)

    @override
    def _committed(self, certain: Heads, heads: dict[bytes, Head]) -> None:
        super()._committed(certain, heads)
        for event in list(self._listening):
            event.set()


class SqliteProcessRecorder(SqliteTrackingRecorder, SqliteApplicationRecorder, ProcessRecorder):
    """Events and the position they were derived from, in one transaction."""

    def __init__(self, *, database: Database) -> None:
        SqliteApplicationRecorder.__init__(self, database=database)

    @override
    def _insert(
        self,
        connection: apsw.Connection,
        stored_events: Sequence[StoredEvent],
        *,
        tracking: Tracking | None = None,
        **kwargs: Any,
    ) -> int:
        last = super()._insert(connection, stored_events, **kwargs)
        if tracking is not None:
            track(connection, tracking)
        return last


def _notification(number: int, stream_id: UUID, link: Link) -> Notification:
    check_link(stream_id, link)
    return Notification(stream_id, link.version, link.topic, link.state, number)


def _head(connection: apsw.Connection, key: bytes) -> Head | None:
    head: Head | None = connection.execute(_HEAD, (key,)).fetchone()
    return head


def _link_before(connection: apsw.Connection, key: bytes, version: int) -> Link | None:
    row = connection.execute(
        f"{_SELECT} AND originator_version = ?", (key, version - 1)
    ).fetchone()
    return None if row is None else Link(*row)
