"""The ledger against a model that any reader can check: dictionaries, and the rules in words."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from remembrancer.domain.ledger_snapshot import ledger_from_snapshot, ledger_snapshot
from remembrancer.domain.money import UtcDay, utc_day
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    Reservation,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.spend_errors import (
    ChargeNotLoweredError,
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
    ReservationNotPendingError,
    ReservationNotUnknownError,
    ReservationReusedError,
    ReservationUnknownError,
    SpendRefusedError,
)

LEASE = timedelta(seconds=15)
Refusal = type[SpendRefusedError] | None

ids = st.integers(min_value=1, max_value=6).map(lambda number: UUID(int=number))
charges = st.integers(min_value=1, max_value=60)
digests = st.sampled_from(["a" * 64, "b" * 64])
kinds = st.sampled_from(ReservationKind)


@dataclass
class Known:
    """What the model knows of one reservation."""

    kind: ReservationKind
    digest: str
    reserved: int
    charged: int
    usage: int | None
    day: str
    expires_at: datetime
    state: str = "pending"


class LedgerMachine(RuleBasedStateMachine):
    """Admit, settle, lose, reconcile, at any time and with any id: nothing may ever leak.

    Small ids are drawn again and again, and the clock is set back now and then.
    """

    @initialize()
    def open(self) -> None:
        self.clock = datetime(2030, 1, 1, 23, 59, 30, tzinfo=UTC)
        self.latest = datetime(1, 1, 1, tzinfo=UTC)
        self.known: dict[UUID, Known] = {}
        self.ledger = ReservationLedger.unused("acme", "ana")
        self.facts: list[Any] = []
        self.kept: tuple[bytes, int] | None = None

    # -- What may happen ---------------------------------------------------

    @rule(seconds=st.sampled_from([0.4, 1, 5, 14, 15, 16, -3, -90_000, 43_200, 90_000]))
    def pass_time(self, seconds: float) -> None:
        self.clock += timedelta(seconds=seconds)

    @rule(
        reservation_id=ids,
        kind=kinds,
        charge=charges,
        digest=digests,
        quanta=st.sampled_from([0, 60, 100, 150]),
        requests=st.sampled_from([0, 2, 4, 100]),
    )
    def admit(
        self,
        reservation_id: UUID,
        kind: ReservationKind,
        charge: int,
        digest: str,
        quanta: int,
        requests: int,
    ) -> None:
        at = self.model_expiry()
        today = [one for one in self.known.values() if one.day == utc_day(at)]
        known = self.known.get(reservation_id)
        refusal: Refusal = None
        if known is not None:
            if (known.kind, known.digest, known.reserved) != (kind, digest, charge):
                refusal = ReservationReusedError
        elif kind == "query" and any(
            one.kind == "query" and one.state == "pending" for one in self.known.values()
        ):
            refusal = QueryPendingError
        elif len(today) + 1 > requests:
            refusal = OverRequestCeilingError
        elif sum(one.charged for one in today) + charge > quanta:
            refusal = OverMoneyCeilingError
        else:
            self.known[reservation_id] = Known(
                kind, digest, charge, charge, None, utc_day(at), at + LEASE
            )
            self.latest = at

        request = ReservationRequest(
            reservation_id=reservation_id, kind=kind, request_digest=digest, charge_quanta=charge
        )
        terms = SpendTerms(
            ceilings=Ceilings(quanta_per_day=quanta, requests_per_day=requests),
            mechanism_version="semantic-query@1",
            configuration_digest="0" * 64,
            embedding_tuple_digest="1" * 64,
            pricing_digest="2" * 64,
        )
        self.decide(
            refusal,
            lambda earlier: self.ledger.admit(
                request, terms=terms, earlier=earlier, at=self.clock
            ),
            reservation_id,
        )

    @rule(reservation_id=ids, charge=st.integers(min_value=-1, max_value=70))
    def settle(self, reservation_id: UUID, charge: int) -> None:
        at = self.now()
        known = self.known.get(reservation_id)
        refusal: Refusal = None
        if known is None or known.state == "reconciled":
            refusal = ReservationNotPendingError
        elif known.state == "settled":
            if (known.charged, known.usage) != (charge, charge * 9):
                refusal = ReservationNotPendingError
        elif known.state == "unknown" or known.expires_at <= at:
            refusal = ReservationUnknownError
        elif not 1 <= charge <= known.reserved:
            refusal = ChargeNotLoweredError
        else:
            known.state, known.charged, known.usage = "settled", charge, charge * 9
            self.latest = at

        self.decide(
            refusal,
            lambda earlier: self.ledger.settle(
                reservation_id,
                charged_quanta=charge,
                usage_tokens=charge * 9,
                earlier=earlier,
                at=self.clock,
            ),
            reservation_id,
        )

    @rule(reservation_id=ids, reason=st.sampled_from(UnknownReason))
    def mark_unknown(self, reservation_id: UUID, reason: UnknownReason) -> None:
        known = self.known.get(reservation_id)
        refusal: Refusal = None
        if known is None or known.state in {"settled", "reconciled"}:
            refusal = ReservationNotPendingError
        elif known.state == "pending":
            known.state = "unknown"
            self.latest = self.now()

        self.decide(
            refusal,
            lambda earlier: self.ledger.mark_unknown(
                reservation_id, reason=reason, earlier=earlier, at=self.clock
            ),
            reservation_id,
        )

    @rule(
        reservation_id=ids,
        charge=st.integers(min_value=-1, max_value=70),
        stated=st.integers(min_value=0, max_value=20),
    )
    def reconcile(self, reservation_id: UUID, charge: int, stated: int) -> None:
        at = self.model_expiry()
        known = self.known.get(reservation_id)
        refusal: Refusal = None
        if known is not None and known.state == "reconciled" and known.charged == charge:
            pass
        elif known is None or known.state != "unknown":
            refusal = ReservationNotUnknownError
        elif not stated <= charge < known.charged:
            refusal = ChargeNotLoweredError
        else:
            known.state, known.charged = "reconciled", charge
            self.latest = at

        evidence = ReconciliationEvidence(digest="e" * 64, stated_quanta=stated, by="operator")
        self.decide(
            refusal,
            lambda earlier: self.ledger.reconcile(
                reservation_id,
                charged_quanta=charge,
                evidence=evidence,
                earlier=earlier,
                at=self.clock,
            ),
            reservation_id,
        )

    @rule()
    def keep_a_snapshot(self) -> None:
        if self.facts:
            self.kept = (ledger_snapshot(self.ledger), len(self.facts))

    @rule()
    def reload(self) -> None:
        if self.facts:
            self.ledger = self.replayed()

    # -- What must hold whatever happened ----------------------------------

    @invariant()
    def money_and_requests_are_conserved(self) -> None:
        for day in {one.day for one in self.known.values()}:
            if UtcDay(day) not in self.ledger.days:
                continue
            of_day = [one for one in self.known.values() if one.day == day]
            totals = self.ledger.totals(UtcDay(day))
            assert totals.quanta == sum(one.charged for one in of_day)
            assert totals.requests == len(of_day)

    @invariant()
    def the_days_that_matter_are_kept(self) -> None:
        pending_days = {one.day for one in self.known.values() if one.state == "pending"}
        latest_day = {one.day for one in self.known.values()} & {utc_day(self.latest)}
        assert self.ledger.days.keys() == pending_days | latest_day

    @invariant()
    def each_reservation_is_as_the_model_says(self) -> None:
        for reservation_id, known in self.known.items():
            record = reservation_in(self.facts, reservation_id)
            assert record is not None
            assert (record.kind, record.state, record.day) == (
                known.kind,
                known.state,
                known.day,
            )
            assert (record.reserved_quanta, record.charged_quanta) == (
                known.reserved,
                known.charged,
            )
            assert record.charged_quanta <= record.reserved_quanta
        assert {one.reservation_id for one in self.ledger.pending} == {
            name for name, one in self.known.items() if one.state == "pending"
        }

    @invariant()
    def at_most_one_query_is_pending(self) -> None:
        queries = [one for one in self.ledger.pending if one.kind is ReservationKind.QUERY]
        assert len(queries) <= 1

    @invariant()
    def ceilings_hold_at_every_admission(self) -> None:
        for fact in self.facts:
            if isinstance(fact, ReservationLedger.ReservationAdmitted):
                assert fact.day_quanta_before + fact.reserved_quanta <= fact.ceiling_quanta
                assert fact.day_requests_before + 1 <= fact.ceiling_requests

    @invariant()
    def time_never_decreases(self) -> None:
        times = [fact.timestamp for fact in self.facts]
        assert times == sorted(times)

    @invariant()
    def replay_equals_live(self) -> None:
        if self.facts:
            assert self.replayed() == self.ledger

    @invariant()
    def snapshot_and_tail_equal_replay(self) -> None:
        if self.kept is None:
            return
        data, length = self.kept
        ledger = ledger_from_snapshot(data, tenant="acme", owner="ana")
        for fact in self.facts[length:]:
            fact.mutate(ledger)
        assert ledger == self.ledger

    # -- How ---------------------------------------------------------------

    def now(self) -> datetime:
        return max(self.clock, self.latest)

    def model_expiry(self) -> datetime:
        at = self.now()
        for one in self.known.values():
            if one.state == "pending" and one.expires_at <= at:
                one.state = "unknown"
                self.latest = at
        return at

    def decide(
        self,
        refusal: Refusal,
        decision: Callable[[Reservation | None], object],
        reservation_id: UUID,
    ) -> None:
        earlier = reservation_in(self.facts, reservation_id)
        if refusal is None:
            decision(earlier)
        else:
            with pytest.raises(refusal):
                decision(earlier)
        self.facts += self.ledger.collect_events()

    def replayed(self) -> ReservationLedger:
        ledger = None
        for fact in self.facts:
            ledger = fact.mutate(ledger)
        assert isinstance(ledger, ReservationLedger)
        return ledger


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=100, stateful_step_count=40)
