"""The log: append-only, authoritative."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from eventsourcing.domain import AggregateEvent


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event and its place among all events of the log."""

    position: int
    """From 1, rising, never used twice; there may be gaps."""
    event: AggregateEvent


class EventLog(Protocol):
    """Streams of domain events, chained by hash, in one total order.

    Only events of :data:`remembrancer.domain.stored_format.EVENTS` go in and come out.  An event
    is never changed or removed.
    """

    def append(self, events: Sequence[AggregateEvent]) -> None:
        """Append events, of one stream or several, all or none.

        Raises:
            StaleStreamError: a stream already has an event of that version; nothing was added.
                What is there may be this very event, if a commit's outcome was unknown: load
                and compare.
            UnknownTopicError: an event's class isn't listed.
        """
        ...

    def read(self, stream_id: UUID, *, after_version: int = 0) -> Iterator[AggregateEvent]:
        """Yield a stream's events with versions above ``after_version``, in order.

        Raises:
            UnknownTopicError: a record's topic isn't listed; nothing was imported for it.
            MalformedRecordError: a record isn't canonical, or the chain of hashes is broken.
        """
        ...

    def follow(self, *, after_position: int, limit: int) -> list[Recorded]:
        """Return up to ``limit`` events behind ``after_position``, in position order.

        A position, once seen, has no unseen smaller one: a follower misses nothing.
        """
        ...

    def event_of(self, stream_id: UUID, version: int, topic: str, state: bytes) -> AggregateEvent:
        """Return the event of a record, as :meth:`read` would; reads nothing.

        Raises:
            UnknownTopicError: the topic isn't listed; nothing was imported for it.
            MalformedRecordError: the state isn't canonical, or not that of such an event.
        """
        ...

    def position(self) -> int:
        """Return the last position, 0 for an empty log."""
        ...
