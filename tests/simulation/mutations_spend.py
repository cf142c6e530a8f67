"""Rules of the ledger, broken on purpose."""

from tests.simulation.mutation import Mutation

_LEDGER = "domain.reservation_ledger"
_RULES = "domain.reservation"
_FACTS = "domain.reservation_event"

SPEND = (
    Mutation(
        "settle on today's day",
        _LEDGER,
        "ReservationLedger.settle",
        "known.day,\n            at,",
        "utc_day(at),\n            at,",
    ),
    Mutation(
        "lose on today's day",
        _LEDGER,
        "ReservationLedger._record_unknown",
        "known.day,",
        "utc_day(at),",
    ),
    Mutation(
        "reconcile on today's day",
        _LEDGER,
        "ReservationLedger.reconcile",
        "known.day,\n",
        "utc_day(at),\n",
    ),
    Mutation(
        "round down",
        "domain.money",
        "_ceiling",
        "-(-amount.numerator // amount.denominator)",
        "amount.numerator // amount.denominator",
    ),
    Mutation(
        "release on timeout",
        _FACTS,
        "ReservationBecameUnknown.day_change",
        "return DayTotals()",
        "return DayTotals(quanta=-self.charged_quanta)",
    ),
    Mutation(
        "skip the expiry",
        _LEDGER,
        "ReservationLedger.admit",
        "        self.expire(at=at)\n",
        "",
    ),
    Mutation(
        "expire a second early",
        _LEDGER,
        "ReservationLedger.expire",
        "one.expires_at <= at]",
        "one.expires_at - timedelta(seconds=1) <= at]",
    ),
    Mutation(
        "two pending queries",
        "domain.bounds",
        "PENDING_QUERIES_MAX",
        "= 1",
        "= 2",
    ),
    Mutation(
        "one request more than the ceiling",
        _RULES,
        "require_room",
        "used.requests + 1 >",
        "used.requests >",
    ),
    Mutation(
        "money ceiling without the new charge",
        _RULES,
        "require_room",
        "used.quanta + request.charge_quanta >",
        "used.quanta >",
    ),
    Mutation(
        "settle after the lease",
        _LEDGER,
        "ReservationLedger.settle",
        " or known.expires_at <= at",
        "",
    ),
    Mutation(
        "settle what is unknown",
        _LEDGER,
        "ReservationLedger.settle",
        "known.state is ReservationState.UNKNOWN or ",
        "",
    ),
    Mutation(
        "follow a clock that is set back",
        _LEDGER,
        "ReservationLedger.not_before",
        "max(as_utc(at), self.modified_on)",
        "as_utc(at)",
    ),
    Mutation(
        "a lease of an hour",
        "domain.bounds",
        "LEASE_S",
        "= 15",
        "= 3_600",
    ),
    Mutation(
        "count settled room twice",
        _FACTS,
        "ReservationSettled.day_change",
        "quanta=self.charged_quanta - self.reserved_quanta",
        "quanta=-self.reserved_quanta",
    ),
    Mutation(
        "reconcile below what is stated",
        _LEDGER,
        "ReservationLedger.reconcile",
        "least_quanta=evidence.stated_quanta",
        "least_quanta=0",
    ),
    Mutation(
        "reserve no overheads",
        "domain.money",
        "Pricing.tokens_bound",
        "+ len(input_bytes) * self.input_overhead_tokens",
        "",
    ),
    Mutation(
        "forget that a settlement was told",
        "adapters.memory.ledger_repository",
        "MemoryLedgerRepository._follow",
        "elif before and after:",
        "elif before and after and after.charged_quanta == before.reservation.charged_quanta:",
    ),
)
"""Rules of the ledger."""
