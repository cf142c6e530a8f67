"""Aggregates from their streams."""

from typing import TypeVar, cast
from uuid import UUID

from eventsourcing.domain import Aggregate, AggregateEvent

from remembrancer.application.ports import EventLog
from remembrancer.domain.errors import MalformedRecordError

_Kind = TypeVar("_Kind", bound=Aggregate)


def load(log: EventLog, kind: type[_Kind], stream_id: UUID) -> _Kind | None:
    """Fold a stream into its aggregate; None where nothing was recorded.

    Raises:
        UnknownTopicError: as :meth:`EventLog.read`.
        MalformedRecordError: as :meth:`EventLog.read`, or the stream is of another aggregate.
    """
    aggregate: Aggregate | None = None
    for event in log.read(stream_id):
        aggregate = event.mutate(aggregate)
    if aggregate is not None and not isinstance(aggregate, kind):
        raise MalformedRecordError(
            stream_id=stream_id, version=1, problem=f"is not a stream of {kind.__name__}"
        )
    return aggregate


def append(log: EventLog, *aggregates: Aggregate) -> None:
    """Append what these aggregates have decided, all or none.

    Their pending events are collected only once the append has succeeded, so a failed one can be
    repeated.
    """
    # The library types pending events by what they can do; ours are all of its event class.
    pending = [
        cast("AggregateEvent", event)
        for aggregate in aggregates
        for event in aggregate.pending_events
    ]
    if pending:
        log.append(pending)
    for aggregate in aggregates:
        aggregate.collect_events()
