"""Gates ``settlement_exactness`` and ``shared_budget``: sums against exact fractions."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any
from uuid import UUID

from remembrancer.application.document_vectors import DocumentText
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.composition.gate_checks.counting_provider import CountingProvider
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.rehearsal import (
    TENANT,
    Rehearsal,
    StoppedClock,
    asked,
    query,
)
from remembrancer.composition.gate_checks.serialisation import fill
from remembrancer.composition.store import Store
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.eligibility import QueryReason
from remembrancer.domain.gate import Gate
from remembrancer.domain.reservation import ReservationKind, ReservationRequest, ReservationState
from remembrancer.domain.sensitivity import Sensitivity

SETTLEMENTS = 10_000
AT_ONCE = 50
"""Settlements of one decision: what is measured is the arithmetic, not the commits."""
BYTES_MAX = 400
MIDNIGHTS = 20
BUDGETS = 10
_NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
_LATE = datetime(2030, 1, 1, 23, 59, 59, 900_000, tzinfo=UTC)
_EARLY = _LATE + timedelta(seconds=0.6)
_QUESTION = "Which rule binds this release?"


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Settle by the thousand and across midnight; use the budget up by either kind."""
    return {
        Gate.SETTLEMENT_EXACTNESS: _exactness(rehearsal),
        Gate.SHARED_BUDGET: _shared_budget(rehearsal),
    }


def _exactness(rehearsal: Rehearsal) -> Measured:
    configuration = rehearsal.configuration
    clock = StoppedClock(_NOON)
    off: list[dict[str, Any]] = []
    with rehearsal.store("settlement", clock) as store:
        done = 0
        for number, usages in enumerate(_batches(configuration)):
            owner = f"owner-{number}"
            expected = [_exact(configuration, tokens) for _, tokens in usages]
            charged = store.ledger.decide(TENANT, owner, partial(_settled, configuration, usages))
            [day] = store.ledger.days(TENANT, owner)
            done += len(charged)
            if charged != expected or day.charged_quanta != sum(expected):
                off.append({"usages": usages, "charged": charged, "expected": expected})
        days_off = sum(_crossed(store, clock, configuration, n) for n in range(MIDNIGHTS))
    return Measured(
        figures={
            "settlements": done,
            "settlements_across_midnight": MIDNIGHTS,
            "charges_off": len(off),
            "days_off": days_off,
        },
        raw={"price": configuration.pricing.usd_per_million_tokens, "off": off[:100]},
    )


def _batches(configuration: Configuration) -> Iterator[list[tuple[int, int]]]:
    """Yield (bytes of the text, tokens used), as many as one owner's day has room for."""
    pricing, ceilings = configuration.pricing, configuration.ceilings
    chance = random.Random(1)  # noqa: S311  # the same numbers in every run
    left = SETTLEMENTS
    dearest = pricing.complete_charge([BYTES_MAX])
    size = min(AT_ONCE, ceilings.requests_per_day, ceilings.quanta_per_day // dearest)
    require(size, "the ceilings leave no room to settle anything")
    while left > 0:
        lengths = [chance.randint(1, BYTES_MAX) for _ in range(min(size, left))]
        left -= len(lengths)
        # Tiny usage is where rounding shows.
        yield [
            (length, chance.choice((1, 2, chance.randint(1, pricing.tokens_bound([length])))))
            for length in lengths
        ]


def _exact(configuration: Configuration, tokens: int) -> int:
    """Return the charge by another way than the domain's: exact, rounded up, at least 1."""
    price = Fraction(configuration.pricing.usd_per_million_tokens)
    return max(1, ceil(price * tokens))


def _settled(
    configuration: Configuration, usages: list[tuple[int, int]], held: HeldLedger
) -> list[int]:
    charged = []
    for number, (length, tokens) in enumerate(usages):
        request = ReservationRequest(
            reservation_id=UUID(int=number + 1),
            kind=ReservationKind.INDEXING,
            request_digest="0" * 64,
            charge_quanta=configuration.pricing.complete_charge([length]),
        )
        held.ledger.admit(request, terms=configuration.spend_terms, earlier=None, at=held.now)
        settled = held.ledger.settle(
            request.reservation_id,
            charged_quanta=configuration.pricing.settled_charge(tokens, [length]),
            usage_tokens=tokens,
            earlier=None,
            at=held.now,
        )
        charged.append(settled.charged_quanta)
    return charged


def _crossed(store: Store, clock: StoppedClock, configuration: Configuration, number: int) -> bool:
    """Reserve before midnight and settle after it; say whether another day than the first paid."""
    owner, reservation_id = f"midnight-{number}", UUID(int=number + 1)
    request = ReservationRequest(
        reservation_id=reservation_id,
        kind=ReservationKind.QUERY,
        request_digest="0" * 64,
        charge_quanta=configuration.pricing.complete_charge([BYTES_MAX]),
    )
    terms = configuration.spend_terms
    clock.at = _LATE
    store.ledger.decide(
        TENANT,
        owner,
        lambda held: held.ledger.admit(request, terms=terms, earlier=None, at=held.now),
    )
    clock.at = _EARLY
    known = store.ledger.decide(
        TENANT,
        owner,
        lambda held: held.ledger.settle(
            reservation_id,
            charged_quanta=1,
            usage_tokens=1,
            earlier=held.find(reservation_id),
            at=held.now,
        ),
    )
    days = store.ledger.days(TENANT, owner)
    right = (
        known.state is ReservationState.SETTLED
        and [day.day for day in days] == ["2030-01-01"]
        and days[0].charged_quanta == 1
    )
    return not right


def _shared_budget(rehearsal: Rehearsal) -> Measured:
    configuration = rehearsal.configuration
    provider = CountingProvider(configuration)
    provider.behaviour = provider.greedy
    queries_refused = indexing_refused = over = 0
    raw = []
    with rehearsal.store("budget") as store:
        preparation = rehearsal.preparation(store, provider)
        for number in range(BUDGETS):
            indexed, queried = f"indexed-{number}", f"queried-{number}"
            documents = [_document(indexed)]
            preparation.documents.embedded(documents)
            _use_up(store, configuration, indexed, ReservationKind.INDEXING)
            before = provider.requests
            report = asked(preparation, indexed, query(indexed, _QUESTION))
            queries_refused += _over(report.outcomes[0].reason) and provider.requests == before

            asked(preparation, queried, query(queried, _QUESTION))
            _use_up(store, configuration, queried, ReservationKind.QUERY)
            before = provider.requests
            answer = preparation.documents.embedded([_document(queried)])
            indexing_refused += _over(answer.unanswered.get(0)) and provider.requests == before
            raw.append([report.outcomes[0].reason, answer.unanswered.get(0)])
        days = store.ledger.days(TENANT)
        ceilings = configuration.ceilings
        over = sum(
            day.charged_quanta > ceilings.quanta_per_day
            or day.requests > ceilings.requests_per_day
            for day in days
        )
    return Measured(
        figures={
            "queries_refused_after_indexing": queries_refused,
            "indexing_refused_after_queries": indexing_refused,
            "totals_over_ceiling": over,
        },
        raw=raw,
    )


def _use_up(store: Store, configuration: Configuration, owner: str, kind: ReservationKind) -> None:
    """Spend what is left of the owner's day, by ``kind`` alone."""
    used = sum(day.charged_quanta for day in store.ledger.days(TENANT, owner))
    requests = sum(day.requests for day in store.ledger.days(TENANT, owner))
    require(requests, "no request was admitted: see ceilings and guards")
    left = configuration.ceilings.quanta_per_day - used
    if left and requests < configuration.ceilings.requests_per_day:
        fill(store.ledger, configuration, owner, left, kind)


def _document(owner: str) -> DocumentText:
    return DocumentText(
        tenant=TENANT, owner=owner, sensitivity=Sensitivity.INTERNAL, text="A rule for releases."
    )


def _over(reason: str | None) -> bool:
    return reason in {QueryReason.OVER_MONEY_CEILING, QueryReason.OVER_REQUEST_CEILING}
