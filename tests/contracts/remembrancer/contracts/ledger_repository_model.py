"""Any history of decisions, taken by a repository and by ledgers that nobody stores.

The ledger's rules have a model of their own in the domain's tests; here the question is whether
storing, loading, locking and receipts keep exactly what the ledgers decide.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, NoReturn
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from remembrancer.application.load import load
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import (
    MORNING,
    LedgerStore,
    admission,
    days_of,
    receipts_of,
    recorded,
    require_within_ceilings,
    terms,
)
from remembrancer.domain.reservation import (
    ReconciliationEvidence,
    ReservationKind,
    UnknownReason,
)
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.spend_errors import SpendRefusedError

OpenLedgers = Callable[[Path, FixedClock], AbstractContextManager[LedgerStore]]
Decision = Callable[[HeldLedger], object]

EXAMPLES = 15
STEPS = 30
OWNERS = ("ana", "ben")


class LedgerRepositoryMachine(RuleBasedStateMachine):
    """Admit, settle, lose, reconcile and fail; after each step the store agrees with memory.

    Small ids are drawn again and again, and the clock is set back now and then.
    """

    ids: ClassVar = st.integers(min_value=1, max_value=4).map(lambda number: UUID(int=number))
    owners: ClassVar = st.sampled_from(OWNERS)
    charges: ClassVar = st.integers(min_value=1, max_value=60)

    def __init__(self, opened: OpenLedgers) -> None:
        super().__init__()
        self.resources = ExitStack()
        folder = Path(self.resources.enter_context(TemporaryDirectory()))
        self.clock = FixedClock(MORNING)
        self.store = self.resources.enter_context(opened(folder, self.clock))
        self.alone = {owner: ReservationLedger.unused("acme", owner) for owner in OWNERS}

    def teardown(self) -> None:
        self.resources.close()

    @rule(seconds=st.sampled_from([0.4, 1, 14, 15, -3, -90_000, 43_200, 90_000]))
    def pass_time(self, seconds: float) -> None:
        self.clock.set(self.clock.now() + timedelta(seconds=seconds))

    @rule(
        owner=owners,
        reservation_id=ids,
        kind=st.sampled_from(ReservationKind),
        charge=charges,
        digest=st.sampled_from(["a" * 64, "b" * 64]),
        quanta=st.sampled_from([0, 60, 100, 150]),
        requests=st.sampled_from([0, 2, 100]),
    )
    def admit(
        self,
        owner: str,
        reservation_id: UUID,
        kind: ReservationKind,
        charge: int,
        digest: str,
        quanta: int,
        requests: int,
    ) -> None:
        under = terms(quanta=quanta, requests=requests)
        decision = admission(reservation_id, kind=kind, charge=charge, digest=digest, under=under)
        self.both(owner, decision)

    @rule(owner=owners, reservation_id=ids, charge=charges)
    def settle(self, owner: str, reservation_id: UUID, charge: int) -> None:
        self.both(
            owner,
            lambda held: held.ledger.settle(
                reservation_id,
                charged_quanta=charge,
                usage_tokens=charge * 9,
                earlier=held.find(reservation_id),
                at=held.now,
            ),
        )

    @rule(owner=owners, reservation_id=ids, reason=st.sampled_from(UnknownReason))
    def lose(self, owner: str, reservation_id: UUID, reason: UnknownReason) -> None:
        self.both(
            owner,
            lambda held: held.ledger.mark_unknown(
                reservation_id, reason=reason, earlier=held.find(reservation_id), at=held.now
            ),
        )

    @rule(owner=owners, reservation_id=ids, charge=charges)
    def reconcile(self, owner: str, reservation_id: UUID, charge: int) -> None:
        evidence = ReconciliationEvidence(digest="e" * 64, stated_quanta=2, by="operator")
        self.both(
            owner,
            lambda held: held.ledger.reconcile(
                reservation_id,
                charged_quanta=charge,
                evidence=evidence,
                earlier=held.find(reservation_id),
                at=held.now,
            ),
        )

    @rule(owner=owners, reservation_id=ids)
    def fail_after_deciding(self, owner: str, reservation_id: UUID) -> None:
        def fails(held: HeldLedger) -> NoReturn:
            held.ledger.expire(at=held.now)
            with suppress(SpendRefusedError):
                admission(reservation_id)(held)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.store.ledgers.decide("acme", owner, fails)

    @invariant()
    def the_store_holds_what_the_ledgers_recorded(self) -> None:
        for owner, ledger in self.alone.items():
            assert recorded(self.store.log, owner=owner) == ledger.pending_events
            require_within_ceilings(recorded(self.store.log, owner=owner))

    @invariant()
    def the_held_ledger_is_the_fold_of_its_stream(self) -> None:
        for owner, ledger in self.alone.items():
            held = self.store.ledgers.decide("acme", owner, lambda held: vars(held.ledger).copy())
            folded = load(self.store.log, ReservationLedger, ledger.id)
            if folded is not None:
                changing = {"_modified_on", "_version", "_days", "_pending", "tenant", "owner"}
                assert {name: held[name] for name in changing} == {
                    name: vars(folded)[name] for name in changing
                }

    @invariant()
    def receipts_are_the_fold_of_the_stream(self) -> None:
        for owner in OWNERS:
            receipts = receipts_of(recorded(self.store.log, owner=owner))
            for number in range(1, 5):
                receipt = self.store.ledgers.receipt("acme", owner, UUID(int=number))
                assert receipt == receipts.get(UUID(int=number))

    @invariant()
    def days_are_the_sums_of_the_receipts(self) -> None:
        of_each = [days_of(recorded(self.store.log, owner=owner)) for owner in OWNERS]
        assert list(self.store.ledgers.days("acme")) == [day for days in of_each for day in days]

    def both(self, owner: str, decision: Decision) -> None:
        """Take a decision in the store and beside it, with the same outcome."""
        ledger = self.alone[owner]
        beside = HeldLedger(
            ledger=ledger,
            now=ledger.not_before(self.clock.now()),
            find=lambda reservation_id: reservation_in(ledger.pending_events, reservation_id),
        )
        expected = outcome(lambda: decision(beside))
        assert outcome(lambda: self.store.ledgers.decide("acme", owner, decision)) == expected


def outcome(decide: Callable[[], object]) -> object:
    """Return what is decided, or what the refusal was told."""
    try:
        return decide()
    except SpendRefusedError as refusal:
        return type(refusal), vars(refusal)


def agrees_with_the_ledger_alone(opened: OpenLedgers) -> None:
    """Run the machine over an adapter."""

    class Machine(LedgerRepositoryMachine):
        def __init__(self) -> None:
            super().__init__(opened)

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    )
