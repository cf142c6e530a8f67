"""The log over a recorder of the event-sourcing library's kind."""

from collections.abc import Iterator, Sequence
from typing import cast
from uuid import UUID

from eventsourcing.domain import AggregateEvent
from eventsourcing.persistence import ApplicationRecorder, IntegrityError, StoredEvent
from typing_extensions import override

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.application.ports.event_log import EventLog, Recorded
from remembrancer.domain.errors import MalformedRecordError, StaleStreamError


class RecordedEventLog(EventLog):
    """Listed events over one of our recorders, which chains by hash and checks what it reads."""

    def __init__(self, *, recorder: ApplicationRecorder) -> None:
        self._recorder = recorder
        self._mapper = ListedMapper()

    @override
    def append(self, events: Sequence[AggregateEvent]) -> None:
        records = [self._mapper.to_stored_event(event) for event in events]
        if not records:
            return
        try:
            self._recorder.insert_events(records)
        except IntegrityError as error:
            raise self._refusal(records) from error

    @override
    def read(self, stream_id: UUID, *, after_version: int = 0) -> Iterator[AggregateEvent]:
        after = after_version or None
        for record in self._recorder.select_events(stream_id, gt=after):
            yield self._mapper.to_domain_event(record)

    @override
    def follow(self, *, after_position: int, limit: int) -> list[Recorded]:
        notifications = self._recorder.select_notifications(
            start=after_position, limit=limit, inclusive_of_start=False
        )
        return [Recorded(one.id, self._mapper.to_domain_event(one)) for one in notifications]

    @override
    def event_of(self, stream_id: UUID, version: int, topic: str, state: bytes) -> AggregateEvent:
        return self._mapper.to_domain_event(StoredEvent(stream_id, version, topic, state))

    @override
    def position(self) -> int:
        return self._recorder.max_notification_id() or 0

    def _refusal(self, records: Sequence[StoredEvent]) -> StaleStreamError | MalformedRecordError:
        """Read back why the recorder refused."""
        heads: dict[UUID, int] = {}
        for record in records:
            stream_id = cast("UUID", record.originator_id)  # The mapper made it.
            if stream_id not in heads:
                newest = self._recorder.select_events(stream_id, desc=True, limit=1)
                heads[stream_id] = newest[0].originator_version if newest else 0
            if record.originator_version <= heads[stream_id]:
                return StaleStreamError(stream_id)
            if record.originator_version > heads[stream_id] + 1:
                return MalformedRecordError(
                    stream_id=stream_id,
                    version=record.originator_version,
                    problem=f"would leave a gap after version {heads[stream_id]}",
                )
            heads[stream_id] += 1
        return StaleStreamError(cast("UUID", records[0].originator_id))
