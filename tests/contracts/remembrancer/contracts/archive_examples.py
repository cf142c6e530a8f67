"""What the suite of archives records and keeps."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.application.ports.archive import WHOLE, Archive, ArchivedEvent, Part
from remembrancer.application.ports.entry_vault import EntryVault
from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.ledger_repository import HeldLedger, LedgerRepository
from remembrancer.application.ports.session_vault import SessionVault
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.event_log_examples import AT, DIGEST, header, pending
from remembrancer.contracts.originals import FIRST, SALT, SECOND, an_original
from remembrancer.contracts.spending import FIRST_ID, SECOND_ID, admission
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.l3_selection import L3Selection, Selection
from remembrancer.domain.recall import RecallKind, RecallMode
from remembrancer.domain.reservation_event import LedgerEvent
from remembrancer.domain.reservation_ledger import ReservationLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStore:
    """An archive, and the ports that show what it did."""

    archive: Archive
    log: EventLog
    vault: EntryVault
    sessions: SessionVault
    ledger: LedgerRepository
    transactions: Transactions

    def append(
        self, owner: str, events: Sequence[AggregateEvent], *, tenant: str = "acme"
    ) -> None:
        """Append events of one owner."""
        with self.transactions.acting_for(tenant, owner):
            self.log.append(events)

    def events(self, part: Part = WHOLE, **bounds: int | bool) -> list[ArchivedEvent]:
        """Return what the archive gives of a part."""
        with self._reaching(part), self.transactions.snapshot():
            return list(self.archive.events(part, **bounds))  # type: ignore[arg-type]  # Any of them.

    def take(self, events: Sequence[ArchivedEvent]) -> None:
        """Take events in, each for its owner, in one transaction."""
        with self.transactions.begin():
            for one in events:
                with self.transactions.acting_for(one.tenant, one.owner):
                    self.archive.take_events([one])

    def _reaching(self, part: Part) -> AbstractContextManager[None]:
        if part.tenant is None:
            return self.transactions.over_all_tenants()
        return self.transactions.acting_for(part.tenant, part.owner)


def life(
    number: int, *, owner: str = "ana", tenant: str = "acme", corrections: int = 0
) -> list[AggregateEvent]:
    """Return the events of an entry that was corrected this often."""
    labels = header(number, tenant=tenant)._replace(owner=owner)
    entry = MemoryEntry.remember(labels, digest=DIGEST, length=7, at=AT)
    for i in range(corrections):
        at = AT + timedelta(seconds=i + 1)
        entry.correct(labels, digest=DIGEST, length=i, reason="edited", at=at)
    return pending(entry)


def selected(session: str, stage: str, *, tenant: str = "acme") -> list[AggregateEvent]:
    """Return the events of a stage for which nothing was found."""
    selection = Selection(
        tenant=tenant, owner="ana", principal="agent-7", session=session, stage=stage,
        kind=RecallKind.DELIBERATE, entries=(), mode=RecallMode.SPARSE, mode_reason="",
        left_out=(), left_out_count=0, limit=10, filter={}, embedding_tuple=None,
        sealed_query_vector=None,
    )  # fmt: skip
    return _decided(L3Selection.select(selection, at=AT))


def spent() -> list[LedgerEvent]:
    """Return the events of Ana's ledger: a settled query and one that is pending."""
    ledger = ReservationLedger.unused("acme", "ana")
    held = HeldLedger(ledger=ledger, now=AT, find=lambda _: None)
    first = admission(FIRST_ID)(held).reservation
    ledger.settle(FIRST_ID, charged_quanta=3, usage_tokens=117, earlier=first, at=AT)
    admission(SECOND_ID)(held)
    return [cast("LedgerEvent", event) for event in ledger.collect_events()]


def a_context_fed_by(reservation_id: UUID) -> list[AggregateEvent]:
    """Return the events of a cache context into whose first generation vectors came."""
    context = CacheContext.bind(
        "acme", "ana", "cli", context_digest=DIGEST, configuration_digest=DIGEST, at=AT
    )
    context.record_prepared(1, reservation_id=reservation_id, vectors=2, at=AT)
    return _decided(context)


def keep_originals(store: ArchiveStore) -> None:
    """Keep two versions of Ana's and one of Ben's."""
    with store.transactions.acting_for("acme", "ana"):
        store.vault.keep([an_original(FIRST, 1), an_original(FIRST, 2)])
    with store.transactions.acting_for("acme", "ben"):
        store.vault.keep([an_original(SECOND, 1, owner="ben")])


def keep_sessions(store: ArchiveStore) -> None:
    """Keep a session of Ana's with items of two packs, and one of Ben's without."""
    for number, (owner, session) in enumerate((("ana", "s-1"), ("ben", "s-2")), start=1):
        with store.transactions.acting_for("acme", owner):
            store.sessions.keep_key(
                UUID(int=number), tenant="acme", owner=owner, session=session, key=SALT
            )
    with store.transactions.acting_for("acme", "ana"):
        store.sessions.keep_items(UUID(int=1), number=2, items=b"[2]")
        store.sessions.keep_items(UUID(int=1), number=1, items=b"[1]")


def take_erased(store: ArchiveStore) -> None:
    """Have an entry of Ana's known as erased that never was here."""
    with store.transactions.acting_for("acme", "ana"):
        store.archive.take_erased([FIRST], tenant="acme", owner="ana")


def revived(store: ArchiveStore, one: ArchivedEvent) -> AggregateEvent:
    """Return the event of a record."""
    return store.log.event_of(one.stream_id, one.version, one.topic, one.state)


def unplaced(events: Sequence[ArchivedEvent]) -> list[ArchivedEvent]:
    """Return events without their positions, which are each log's own."""
    return [replace(one, position=0) for one in events]


def _decided(aggregate: object) -> list[AggregateEvent]:
    return pending(cast("MemoryEntry", aggregate))
