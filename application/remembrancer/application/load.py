"""Aggregates from their streams."""

from typing import TypeVar, cast
from uuid import UUID

from eventsourcing.domain import (
    Aggregate,
    AggregateEvent,
    OriginatorIDError,
    OriginatorVersionError,
)

from remembrancer.application.ports import EventLog
from remembrancer.domain.errors import InvalidInputError, MalformedRecordError

_Kind = TypeVar("_Kind", bound=Aggregate)

_IMPOSSIBLE = (
    AssertionError,
    AttributeError,
    InvalidInputError,
    LookupError,
    OriginatorIDError,
    OriginatorVersionError,
    TypeError,
    ValueError,
)
"""What taking in an event of the right fields and types may still raise: of names that aren't in
a list of ours, of ids that aren't any, of a stream that doesn't begin at its beginning."""


def load(log: EventLog, kind: type[_Kind], stream_id: UUID) -> _Kind | None:
    """Fold a stream into its aggregate; None where nothing was recorded.

    Raises:
        UnknownTopicError: as :meth:`EventLog.read`.
        MalformedRecordError: as :meth:`EventLog.read`, or the stream is of another aggregate, or
            an event that nobody altered holds what no decision could have recorded.
    """
    aggregate: Aggregate | None = None
    for event in log.read(stream_id):
        aggregate = evolved(aggregate, event)
    if aggregate is not None and not isinstance(aggregate, kind):
        raise MalformedRecordError(
            stream_id=stream_id, version=1, problem=f"is not a stream of {kind.__name__}"
        )
    return aggregate


def evolved(aggregate: Aggregate | None, event: AggregateEvent) -> Aggregate | None:
    """Return ``aggregate`` after ``event``, which begins one where there is none.

    Raises:
        MalformedRecordError: the event holds what no decision could have recorded.
    """
    try:
        after: Aggregate | None = event.mutate(aggregate)
    except _IMPOSSIBLE as error:
        raise MalformedRecordError(
            stream_id=event.originator_id,
            version=event.originator_version,
            problem="no decision recorded this",
        ) from error
    return after


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
