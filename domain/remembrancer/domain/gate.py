"""The twelve gates, and what counts as evidence for each (design 4.5; adr/0011).

A gate is a claim about one configuration.  Evidence for it is figures of a run: each demand below
names one figure and where it must lie.  Figures are whole numbers; shares are in permille.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from remembrancer.domain.bounds import (
    CACHE_LIFETIME_S,
    CACHE_VECTORS_MAX,
    CLEANUP_S,
    DEADLINE_S,
)
from remembrancer.domain.configuration import Configuration

_STOP_MS_MAX = 1_000
"""A withdrawal stops what is in flight within a second."""


class Gate(StrEnum):
    """Names of the gates, in the order in which they are shown."""

    DURABLE_ADMISSION = "durable_admission"
    OWNER_SERIALISATION = "owner_serialisation"
    RESTART_AND_EXPIRY = "restart_and_expiry"
    SETTLEMENT_EXACTNESS = "settlement_exactness"
    SHARED_BUDGET = "shared_budget"
    SCOPE_AND_CONTEXT_IDENTITY = "scope_and_context_identity"
    CACHE_BOUNDS = "cache_bounds"
    EGRESS_DENIAL = "egress_denial"
    UNCERTAIN_RESPONSES = "uncertain_responses"
    CORRECTION_AND_ERASURE = "correction_and_erasure"
    RETRIEVAL_QUALITY = "retrieval_quality"
    OPERATIONAL_MEASUREMENT = "operational_measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One figure that evidence must state, and between what it must lie."""

    figure: str
    least: int = 0
    most: int | None = None
    most_of: Callable[[Configuration], int] | None = None
    """Where the configuration decides the most."""
    not_below: str | None = None
    """Another figure that this one must reach."""

    def is_met(self, figures: Mapping[str, int], configuration: Configuration) -> bool:
        """Say whether ``figures``, which hold all that is demanded, lie where they must."""
        value = figures[self.figure]
        limits = [
            limit
            for limit in (self.most, self.most_of and self.most_of(configuration))
            if limit is not None
        ]
        if value < self.least or any(value > limit for limit in limits):
            return False
        return self.not_below is None or value >= figures[self.not_below]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTerms:
    """What a gate claims, and what proves it."""

    claim: str
    evidence: str
    """What counts, for people."""
    demands: tuple[Demand, ...]
    from_outside: bool = False
    """True where no check against the configured parts can produce the evidence."""


def _none(figure: str) -> Demand:
    return Demand(figure=figure, most=0)


def _at_least(figure: str, least: int) -> Demand:
    return Demand(figure=figure, least=least)


def _at_most(figure: str, most: int) -> Demand:
    return Demand(figure=figure, most=most)


GATES: Mapping[Gate, GateTerms] = MappingProxyType(
    {
        Gate.DURABLE_ADMISSION: GateTerms(
            claim="No request leaves before its reservation is committed durably.",
            evidence="A provider that counts, and processes killed between commit and send.",
            demands=(
                _at_least("requests", 100),
                _none("requests_without_committed_reservation"),
                _at_least("kills", 10),
                _none("reservations_lost"),
            ),
        ),
        Gate.OWNER_SERIALISATION: GateTerms(
            claim="At most one query reservation of an owner is pending, whoever asks.",
            evidence="Threads of several processes at a barrier, one slot left.",
            demands=(
                _at_least("threads", 16),
                _at_least("processes", 2),
                _at_least("rounds", 10),
                _at_most("pending_queries_highest", 1),
                _none("requests_beyond_slots"),
            ),
        ),
        Gate.RESTART_AND_EXPIRY: GateTerms(
            claim="A reservation outlives its process and becomes unknown when its lease ends.",
            evidence="Stores reopened before and after the lease's end.",
            demands=(
                _at_least("restarts", 10),
                _none("admitted_before_expiry"),
                _none("expired_without_record"),
                _none("charges_lowered"),
            ),
        ),
        Gate.SETTLEMENT_EXACTNESS: GateTerms(
            claim="A settlement rounds up, never raises, and stays on the day of admission.",
            evidence="Settlements against exact sums, of tiny usage and across midnight.",
            demands=(
                _at_least("settlements", 10_000),
                _at_least("settlements_across_midnight", 1),
                _none("charges_off"),
                _none("days_off"),
            ),
        ),
        Gate.SHARED_BUDGET: GateTerms(
            claim="Indexing and queries share one budget, in both directions.",
            evidence="Each kind refused for what the other has used.",
            demands=(
                _at_least("queries_refused_after_indexing", 1),
                _at_least("indexing_refused_after_queries", 1),
                _none("totals_over_ceiling"),
            ),
        ),
        Gate.SCOPE_AND_CONTEXT_IDENTITY: GateTerms(
            claim="A vector is used for exactly the query and context it was prepared for.",
            evidence="Every part of the key changed in turn, and names that look alike.",
            demands=(
                _at_least("parts_changed", 16),
                _none("hits_of_others"),
                _at_least("hits_of_the_same", 1),
            ),
        ),
        Gate.CACHE_BOUNDS: GateTerms(
            claim="The cache keeps its bounds and forgets with its generation.",
            evidence="More vectors and more time than it may keep; late insertions.",
            demands=(
                _at_least("inserted", CACHE_VECTORS_MAX + 1),
                _at_most("vectors_highest", CACHE_VECTORS_MAX),
                _at_most("age_s_highest", CACHE_LIFETIME_S),
                _none("vectors_of_older_generations"),
            ),
        ),
        Gate.EGRESS_DENIAL: GateTerms(
            claim="What may not leave doesn't: texts, hosts, schemes, redirects.",
            evidence="Credentials, injections, labels and destinations against the real guards.",
            demands=(
                _at_least("texts_to_withhold", 100),
                _at_least("destinations_to_refuse", 10),
                _none("texts_that_left"),
                _none("destinations_reached"),
            ),
        ),
        Gate.UNCERTAIN_RESPONSES: GateTerms(
            claim="Doubtful answers, cancellation and withdrawal end the work, not the charge.",
            evidence="Faults at every port call, cancellations and withdrawals in flight.",
            demands=(
                _at_least("faults", 20),
                _at_least("cancellations", 10),
                _at_least("withdrawals", 10),
                _none("charges_lowered"),
                _none("vectors_cached"),
                _at_most("withdrawal_ms_highest", _STOP_MS_MAX),
            ),
        ),
        Gate.CORRECTION_AND_ERASURE: GateTerms(
            claim="A prepared vector brings no original that was corrected or erased since.",
            evidence="Originals corrected and erased between preparation and recall.",
            demands=(
                _at_least("corrections", 10),
                _at_least("erasures", 10),
                _none("stale_originals_recalled"),
            ),
        ),
        Gate.RETRIEVAL_QUALITY: GateTerms(
            claim="Recall with prepared vectors finds at least what sparse recall finds.",
            evidence="Cases written by people who didn't build the system, for this model.",
            from_outside=True,
            demands=(
                _at_least("cases", 50),
                _at_least("independent_authors", 1),
                _at_least("found_permille_sparse", 0),
                Demand(
                    figure="found_permille_prepared",
                    least=1,  # Nothing found, both ways, would show nothing.
                    most=1_000,
                    not_below="found_permille_sparse",
                ),
            ),
        ),
        Gate.OPERATIONAL_MEASUREMENT: GateTerms(
            claim="Latency, spend and refusals are known from running it, and within bounds.",
            evidence="A run against the real provider, or a copy of real load, of a day or more.",
            from_outside=True,
            demands=(
                _at_least("hours", 24),
                _at_least("preparations", 100),
                _at_least("latency_ms_median", 1),
                Demand(
                    figure="latency_ms_highest",
                    least=1,
                    most=(DEADLINE_S + CLEANUP_S) * 1_000,
                    not_below="latency_ms_median",
                ),
                Demand(
                    figure="spend_quanta_day_highest",
                    least=1,
                    most_of=lambda configuration: configuration.ceilings.quanta_per_day,
                ),
                Demand(
                    figure="requests_day_highest",
                    least=1,
                    most_of=lambda configuration: configuration.ceilings.requests_per_day,
                ),
                _at_least("refusals", 0),
            ),
        ),
    }
)
"""Terms of every gate."""
