"""Ledgers of one process: receipts in dictionaries, events in the memory log."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.load import append, evolved
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.domain.errors import MalformedRecordError, RefusedError
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation, ReservationState
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted
from remembrancer.domain.reservation_ledger import ReservationLedger

_Result = TypeVar("_Result")
_Owner = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Receipt:
    """A reservation, and the admission that began it."""

    reservation: Reservation
    admission: ReservationAdmitted


class MemoryLedgerRepository(LedgerRepository):
    """One for each :class:`MemoryTransactions`, whose one lock is every owner's."""

    def __init__(self, *, transactions: MemoryTransactions, log: EventLog, clock: Clock) -> None:
        self._transactions = transactions
        self._log = log
        self._clock = clock
        self._receipts: dict[_Owner, dict[UUID, _Receipt]] = defaultdict(dict)
        self._ledgers: dict[_Owner, ReservationLedger] = {}
        """As committed; what is missing is folded from the log."""

    @override
    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        if self._transactions.in_transaction:
            raise RuntimeError("what is inside a transaction can't be committed by itself")
        with self._transactions.begin():
            # Taken out while it decides: one that failed halfway is not met again.
            ledger = self._ledgers.pop((tenant, owner), None)
            if ledger is None:
                ledger = ReservationLedger.unused(tenant, owner)
            for event in self._log.read(ledger.id, after_version=ledger.version):
                evolved(ledger, event)
            now = ledger.not_before(self._clock.now())
            held = HeldLedger(ledger=ledger, now=now, find=partial(self._find, tenant, owner))
            refused: RefusedError | None = None
            try:
                result = decision(held)
            except RefusedError as refusal:
                refused = refusal
            self._record(ledger)
        if refused is not None:
            raise refused
        return result

    @override
    def receipt(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        with self._transactions.snapshot():
            return self._find(tenant, owner, reservation_id)

    @override
    def days(
        self, tenant: str, owner: str | None = None, *, since: UtcDay | None = None
    ) -> Sequence[SpendOfDay]:
        by_day: dict[tuple[str, UtcDay], list[_Receipt]] = defaultdict(list)
        with self._transactions.snapshot():
            for key, receipts in self._receipts.items():
                if key[0] == tenant and owner in {None, key[1]}:
                    for one in receipts.values():
                        by_day[key[1], one.reservation.day].append(one)
        return [
            _spend(tenant, name, day, of_day)
            for (name, day), of_day in sorted(by_day.items())
            if since is None or day >= since
        ]

    def take(self, facts: Iterable[LedgerEvent]) -> None:
        """Let receipts follow events that are in the log already.

        Raises:
            MalformedRecordError: a reservation was admitted before.
        """
        with self._transactions.begin():
            for fact in facts:
                receipts = self._receipts[fact.tenant, fact.owner]
                if isinstance(fact, ReservationAdmitted) and fact.reservation_id in receipts:
                    raise MalformedRecordError(
                        stream_id=fact.originator_id,
                        version=fact.originator_version,
                        problem="no receipt can follow it: its reservation was admitted before",
                    )
                self._follow(receipts, fact)

    def _find(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        receipt = self._receipts.get((tenant, owner), {}).get(reservation_id)
        return receipt.reservation if receipt else None

    def _record(self, ledger: ReservationLedger) -> None:
        key = (ledger.tenant, ledger.owner)
        facts = list(ledger.pending_events)
        append(self._log, ledger)
        for fact in facts:
            if isinstance(fact, LedgerEvent):
                self._follow(self._receipts[key], fact)
        self._ledgers[key] = ledger
        self._transactions.on_rollback(partial(self._forget, key))

    def _forget(self, key: _Owner) -> None:
        self._ledgers.pop(key, None)

    def _follow(self, receipts: dict[UUID, _Receipt], fact: LedgerEvent) -> None:
        before = receipts.get(fact.reservation_id)
        after = fact.reservation_after(before.reservation if before else None)
        if isinstance(fact, ReservationAdmitted):
            receipts[fact.reservation_id] = _Receipt(fact.reservation_after(None), fact)
        elif before and after:
            receipts[fact.reservation_id] = _Receipt(after, before.admission)
        self._transactions.on_rollback(partial(_put_back, receipts, fact.reservation_id, before))


def _put_back(receipts: dict[UUID, _Receipt], key: UUID, before: _Receipt | None) -> None:
    if before is None:
        receipts.pop(key, None)
    else:
        receipts[key] = before


def _spend(tenant: str, owner: str, day: UtcDay, receipts: Sequence[_Receipt]) -> SpendOfDay:
    reservations = [one.reservation for one in receipts]
    pending = [one for one in reservations if one.state is ReservationState.PENDING]
    unknown = [one for one in reservations if one.state is ReservationState.UNKNOWN]
    last = max((one.admission for one in receipts), key=lambda fact: fact.originator_version)
    return SpendOfDay(
        tenant=tenant,
        owner=owner,
        day=day,
        requests=len(reservations),
        reserved_quanta=sum(one.reserved_quanta for one in reservations),
        charged_quanta=_charged(reservations),
        pending_quanta=_charged(pending),
        unknown_quanta=_charged(unknown),
        pending=len(pending),
        unknown=len(unknown),
        ceiling_quanta=last.ceiling_quanta,
        ceiling_requests=last.ceiling_requests,
    )


def _charged(reservations: Iterable[Reservation]) -> int:
    return sum(one.charged_quanta for one in reservations)
