"""A recorder in memory: the event-sourcing library's interface, chained like the durable one.

Composition joins it with the event log of :mod:`remembrancer.adapters.eventlog`; this package
doesn't know that one.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
)
from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.domain.hash_chain import GENESIS, Link, check_chain, check_link, event_hash


@dataclass(frozen=True, slots=True)
class _Row:
    stream_id: UUID
    link: Link


class MemoryRecorder(ProcessRecorder):
    """Events and tracking of one process; a rolled-back transaction leaves nothing."""

    def __init__(self, *, transactions: MemoryTransactions) -> None:
        self._transactions = transactions
        self._rows: list[_Row] = []
        """At index n - 1: the event with number n."""
        self._streams: dict[UUID, list[Link]] = {}
        self._tracking: dict[str, int] = {}
        self._listening: set[threading.Event] = set()

    @override
    def insert_events(
        self,
        stored_events: Sequence[StoredEvent],
        *,
        tracking: Tracking | None = None,
        **kwargs: Any,
    ) -> Sequence[int] | None:
        with self._transactions.begin():
            numbers = [self._insert(one) for one in stored_events]
            if tracking is not None:
                self.insert_tracking(tracking)
        # A listener that is quick waits for the lock until an outer transaction has ended.
        for event in list(self._listening):
            event.set()
        return numbers

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
        stream_id = _uuid(originator_id)
        with self._transactions.snapshot():
            stream = self._streams.get(stream_id, [])
            first = 0 if gt is None else bisect_right(stream, gt, key=_version)
            last = len(stream) if lte is None else bisect_right(stream, lte, key=_version)
            before = stream[first - 1] if first else None
            links = stream[first:last]
        check_chain(stream_id, links, before=before)
        if desc:
            links.reverse()
        return [
            StoredEvent(originator_id, one.version, one.topic, one.state) for one in links[:limit]
        ]

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
        first = 1 if start is None else max(1, start if inclusive_of_start else start + 1)
        found: list[Notification] = []
        with self._transactions.snapshot():
            for number, row in enumerate(self._rows[first - 1 : stop], start=first):
                if len(found) == limit:
                    break
                link = row.link
                if topics and link.topic not in topics:
                    continue
                check_link(row.stream_id, link)
                found.append(
                    Notification(row.stream_id, link.version, link.topic, link.state, number)
                )
        return found

    @override
    def max_notification_id(self) -> int | None:
        with self._transactions.snapshot():
            return len(self._rows) or None

    @override
    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return MemorySubscription(recorder=self, gt=gt, topics=topics)

    @override
    def insert_tracking(self, tracking: Tracking) -> None:
        name = tracking.application_name
        with self._transactions.begin():
            before = self._tracking.get(name)
            if before is not None and tracking.notification_id <= before:
                raise IntegrityError("tracking only moves forward")
            self._tracking[name] = tracking.notification_id
            self._transactions.on_rollback(partial(self._forget_tracking, name, before))

    @override
    def max_tracking_id(self, application_name: str) -> int | None:
        with self._transactions.snapshot():
            return self._tracking.get(application_name)

    def rows(self) -> Iterator[tuple[int, UUID, Link]]:
        """Iterate over all rows by number; called inside a snapshot or a transaction."""
        for number, row in enumerate(self._rows, start=1):
            yield number, row.stream_id, row.link

    def stream(self, stream_id: UUID) -> Sequence[Link]:
        """Return a stream as it is stored; called inside a snapshot or a transaction."""
        return self._streams.get(stream_id, ())

    def listen(self, event: threading.Event) -> None:
        """Set ``event`` after each insert."""
        self._listening.add(event)

    def unlisten(self, event: threading.Event) -> None:
        """Stop doing so."""
        self._listening.discard(event)

    def _insert(self, one: StoredEvent) -> int:
        stream_id = _uuid(one.originator_id)
        stream = self._streams.setdefault(stream_id, [])
        if stream and one.originator_version != stream[-1].version + 1:
            raise IntegrityError(
                f"the stream is at version {stream[-1].version}, not before "
                f"{one.originator_version}"
            )
        predecessor = stream[-1].own if stream else GENESIS
        own = event_hash(predecessor, one.topic, one.state)
        link = Link(one.originator_version, one.topic, one.state, predecessor, own)
        stream.append(link)
        self._rows.append(_Row(stream_id, link))
        self._transactions.on_rollback(partial(_forget_last, stream, self._rows))
        return len(self._rows)

    def _forget_tracking(self, name: str, before: int | None) -> None:
        if before is None:
            del self._tracking[name]
        else:
            self._tracking[name] = before


class MemorySubscription(ListenNotifySubscription[MemoryRecorder]):
    """Follows the recorder."""

    def __init__(self, *, recorder: MemoryRecorder, gt: int | None, topics: Sequence[str]) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        recorder.listen(self._has_been_notified)

    @override
    def stop(self) -> None:
        super().stop()
        self._recorder.unlisten(self._has_been_notified)


def _forget_last(stream: list[Link], rows: list[_Row]) -> None:
    stream.pop()
    rows.pop()


def _version(link: Link) -> int:
    return link.version


def _uuid(originator_id: UUID | str) -> UUID:
    return originator_id if isinstance(originator_id, UUID) else UUID(originator_id)
