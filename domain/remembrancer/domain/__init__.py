"""The domain: events, aggregates, value objects and pure rules.

Knows eventsourcing and pydantic, nothing else.  What hosts need is named here.
"""

from remembrancer.domain.configuration import Configuration, Egress, Provider
from remembrancer.domain.context_pack import ContextItem, ContextPack, Difference
from remembrancer.domain.eligibility import QueryOutcome, QueryReason, QueryStatus
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import EntryHeader, NewEntry
from remembrancer.domain.errors import RefusedError, RemembrancerError, Retry, StoreError
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import Selection
from remembrancer.domain.money import Pricing, UtcDay
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
from remembrancer.domain.release import (
    AdmissionRefusal,
    AdmittedConfiguration,
    Evidence,
    GateProblem,
    GateReason,
    GateStatus,
    admit,
)
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    Reservation,
    ReservationKind,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.sensitivity import Sensitivity

__all__ = [
    "GATES",
    "AdmissionRefusal",
    "AdmittedConfiguration",
    "CandidateSelection",
    "Ceilings",
    "Configuration",
    "ContextItem",
    "ContextPack",
    "Difference",
    "Egress",
    "EmbeddingTuple",
    "EntryHeader",
    "EntryId",
    "Evidence",
    "Gate",
    "GateProblem",
    "GateReason",
    "GateStatus",
    "LeftOut",
    "LeftOutReason",
    "NewEntry",
    "Pricing",
    "Provider",
    "QueryOutcome",
    "QueryReason",
    "QueryStatus",
    "RecallContext",
    "RecallKind",
    "RecallMode",
    "RecallQuery",
    "Recalled",
    "RecalledEntry",
    "ReconciliationEvidence",
    "RefusedError",
    "RemembrancerError",
    "Reservation",
    "ReservationKind",
    "ReservationState",
    "Retry",
    "Selection",
    "Sensitivity",
    "StoreError",
    "UnknownReason",
    "UtcDay",
    "admit",
]
