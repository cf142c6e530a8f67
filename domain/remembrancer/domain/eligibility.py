"""Which queries may be prepared at all, and what became of each (design 4.4).

The rules here come before the guards and know no text rules.  A query that breaks one is left to
sparse recall, as it would be without a preparer.
"""

from dataclasses import dataclass
from enum import StrEnum

from remembrancer.domain.bounds import QUERY_TEXT_BYTES_MAX
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.recall import CandidateSelection, RecallKind, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

LEAVES_AT_MOST = Sensitivity.INTERNAL
"""Only ``public`` and ``internal`` texts leave (seed BSQ)."""

_ELIGIBLE_KINDS = frozenset({RecallKind.AUTOMATIC, RecallKind.DELIBERATE})


class QueryStatus(StrEnum):
    """What became of one query of a preparation, and whether it may have left."""

    PREPARED = "prepared"
    """Its vector is in the cache."""
    CACHED = "cached"
    """Its vector was there already; nothing was sent for it."""
    DUPLICATE = "duplicate"
    """The same query stands earlier in the call; see that one's outcome."""
    INELIGIBLE = "ineligible"
    """Queries of this sort are never sent."""
    WITHHELD = "withheld"
    """Its text may not leave."""
    REFUSED = "refused"
    """Nothing was sent: not admitted, no room in the budget, or another query pending."""
    UNKNOWN = "unknown"
    """It may have left and may have cost; its reservation keeps the complete charge."""
    DROPPED = "dropped"
    """It was paid for, but context or admission changed before its vector could be used."""


class QueryReason(StrEnum):
    """Machine-readable reasons, in the order in which they are looked for.

    For :attr:`QueryStatus.UNKNOWN` the codes of :class:`UnknownReason`, of
    :class:`AnswerFault` and of the provider's failure (``status_429``) stand in this place.
    """

    PREPARED = "prepared"
    CACHED = "cached"
    DUPLICATE = "duplicate"

    OTHER_OWNER = "other_owner"
    KIND = "kind"
    """Core, historical and people recall aren't prepared."""
    LEGACY_CANDIDATE_SELECTION = "legacy_candidate_selection"
    EMPTY_QUESTION = "empty_question"

    TOO_LONG = "too_long"
    """The canonical text has more than 4,096 UTF-8 bytes; it isn't cut."""
    CLASSIFICATION = "classification"
    CREDENTIAL = "credential"
    INJECTION = "injection"
    RESIDENCY = "residency"
    GUARD_FAILED = "guard_failed"

    NOT_ADMITTED = "not_admitted"
    CONTEXT_CHANGED = "context_changed"
    QUERY_PENDING = "query_pending"
    OVER_REQUEST_CEILING = "over_request_ceiling"
    OVER_MONEY_CEILING = "over_money_ceiling"
    RESERVATION_REUSED = "reservation_reused"
    STORE_UNAVAILABLE = "store_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """What became of one query; holds no text of it."""

    status: QueryStatus
    reason: str
    """A code: of :class:`QueryReason`, or why its reservation is unknown."""

    @property
    def is_usable(self) -> bool:
        """True where a lookup will find its vector."""
        return self.status in {QueryStatus.PREPARED, QueryStatus.CACHED}


def canonical_query_text(query: RecallQuery) -> str:
    """Return the text that would leave: a JSON array of the question, then the subjects."""
    return canonical_json([query.question, *query.subjects]).decode()


def ineligibility(query: RecallQuery, *, tenant: str, owner: str) -> QueryOutcome | None:
    """Return the outcome of a query that can't be prepared for (tenant, owner); else None.

    Rules are asked in the design's order, and the first that says no decides.
    """
    reason: QueryReason | None = None
    if (query.tenant, query.owner) != (tenant, owner):
        reason = QueryReason.OTHER_OWNER
    elif query.kind not in _ELIGIBLE_KINDS:
        reason = QueryReason.KIND
    elif query.candidate_selection is CandidateSelection.LEGACY:
        reason = QueryReason.LEGACY_CANDIDATE_SELECTION
    elif not _shows_anything(query.question):
        reason = QueryReason.EMPTY_QUESTION
    if reason is not None:
        return QueryOutcome(status=QueryStatus.INELIGIBLE, reason=reason)
    if len(canonical_query_text(query).encode()) > QUERY_TEXT_BYTES_MAX:
        return QueryOutcome(status=QueryStatus.WITHHELD, reason=QueryReason.TOO_LONG)
    return None


def _shows_anything(question: str) -> bool:
    # Controls and what nobody sees ask for nothing, and would be paid for like a question.
    return any(sign.isprintable() and not sign.isspace() for sign in question)


def effective_sensitivity(floor: Sensitivity, *classifications: Sensitivity) -> Sensitivity:
    """Return the higher of the caller's floor and what guards found; nothing lowers it.

    The query's read ceiling has no part in this: it says what may be read, not what may leave.
    """
    return max(floor, *classifications) if classifications else floor


def may_leave(sensitivity: Sensitivity) -> bool:
    """Say whether a text of this effective sensitivity may be sent."""
    return sensitivity <= LEAVES_AT_MOST
