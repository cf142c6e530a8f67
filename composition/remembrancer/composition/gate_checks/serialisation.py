"""Gate ``owner_serialisation``: threads of several processes, and room for one request."""

import json
from collections import Counter
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from remembrancer.application.ports.ledger_repository import LedgerRepository
from remembrancer.composition.gate_checks.child import READY
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.processes import child
from remembrancer.composition.gate_checks.rehearsal import TENANT, Rehearsal, query
from remembrancer.composition.store import Store
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.eligibility import canonical_query_text
from remembrancer.domain.gate import Gate
from remembrancer.domain.money import Pricing
from remembrancer.domain.reservation import ReservationKind, ReservationRequest
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted

PROCESSES = 2
THREADS = 8
"""Of each process."""
ROUNDS = 10
_STORE = "serialisation"
_LIKE_THE_CHILDS = "Which rule binds process 0, thread 00?"


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Race for one slot, round by round; each owner's stream then tells what was pending."""
    owners = [f"round-{number}" for number in range(ROUNDS)]
    marks = rehearsal.folder / "arrivals"
    with rehearsal.store(_STORE) as store:
        for owner in owners:
            _leave_one_slot(store.ledger, rehearsal.configuration, owner)
        outcomes = _raced(rehearsal, owners, str(marks))
        pending = _pending_highest(store, set(owners))
    arrived = Counter(marks.read_text().splitlines() if marks.exists() else [])
    require(all(arrived[owner] for owner in owners), "in a round no request arrived at all")
    figures = {
        "threads": PROCESSES * THREADS,
        "processes": PROCESSES,
        "rounds": len(owners),
        "pending_queries_highest": pending,
        "requests_beyond_slots": sum(arrived[owner] - 1 for owner in owners),
    }
    raw = {"arrived": dict(arrived), "outcomes": outcomes}
    return {Gate.OWNER_SERIALISATION: Measured(figures=figures, raw=raw)}


def fill(
    ledger: LedgerRepository,
    configuration: Configuration,
    owner: str,
    quanta: int,
    kind: ReservationKind = ReservationKind.INDEXING,
) -> None:
    """Spend ``quanta`` of an owner's day: reserved, and settled at the complete charge."""
    reservation_id = uuid4()
    request = ReservationRequest(
        reservation_id=reservation_id, kind=kind, request_digest="0" * 64, charge_quanta=quanta
    )
    terms = configuration.spend_terms
    ledger.decide(
        TENANT,
        owner,
        lambda held: held.ledger.admit(request, terms=terms, earlier=None, at=held.now),
    )
    ledger.decide(
        TENANT,
        owner,
        lambda held: held.ledger.settle(
            reservation_id,
            charged_quanta=quanta,
            usage_tokens=1,
            earlier=held.find(reservation_id),
            at=held.now,
        ),
    )


def _charge_of(pricing: Pricing, text: str) -> int:
    return pricing.complete_charge([len(canonical_query_text(query("o", text)).encode())])


def _leave_one_slot(ledger: LedgerRepository, configuration: Configuration, owner: str) -> None:
    charge = _charge_of(configuration.pricing, _LIKE_THE_CHILDS)
    ceilings = configuration.ceilings
    require(
        ceilings.quanta_per_day >= charge and ceilings.requests_per_day >= 1,
        "the ceilings leave no room for a single request",
    )
    over = ceilings.quanta_per_day - charge
    if over >= charge and ceilings.requests_per_day > 1:
        fill(ledger, configuration, owner, over)


def _raced(rehearsal: Rehearsal, owners: list[str], marks: str) -> list[list[str]]:
    """Return each round's reasons, of all processes."""
    orders: list[dict[str, Any]] = [
        {"store": _STORE, "owners": owners, "marks": marks, "threads": THREADS, "number": number}
        for number in range(PROCESSES)
    ]
    rounds = []
    with ExitStack() as stack:
        children = [stack.enter_context(child(rehearsal, "race", **order)) for order in orders]
        for _ in owners:
            for one in children:
                require(one.hear() == READY, "a process was not ready")
            for one in children:
                one.tell("go")
            rounds.append([reason for one in children for reason in json.loads(one.hear())])
    return rounds


def _pending_highest(store: Store, owners: set[str]) -> int:
    """Return the most pending queries that any owner had at any version of its stream."""
    highest = 0
    pending: dict[str, set[object]] = {owner: set() for owner in owners}
    for recorded in store.log.follow(after_position=0, limit=1_000_000):
        fact = recorded.event
        if not isinstance(fact, LedgerEvent) or fact.owner not in owners:
            continue
        if isinstance(fact, ReservationAdmitted) and fact.kind == ReservationKind.QUERY:
            pending[fact.owner].add(fact.reservation_id)
        else:
            pending[fact.owner].discard(fact.reservation_id)
        highest = max(highest, len(pending[fact.owner]))
    return highest
