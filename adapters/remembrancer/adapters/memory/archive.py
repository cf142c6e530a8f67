"""What a store in memory has recorded, read by whose it is, and taken in from another store."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from typing_extensions import override

from remembrancer.adapters.memory.entry_vault import MemoryEntryVault
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.session_vault import MemorySessionVault
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.ports.archive import (
    Archive,
    ArchivedEvent,
    ArchivedSession,
    Counts,
    Part,
)
from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.errors import MalformedRecordError
from remembrancer.domain.hash_chain import Link, check_chain, check_next
from remembrancer.domain.identity import EntryId
from remembrancer.domain.reservation_event import LedgerEvent

_Numbered = tuple[int, UUID, Link]


class MemoryArchive(Archive):
    """Looks through everything: nothing here is large."""

    def __init__(
        self,
        *,
        transactions: MemoryTransactions,
        recorder: MemoryRecorder,
        vault: MemoryEntryVault,
        sessions: MemorySessionVault,
        ledger: MemoryLedgerRepository,
    ) -> None:
        self._transactions = transactions
        self._recorder = recorder
        self._vault = vault
        self._sessions = sessions
        self._ledger = ledger

    @override
    def counts(self, part: Part) -> Counts:
        with self._transactions.snapshot():
            return Counts(
                events=_length(self._chosen(part)),
                originals=_length(self.originals(part)),
                sessions=_length(self.sessions(part)),
            )

    @override
    def events(
        self,
        part: Part,
        *,
        after_position: int = 0,
        limit: int | None = None,
        newest: bool = False,
    ) -> Iterator[ArchivedEvent]:
        with self._transactions.snapshot():
            chosen: Iterator[_Numbered] = (
                row for row in self._chosen(part) if row[0] > after_position
            )
            if newest:
                chosen = iter(deque(chosen, maxlen=limit))
            for number, stream_id, link in islice(chosen, limit):
                yield self._event(number, stream_id, link)

    @override
    def originals(self, part: Part) -> Iterator[Original]:
        with self._transactions.snapshot():
            for versions in self._vault.all_versions():
                if _is_of(part, versions[-1].tenant, versions[-1].owner):
                    yield from versions

    @override
    def sessions(self, part: Part) -> Iterator[ArchivedSession]:
        with self._transactions.snapshot():
            for one in self._sessions.all_sessions():
                if _is_of(part, one.tenant, one.owner):
                    yield one

    @override
    def is_empty(self) -> bool:
        with self._transactions.snapshot():
            return not (
                self._recorder.max_notification_id()
                or self._vault.knows_anything
                or any(True for _ in self._sessions.all_sessions())
            )

    @override
    def take_events(self, events: Sequence[ArchivedEvent]) -> None:
        with self._transactions.begin():
            for one in events:
                link = Link(one.version, one.topic, one.state, one.predecessor, one.own)
                stream = self._recorder.stream(one.stream_id)
                check_next(one.stream_id, link, head=stream[-1] if stream else None)
                # Its hash is made anew there, of the same bytes behind the same predecessor.
                stored = StoredEvent(one.stream_id, one.version, one.topic, one.state)
                self._recorder.insert_events([stored])

    @override
    def take_erased(self, entries: Sequence[EntryId], *, tenant: str, owner: str) -> None:
        with self._transactions.begin():
            for entry_id in entries:
                self._vault.keep_erased(entry_id, tenant)

    @override
    def take_receipts(self, facts: Sequence[LedgerEvent]) -> None:
        self._ledger.take(facts)

    def _chosen(self, part: Part) -> Iterator[_Numbered]:
        for number, stream_id, link in self._recorder.rows():
            if part.stream_id in {None, stream_id} and self._concerns(part, stream_id, link):
                yield number, stream_id, link

    def _concerns(self, part: Part, stream_id: UUID, link: Link) -> bool:
        if part.reservation_id is not None:
            named = _said(link.state).get("reservation_id")
            if not isinstance(named, dict) or named.get("_data_") != part.reservation_id.hex:
                return False
        if part.tenant is None and part.session is None:
            return True
        first = _said(self._recorder.stream(stream_id)[0].state)
        whose = _is_of(part, first.get("tenant"), first.get("owner"))
        return whose and (part.session is None or first.get("session") == part.session)

    def _event(self, number: int, stream_id: UUID, link: Link) -> ArchivedEvent:
        stream = self._recorder.stream(stream_id)
        at = link.version - stream[0].version  # A stream has no gaps.
        before = stream[at - 1] if 0 < at <= len(stream) else None
        check_chain(stream_id, [link], before=before)
        first = _said(stream[0].state)
        tenant, owner = first.get("tenant"), first.get("owner")
        if not isinstance(tenant, str) or not isinstance(owner, str):
            problem = "its stream doesn't say whose it is"
            raise MalformedRecordError(stream_id=stream_id, version=link.version, problem=problem)
        return ArchivedEvent(
            position=number,
            tenant=tenant,
            owner=owner,
            stream_id=stream_id,
            version=link.version,
            topic=link.topic,
            state=link.state,
            predecessor=link.predecessor,
            own=link.own,
        )


def _is_of(part: Part, tenant: object, owner: object) -> bool:
    return (part.tenant is None or part.tenant == tenant) and (
        part.owner is None or part.owner == owner
    )


def _said(state: bytes) -> dict[str, Any]:
    """Return what an event's bytes say; nothing where they aren't an object of JSON."""
    try:
        found = json.loads(state)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _length(some: Iterable[object]) -> int:
    return sum(1 for _ in some)
