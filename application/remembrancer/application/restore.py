"""Use case: restore an export into an empty store, of whatever kind.

The file is read twice.  First every line is checked: the digest over all of them, each event's
own hash and canonical bytes, each text's digest.  Then all is written in one transaction, in which
the store checks that each event follows its predecessor; whatever is wrong undoes the whole.
"""

import hmac
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from eventsourcing.domain import AggregateEvent

from remembrancer.application.entry_index import index_id, labels, searchable_text
from remembrancer.application.export_format import (
    EventLine,
    OriginalLine,
    OwnerLine,
    SessionLine,
    read_lines,
)
from remembrancer.application.export_reading import AT_ONCE, Reading
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    Original,
    SessionVault,
    SparseDocument,
    SparseIndex,
    Transactions,
)
from remembrancer.application.ports.archive import Archive, ArchivedEvent, Counts, Part
from remembrancer.application.remember import Progress
from remembrancer.application.restored_spend import RestoredSpend
from remembrancer.application.utc_time import is_in_utc
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import MalformedRecordError, StaleStreamError
from remembrancer.domain.export_errors import DamagedExportError, StoreNotEmptyError
from remembrancer.domain.hash_chain import Link, check_link
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.reservation_event import LedgerEvent
from remembrancer.domain.reservation_ledger import ReservationLedger

CHARACTERS_AT_ONCE = 4_194_304
"""The same by size; one that is larger goes alone."""

ReadLines = Callable[[], AbstractContextManager[Iterator[bytes]]]
"""Opens the export at its beginning; gives its lines with their ends."""

_FOLLOWED = frozenset(
    one.TOPIC
    for one in (
        MemoryEntry.EntryErased,
        ReservationLedger.ReservationAdmitted,
        ReservationLedger.ReservationSettled,
        ReservationLedger.ReservationBecameUnknown,
        ReservationLedger.ReservationReconciled,
    )
)
"""Events that vault or receipts follow."""

_Owned = EventLine | OriginalLine | SessionLine
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What is in the store now."""

    events: int
    originals: int
    sessions: int
    owners: int
    holds_originals: bool
    """False where the export had no texts: what it says of them can't be replayed."""
    versions_by_words: int
    """Versions in the keyword index.  Vectors aren't exported: reindexing makes them."""


class Restore:
    """All or nothing."""

    def __init__(  # one port each
        self,
        *,
        archive: Archive,
        log: EventLog,
        vault: EntryVault,
        sessions: SessionVault,
        sparse: SparseIndex,
        transactions: Transactions,
    ) -> None:
        self._archive = archive
        self._log = log
        self._vault = vault
        self._sessions = sessions
        self._sparse = sparse
        self._transactions = transactions

    def __call__(self, read: ReadLines, *, progress: Progress | None = None) -> Restored:
        """Restore what ``read`` gives, or leave the store as empty as it was.

        Raises:
            StoreNotEmptyError: something is in the store already.
            UnreadableExportError: it is no export, or one of a newer release.
            DamagedExportError: it isn't (any more) what was written.
            UnknownTopicError: it holds an event that only a newer release knows.
            StoreError: the store can't take it in.
        """
        with self._transactions.over_all_tenants():
            self._require_empty()
        with read() as lines:
            counts = self._checked(lines, progress)
        with (
            read() as lines,
            self._transactions.over_all_tenants(),
            self._transactions.begin(alone=True),
        ):
            self._require_empty()
            return self._written(lines, counts, progress)

    def _require_empty(self) -> None:
        if not self._archive.is_empty():
            raise StoreNotEmptyError

    # -- Looking at every line ---------------------------------------------

    def _checked(self, lines: Iterator[bytes], progress: Progress | None) -> Counts:
        reading, spend = Reading(), RestoredSpend()
        for number, line in read_lines(lines):
            reading.take(number, line)
            if isinstance(line, EventLine):
                self._check_event(number, line.event(reading.whose(number, line.of)), spend)
            elif isinstance(line, OriginalLine):
                _check_original(number, line.original(reading.whose(number, line.of)))
            elif isinstance(line, SessionLine):
                reading.whose(number, line.of)
            reading.tell(progress, of_passes=2)
        return reading.counts

    def _check_event(self, number: int, one: ArchivedEvent, spend: RestoredSpend) -> None:
        link = Link(one.version, one.topic, one.state, one.predecessor, one.own)
        with _at(number):
            check_link(one.stream_id, link)
            event = self._event(one)
        if not _is_of(event, one):
            raise DamagedExportError(line=number, problem="the event is another owner's")
        if not is_in_utc(event.timestamp):
            raise DamagedExportError(line=number, problem="UTC can't tell when the event was")
        problem = spend.problem_of(event) if isinstance(event, LedgerEvent) else None
        if problem is not None:
            raise DamagedExportError(line=number, problem=problem)

    # -- Writing -----------------------------------------------------------

    def _written(
        self, lines: Iterator[bytes], counts: Counts, progress: Progress | None
    ) -> Restored:
        reading = Reading(done=counts.events + counts.originals + counts.sessions)

        def told() -> Iterator[tuple[int, _Owned]]:
            for number, line in read_lines(lines):
                reading.take(number, line)
                if isinstance(line, _Owned):
                    yield number, line
                reading.tell(progress, of_passes=2)

        for run in _batches(told(), same=lambda one: (type(one[1]), one[1].of), size=_size):
            self._take(reading, run)
        if reading.counts != counts:
            raise DamagedExportError(line=reading.line, problem="the file has changed meanwhile")
        return Restored(
            events=counts.events,
            originals=counts.originals,
            sessions=counts.sessions,
            owners=len(reading.owners),
            holds_originals=reading.holds_originals,
            versions_by_words=sum(self._index(owner) for owner in reading.owners),
        )

    def _take(self, reading: Reading, run: list[tuple[int, _Owned]]) -> None:
        """Write lines of one kind and one owner."""
        number, first = run[0]
        whose = reading.whose(number, first.of)
        with self._transactions.acting_for(whose.tenant, whose.owner):
            events = [line.event(whose) for _, line in run if isinstance(line, EventLine)]
            if events:
                with _at(number):
                    self._take_events(events, whose)
            originals = [line.original(whose) for _, line in run if isinstance(line, OriginalLine)]
            if originals:
                self._keep(number, originals)
            for _, line in run:
                if isinstance(line, SessionLine):
                    self._keep_session(line, whose)

    def _take_events(self, events: list[ArchivedEvent], whose: OwnerLine) -> None:
        self._archive.take_events(events)
        decoded = [self._event(one) for one in events if one.topic in _FOLLOWED]
        facts = [one for one in decoded if isinstance(one, LedgerEvent)]
        erased = [
            EntryId(one.entry_id) for one in decoded if isinstance(one, MemoryEntry.EntryErased)
        ]
        if facts:
            self._archive.take_receipts(facts)
        if erased:
            self._archive.take_erased(erased, tenant=whose.tenant, owner=whose.owner)

    def _keep(self, number: int, originals: list[Original]) -> None:
        problem = ""
        try:
            if any(self._vault.tenant_of_erased(one.entry_id) for one in originals):
                problem = "a text of an erased entry is among what follows"
            else:
                self._vault.keep(originals)
        except StaleStreamError:
            problem = "a version doesn't follow the one before it"
        if problem:
            raise DamagedExportError(line=number, problem=problem)

    def _keep_session(self, line: SessionLine, whose: OwnerLine) -> None:
        self._sessions.keep_key(
            line.selection,
            tenant=whose.tenant,
            owner=whose.owner,
            session=line.session,
            key=bytes.fromhex(line.key),
        )
        for pack, items in line.items:
            self._sessions.keep_items(line.selection, number=pack, items=items.encode())

    def _index(self, owner: OwnerLine) -> int:
        """Rebuild an owner's words from what the vault keeps now; return how many versions."""
        count = 0
        with self._transactions.acting_for(owner.tenant, owner.owner):
            kept = self._archive.originals(Part(tenant=owner.tenant, owner=owner.owner))
            for batch in _batches(kept, same=lambda _: None, size=lambda one: len(one.text)):
                self._sparse.upsert_many(
                    [
                        SparseDocument(index_id(one), searchable_text(one), labels(one))
                        for one in batch
                    ]
                )
                count += len(batch)
        return count

    def _event(self, one: ArchivedEvent) -> AggregateEvent:
        return self._log.event_of(one.stream_id, one.version, one.topic, one.state)


@contextmanager
def _at(line: int) -> Generator[None]:
    """Say where in the export an event stands, or the run of events that it is in."""
    try:
        yield
    except MalformedRecordError as error:
        raise DamagedExportError(line=line, problem=str(error)) from error


def _check_original(number: int, one: Original) -> None:
    if not hmac.compare_digest(original_digest(one.salt, one.text), one.digest):
        raise DamagedExportError(line=number, problem="the text isn't that of its digest")


def _batches(
    items: Iterable[_Item], *, same: Callable[[_Item], object], size: Callable[[_Item], int]
) -> Iterator[list[_Item]]:
    """Group what comes one after another and is the same by ``same``, within bounds."""
    batch: list[_Item] = []
    held = 0
    for one in items:
        full = len(batch) == AT_ONCE or held > CHARACTERS_AT_ONCE
        if batch and (full or same(one) != same(batch[0])):
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += size(one)
    if batch:
        yield batch


def _size(numbered: tuple[int, _Owned]) -> int:
    line = numbered[1]
    if isinstance(line, EventLine):
        return len(line.state)
    if isinstance(line, OriginalLine):
        return len(line.text)
    return sum(len(items) for _, items in line.items)


def _is_of(event: AggregateEvent, one: ArchivedEvent) -> bool:
    """Say whether an event is of the owner whose it is said to be, as far as it tells itself."""
    said = vars(event)
    entry_id = said.get("entry_id")
    return (
        said.get("tenant", one.tenant) == one.tenant
        and said.get("owner", one.owner) == one.owner
        and (entry_id is None or MemoryEntry.create_id(one.tenant, entry_id) == one.stream_id)
    )
