"""The rules once more, by a hand that shares no line with the product: spend and cache contexts.

Reads events as plain fields, keeps sums in dictionaries, computes prices with fractions, and says
which rule an event breaks.  Agreeing with the product by construction is impossible here: where
both are right they agree, and where one is wrong they don't.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.provider import Request

if TYPE_CHECKING:
    from remembrancer.domain.release import AdmittedConfiguration

LEASE = timedelta(seconds=15)
REASONS = {
    *("expired", "timeout", "provider_error", "cancelled", "lease_lost"),
    *("unusable_answer", "withdrawn", "failure"),
}


@dataclass(slots=True)
class Entry:
    """What the books say of one reservation."""

    owner: tuple[str, str]
    kind: str
    day: str
    reserved: int
    expires_at: datetime
    configuration_digest: str
    charged: int
    state: str = "pending"
    usage: int | None = None
    requests: list[Request] = field(default_factory=list)


@dataclass(slots=True)
class Surface:
    """What the books say of one surface's context."""

    generation: int = 0
    bound: tuple[str, str] | None = None
    prepared: dict[UUID, int] = field(default_factory=dict)
    """By reservation: the generation that its vectors were recorded for."""


class Books:
    """Folds events one by one; ``complain`` is told what is wrong, and with which event."""

    def __init__(self, complain: Callable[[str, str], None]) -> None:
        self._complain = complain
        self.reservations: dict[UUID, Entry] = {}
        self.surfaces: dict[tuple[str, str, str], Surface] = defaultdict(Surface)
        self.configurations: dict[str, AdmittedConfiguration] = {}
        """Every configuration that was ever admitted, by its digest."""
        self._days: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
        """By tenant, owner and day: quanta and requests."""
        self._latest: dict[tuple[str, str], datetime] = {}
        self._of_ledger: dict[str, Callable[[Any], None]] = {
            "ReservationAdmitted": self._admitted,
            "ReservationSettled": self._settled,
            "ReservationBecameUnknown": self._unknown,
            "ReservationReconciled": self._reconciled,
        }
        self._of_context: dict[str, Callable[[Any], None]] = {
            "CacheContextBound": self._bound,
            "CacheContextReplaced": self._bound,
            "QueryVectorsPrepared": self._prepared,
            "AdmissionWithdrawn": self._withdrawn,
        }

    def take(self, event: Any) -> None:
        """Enter one event of a ledger or a cache context; others are none of these books'."""
        name = type(event).__name__
        if name in self._of_ledger:
            self._in_time(event)
            self._of_ledger[name](event)
        elif name in self._of_context:
            self._of_context[name](event)

    def requested(self, request: Request, *, clock_was_set: bool) -> None:
        """Enter a request that arrived at the provider."""
        id_ = request.reservation_id
        entry = None if id_ is None else self.reservations.get(id_)
        if entry is None:
            self._complain("egress_reserved", "a request arrived that nothing was reserved for")
            return
        if entry.state != "pending" and not clock_was_set:
            self._complain("egress_reserved", f"a request arrived for {entry.state} {id_}")
        entry.requests.append(request)
        if len(entry.requests) > 1:
            self._complain("one_request", f"a second request arrived for {id_}")
        if entry.reserved != self.charge(entry, self.tokens_bound(request)):
            self._complain("complete_charge", f"{id_} reserved {entry.reserved} for {request}")

    def tokens_bound(self, request: Request) -> int:
        """Return the most tokens that a request's texts can be."""
        id_ = request.reservation_id
        if id_ is None or id_ not in self.reservations:
            return 10**6
        pricing = self._pricing(self.reservations[id_])
        length = sum(len(text.encode()) for text in request.texts)
        return int(
            length
            + len(request.texts) * pricing.input_overhead_tokens
            + pricing.request_overhead_tokens
        )

    def charge(self, entry: Entry, tokens: int) -> int:
        """Return what tokens cost, in whole quanta, never too little."""
        per_token = Fraction(self._pricing(entry).usd_per_million_tokens)  # quanta a token
        return max(1, math.ceil(per_token * tokens))

    def day(self, tenant: str, owner: str, day: str) -> tuple[int, int]:
        """Return quanta and requests of a day."""
        quanta, requests = self._days[tenant, owner, day]
        return quanta, requests

    def days(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Return all days with their quanta and requests."""
        return {key: (one[0], one[1]) for key, one in self._days.items() if one[1]}

    def pending(self, tenant: str, owner: str) -> list[tuple[UUID, Entry]]:
        """Return an owner's pending reservations."""
        return [
            (id_, one)
            for id_, one in self.reservations.items()
            if one.state == "pending" and one.owner == (tenant, owner)
        ]

    # -- The ledger --------------------------------------------------------

    def _in_time(self, event: Any) -> None:
        owner = (event.tenant, event.owner)
        if event.timestamp < self._latest.get(owner, event.timestamp):
            self._complain("time_never_decreases", f"{event}")
        self._latest[owner] = event.timestamp

    def _admitted(self, event: Any) -> None:
        owner = (event.tenant, event.owner)
        kind, at = getattr(event, "kind", "indexing"), event.timestamp
        day = at.astimezone(UTC).strftime("%Y-%m-%d")
        if event.reservation_id in self.reservations:
            self._complain("admitted_once", f"{event}")
        if event.day != day:
            self._complain("day_of_admission", f"{event} on {day}")
        pending = self.pending(*owner)
        if any(one.expires_at <= at for _, one in pending):
            self._complain("expired_first", f"{event} while {pending}")
        if kind == "query" and any(one.kind == "query" for _, one in pending):
            self._complain("one_pending_query", f"{event} while {pending}")
        told = (event.lease_s, event.deadline if kind == "query" else None)
        if told != (LEASE.total_seconds(), at + LEASE if kind == "query" else None):
            self._complain("lease", f"{event}")
        used = self._days[(*owner, day)]
        if [event.day_quanta_before, event.day_requests_before] != used:
            self._complain("day_totals", f"{event}: {used}")
        used[0] += event.reserved_quanta
        used[1] += 1
        self._within(event, used)
        self.reservations[event.reservation_id] = Entry(
            owner=owner,
            kind=kind,
            day=day,
            reserved=event.reserved_quanta,
            expires_at=at + LEASE,
            configuration_digest=event.configuration_digest,
            charged=event.reserved_quanta,
        )

    def _within(self, event: Any, used: list[int]) -> None:
        terms = self.configurations.get(event.configuration_digest)
        if terms is None:
            self._complain("admitted_configuration", f"{event}")
            return
        ceilings = terms.configuration.ceilings
        admitted = (ceilings.quanta_per_day, ceilings.requests_per_day)
        if (event.ceiling_quanta, event.ceiling_requests) != admitted:
            self._complain("ceilings_recorded", f"{event}")
        if used[0] > event.ceiling_quanta or used[1] > event.ceiling_requests:
            self._complain("within_ceilings", f"{event}: {used}")

    def _ended(self, event: Any, *, was: str, becomes: str, charged: int) -> Entry | None:
        entry = self.reservations.get(event.reservation_id)
        if entry is None or entry.state != was or entry.owner != (event.tenant, event.owner):
            self._complain("ends_once", f"{event}: {entry}")
            return None
        if event.day != entry.day:
            self._complain("day_of_admission", f"{event} for {entry.day}")
        self._days[(*entry.owner, entry.day)][0] += charged - entry.charged
        entry.state, entry.charged = becomes, charged
        return entry

    def _settled(self, event: Any) -> None:
        entry = self._ended(event, was="pending", becomes="settled", charged=event.charged_quanta)
        if entry is None:
            return
        entry.usage = event.usage_tokens
        if event.timestamp >= entry.expires_at:
            self._complain("settled_in_time", f"{event}: {entry.expires_at}")
        if not 1 <= event.charged_quanta <= entry.reserved == event.reserved_quanta:
            self._complain("settled_within", f"{event}")
        if event.charged_quanta != self.charge(entry, event.usage_tokens):
            self._complain("settled_charge", f"{event}")
        if [one.usage_tokens for one in entry.requests] != [event.usage_tokens]:
            self._complain("usage_is_proved", f"{event}: {entry.requests}")

    def _unknown(self, event: Any) -> None:
        entry = self._ended(event, was="pending", becomes="unknown", charged=event.charged_quanta)
        if entry is None:
            return
        if event.charged_quanta != entry.reserved:
            self._complain("unknown_keeps_all", f"{event}")
        if event.reason not in REASONS:
            self._complain("unknown_reason", f"{event}")
        if event.reason == "expired" and event.timestamp < entry.expires_at:
            self._complain("expired_in_time", f"{event}: {entry.expires_at}")

    def _reconciled(self, event: Any) -> None:
        before = self.reservations.get(event.reservation_id)
        least = event.stated_quanta
        if before is not None and not least <= event.charged_quanta < before.charged:
            self._complain("reconciled_within", f"{event}: {before}")
        self._ended(event, was="unknown", becomes="reconciled", charged=event.charged_quanta)

    def _pricing(self, entry: Entry) -> Any:
        return self.configurations[entry.configuration_digest].configuration.pricing

    # -- Cache contexts ----------------------------------------------------

    def surface_of(self, event: Any) -> Surface:
        """Return the surface that an event is about."""
        return self.surfaces[event.tenant, event.owner, event.surface]

    def _bound(self, event: Any) -> None:
        surface = self.surface_of(event)
        if event.generation != surface.generation + 1:
            self._complain("generations_rise", f"{event}: {surface}")
        bound = (event.context_digest, event.configuration_digest)
        if bound == surface.bound:
            self._complain("same_context_goes_on", f"{event}")
        surface.generation, surface.bound = event.generation, bound

    def _withdrawn(self, event: Any) -> None:
        surface = self.surface_of(event)
        if event.generation != surface.generation + 1 or surface.bound is None:
            self._complain("generations_rise", f"{event}: {surface}")
        surface.generation, surface.bound = event.generation, None

    def _prepared(self, event: Any) -> None:
        surface = self.surface_of(event)
        if event.generation != surface.generation or surface.bound is None:
            self._complain("prepared_in_generation", f"{event}: {surface}")
        entry = self.reservations.get(event.reservation_id)
        if entry is None or entry.state != "settled" or entry.kind != "query":
            self._complain("cached_after_settlement", f"{event}: {entry}")
        elif entry.owner != (event.tenant, event.owner):
            self._complain("cached_after_settlement", f"{event}: of another owner")
        if event.reservation_id in surface.prepared:
            self._complain("prepared_once", f"{event}")
        surface.prepared[event.reservation_id] = event.generation
