"""Gates ``durable_admission`` and ``restart_and_expiry``: counted requests, killed processes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from remembrancer.application.blocking import run_blocking
from remembrancer.composition.gate_checks.child import COMMITTED
from remembrancer.composition.gate_checks.counting_provider import CountingProvider
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.processes import child
from remembrancer.composition.gate_checks.rehearsal import (
    TENANT,
    Rehearsal,
    StoppedClock,
    asked,
    context,
    query,
)
from remembrancer.domain.bounds import LEASE_S
from remembrancer.domain.eligibility import QueryReason, QueryStatus
from remembrancer.domain.gate import Gate
from remembrancer.domain.reservation import Reservation, ReservationState, UnknownReason
from remembrancer.domain.reservation_event import ReservationAdmitted

REQUESTS = 100
KILLS = 10
KILLED_AT_ONCE = 2
_STORE = "durability"


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What a killed process left in the store."""

    owner: str
    reservation: Reservation | None


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Count requests against committed reservations; kill between commit and send; reopen."""
    unreserved, requests = _requests(rehearsal)
    marks = rehearsal.folder / "marks"
    killed = _kills(rehearsal, marks)
    lost = [one.owner for one in killed if not _stands(one.reservation)]
    sent = marks.read_text().splitlines() if marks.exists() else []
    durable = Measured(
        figures={
            "requests": requests,
            "requests_without_committed_reservation": unreserved,
            "kills": len(killed),
            "reservations_lost": len(lost),
            "requests_after_kill": len(sent),
        },
        raw={"killed": [_plain(one) for one in killed], "sent_by_killed": sent},
    )
    return {
        Gate.DURABLE_ADMISSION: durable,
        Gate.RESTART_AND_EXPIRY: _reopened(rehearsal, killed),
    }


def _requests(rehearsal: Rehearsal) -> tuple[int, int]:
    """Return how many requests found no pending reservation on disk, and how many there were."""
    provider = CountingProvider(rehearsal.configuration)
    with rehearsal.store(_STORE) as store, rehearsal.store(_STORE) as witness:
        preparation = rehearsal.preparation(store, provider)
        unreserved = 0
        owner = ""

        def look(_: Sequence[str]) -> None:
            nonlocal unreserved
            # Through a connection that has no part in the transaction.
            if not any(day.pending for day in witness.ledger.days(TENANT, owner)):
                unreserved += 1

        provider.arrived = look

        async def ask_all() -> None:
            nonlocal owner
            for number in range(REQUESTS):
                owner = f"owner-{number}"
                await preparation.preparer(
                    [query(owner, f"Which rule binds release {number}?")],
                    context(),
                    tenant=TENANT,
                    owner=owner,
                )

        run_blocking(ask_all)
    require(provider.requests, "not one request was admitted: see ceilings and guards")
    return unreserved, provider.requests


def _kills(rehearsal: Rehearsal, marks: Path) -> list[Killed]:
    owners = [f"killed-{number}" for number in range(KILLS)]

    def kill(owner: str) -> None:
        with child(rehearsal, "halt", store=_STORE, owner=owner, marks=str(marks)) as one:
            require(one.hear() == COMMITTED, "a process did not reserve")
            one.kill()

    with ThreadPoolExecutor(KILLED_AT_ONCE) as pool:
        list(pool.map(kill, owners))
    with rehearsal.store(_STORE) as store:
        admitted = {
            one.event.owner: store.ledger.receipt(
                TENANT, one.event.owner, one.event.reservation_id
            )
            for one in store.log.follow(after_position=0, limit=100_000)
            if isinstance(one.event, ReservationAdmitted)
        }
    return [Killed(owner=owner, reservation=admitted.get(owner)) for owner in owners]


def _reopened(rehearsal: Rehearsal, killed: Sequence[Killed]) -> Measured:
    """Open the store anew before and after each lease's end, and ask again."""
    early = unrecorded = lowered = 0
    raw: list[dict[str, Any]] = []
    for one in killed:
        before = one.reservation
        if before is None:
            continue
        reason = _asked(rehearsal, one.owner, before, LEASE_S - 1)
        _asked(rehearsal, one.owner, before, LEASE_S + 1)
        with rehearsal.store(_STORE) as store:
            after = store.ledger.receipt(TENANT, one.owner, before.reservation_id)
        early += reason != QueryReason.QUERY_PENDING
        unrecorded += (
            after is None
            or after.state is not ReservationState.UNKNOWN
            or after.unknown_reason is not UnknownReason.EXPIRED
        )
        lowered += after is None or after.charged_quanta < before.reserved_quanta
        raw.append({"owner": one.owner, "before_expiry": reason, "after": after and after.state})
    return Measured(
        figures={
            "restarts": len(raw),
            "admitted_before_expiry": early,
            "expired_without_record": unrecorded,
            "charges_lowered": lowered,
        },
        raw=raw,
    )


def _asked(rehearsal: Rehearsal, owner: str, known: Reservation, after_s: int) -> str:
    """Return what a new process is told ``after_s`` seconds after the reservation."""
    clock = StoppedClock(known.admitted_at + timedelta(seconds=after_s))
    provider = CountingProvider(rehearsal.configuration)
    with rehearsal.store(_STORE, clock) as store:
        preparation = rehearsal.preparation(store, provider, clock=clock)
        report = asked(preparation, owner, query(owner, f"And {after_s} seconds later?"))
    [outcome] = report.outcomes
    return outcome.status if outcome.status is QueryStatus.PREPARED else outcome.reason


def _stands(known: Reservation | None) -> bool:
    return (
        known is not None
        and known.state is ReservationState.PENDING
        and known.charged_quanta == known.reserved_quanta
    )


def _plain(one: Killed) -> dict[str, Any]:
    known = one.reservation
    return {
        "owner": one.owner,
        "state": known and known.state,
        "charged_quanta": known and known.charged_quanta,
    }
