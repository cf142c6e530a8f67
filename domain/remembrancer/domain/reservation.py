"""A reservation: money set aside before a request leaves, and what became of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import Field

from remembrancer.domain.bounds import PENDING_QUERIES_MAX
from remembrancer.domain.money import Quanta, UtcDay
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.spend_errors import (
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
)

REQUESTS_PER_DAY_MAX = 10**9

HexDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 or keyed BLAKE2b-256, in hexadecimal digits."""


class ReservationKind(StrEnum):
    """What the request is for; both share one budget, in both directions."""

    INDEXING = "indexing"
    QUERY = "query"


class ReservationState(StrEnum):
    """Where a reservation stands."""

    PENDING = "pending"
    """Admitted; the request may be out.  Counts with its complete charge."""
    SETTLED = "settled"
    """Charged by validated usage."""
    UNKNOWN = "unknown"
    """The usage can't be proved; keeps the complete charge."""
    RECONCILED = "reconciled"
    """Was unknown; an operator lowered the charge with evidence."""


class UnknownReason(StrEnum):
    """Why a reservation's true usage can't be proved.  Stored format: never rename one."""

    EXPIRED = "expired"
    """The lease ran out before anybody settled: a crash, or a process that hung."""
    TIMEOUT = "timeout"
    PROVIDER_ERROR = "provider_error"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease_lost"
    UNUSABLE_ANSWER = "unusable_answer"
    WITHDRAWN = "withdrawn"
    """Admission or context was withdrawn while the request was out."""
    FAILURE = "failure"
    """Anything else that stopped the process between sending and settling."""


class Ceilings(Parsed):
    """How much an owner may spend a UTC day; 0 stops everything."""

    quanta_per_day: Quanta
    requests_per_day: Annotated[int, Field(ge=0, le=REQUESTS_PER_DAY_MAX)]


class SpendTerms(Parsed):
    """What a reservation is decided by; from the admitted configuration, at each admission."""

    ceilings: Ceilings
    mechanism_version: Name
    configuration_digest: HexDigest
    embedding_tuple_digest: HexDigest
    pricing_digest: HexDigest


class ReservationRequest(Parsed):
    """Ask that one request's complete charge be set aside.

    ``reservation_id`` is the idempotency key; ``request_digest`` says which request it stands for,
    and must be keyed (:mod:`remembrancer.domain.query_key`), as it stays in the log.
    """

    reservation_id: UUID
    kind: Annotated[ReservationKind, Field(strict=False)]
    request_digest: HexDigest
    charge_quanta: Annotated[Quanta, Field(ge=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation as the stream tells it so far."""

    reservation_id: UUID
    kind: ReservationKind
    request_digest: str
    state: ReservationState
    day: UtcDay
    """UTC day of admission; all charges count for it, whenever they are settled."""
    admitted_at: datetime
    expires_at: datetime
    reserved_quanta: int
    """The complete charge."""
    charged_quanta: int
    """What counts against the day's ceiling now; the complete charge unless it was lowered."""
    usage_tokens: int | None = None
    unknown_reason: UnknownReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationAnswer:
    """The answer to a :class:`ReservationRequest`."""

    reservation: Reservation
    repeated: bool
    """The id was admitted before, for the same request: this is its outcome, nothing was recorded.
    Whoever gets a repeated admission must not send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals:
    """What counts against one UTC day's ceilings, pending and unknown included."""

    quanta: int = 0
    requests: int = 0


class ReconciliationEvidence(Parsed):
    """What an operator shows to lower an unknown charge: a provider's invoice, usually."""

    digest: HexDigest
    """SHA-256 of the document; the document itself is the operator's."""
    stated_quanta: Quanta
    """What the document says the request cost, rounded up."""
    by: Name
    """Who vouches for it."""


def require_room(
    request: ReservationRequest,
    *,
    ceilings: Ceilings,
    day: UtcDay,
    used: DayTotals,
    pending: Iterable[Reservation],
) -> None:
    """Let a request pass that fits: one pending query, and the day's requests and money.

    Raises:
        QueryPendingError: for a query, while another is pending.
        OverRequestCeilingError: the day's requests are used up.
        OverMoneyCeilingError: the charge doesn't fit the day's money.
    """
    if request.kind is ReservationKind.QUERY:
        queries = [one for one in pending if one.kind is ReservationKind.QUERY]
        if len(queries) >= PENDING_QUERIES_MAX:
            raise QueryPendingError(
                reservation_id=queries[0].reservation_id, expires_at=queries[0].expires_at
            )
    if used.requests + 1 > ceilings.requests_per_day:
        raise OverRequestCeilingError(
            day=day, used_requests=used.requests, ceiling_requests=ceilings.requests_per_day
        )
    if used.quanta + request.charge_quanta > ceilings.quanta_per_day:
        raise OverMoneyCeilingError(
            day=day,
            asked_quanta=request.charge_quanta,
            used_quanta=used.quanta,
            ceiling_quanta=ceilings.quanta_per_day,
        )
