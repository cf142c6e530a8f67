"""The stored format of events: which topics exist, and nothing else may be read.

A row's topic names a class; resolving an unlisted one would import whatever it names, so every
adapter checks this list first, for the event and for the aggregate its state names.
"""

from eventsourcing.domain import AggregateEvent

from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import UnknownTopicError
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.reservation_ledger import ReservationLedger

EVENTS: dict[str, type[AggregateEvent]] = {
    cls.TOPIC: cls
    for cls in (
        MemoryEntry.EntryRemembered,
        MemoryEntry.EntryCorrected,
        MemoryEntry.EntryErased,
        L3Selection.L3EntriesSelected,
        L3Selection.ContextPackAssembled,
        ReservationLedger.ReservationAdmitted,
        ReservationLedger.ReservationSettled,
        ReservationLedger.ReservationBecameUnknown,
        ReservationLedger.ReservationReconciled,
        CacheContext.CacheContextBound,
        CacheContext.CacheContextReplaced,
        CacheContext.QueryVectorsPrepared,
        CacheContext.AdmissionWithdrawn,
    )
}
"""Every event that may be stored, by topic."""

AGGREGATES: dict[str, type[MemoryEntry | L3Selection | ReservationLedger | CacheContext]] = {
    MemoryEntry.TOPIC: MemoryEntry,
    L3Selection.TOPIC: L3Selection,
    ReservationLedger.TOPIC: ReservationLedger,
    CacheContext.TOPIC: CacheContext,
}
"""Every aggregate that a first event may begin, by topic."""


def require_known(topic: str, originator_topic: str | None = None) -> None:
    """Let only listed topics pass.

    Raises:
        UnknownTopicError: the event's topic, or that of the aggregate it begins, isn't listed.
    """
    if topic not in EVENTS:
        raise UnknownTopicError(topic)
    if originator_topic is not None and originator_topic not in AGGREGATES:
        raise UnknownTopicError(originator_topic)
