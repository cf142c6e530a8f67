"""The domain: events, aggregates, value objects and pure rules.

Knows eventsourcing and pydantic, nothing else.  What every host needs is named here; what only
those need who spend (configuration, evidence, reservations) has modules of its own, which a host
that stays offline never loads.
"""

from remembrancer.domain.context_pack import ContextItem, ContextPack, Difference
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import EntryHeader, NewEntry
from remembrancer.domain.errors import RefusedError, RemembrancerError, Retry, StoreError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import Selection
from remembrancer.domain.recall import (
    CandidateSelection,
    LeftOut,
    LeftOutReason,
    RecallContext,
    Recalled,
    RecalledEntry,
    RecallKind,
    RecallMode,
    RecallQuery,
)
from remembrancer.domain.sensitivity import Sensitivity

__all__ = [
    "CandidateSelection",
    "ContextItem",
    "ContextPack",
    "Difference",
    "EmbeddingTuple",
    "EntryHeader",
    "EntryId",
    "LeftOut",
    "LeftOutReason",
    "NewEntry",
    "RecallContext",
    "RecallKind",
    "RecallMode",
    "RecallQuery",
    "Recalled",
    "RecalledEntry",
    "RefusedError",
    "RemembrancerError",
    "Retry",
    "Selection",
    "Sensitivity",
    "StoreError",
]
