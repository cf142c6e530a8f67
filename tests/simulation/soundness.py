"""What must be true of a simulated store after every step, looked at from outside.

The log alone says what should be there: streams without gaps, chained; the books agree with every
event; vault, indexes and receipts are what the log says; nothing acknowledged is missing.
"""

import hashlib
import traceback
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.application.agreement import assert_agreement
from tests.simulation.auditing import findings_in

from remembrancer.adapters.memory.event_log import MemoryRecorder

if TYPE_CHECKING:
    from tests.simulation.world import World

    from remembrancer.domain.identity import EntryId

GENESIS = bytes(32)
STEP = 1_000
_ROWS = (
    "SELECT notification_id, originator_id, originator_version, topic, state, predecessor_hash,"
    " event_hash FROM stored_events WHERE notification_id > ? ORDER BY notification_id"
)


class Soundness:
    """Follows the log, and compares everything else with it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._position = 0
        self._raw_position = 0
        self._checked_position = -1
        self._entries_changed = True
        self._versions: dict[UUID, int] = defaultdict(int)
        self._hashes: dict[UUID, bytes] = {}
        self.entries: dict[str, list[str]] = {}
        """Digests of each entry's versions, oldest first; ids as strings."""
        self.owners: dict[str, tuple[str, str]] = {}
        self.erased: set[str] = set()
        self.acknowledged: dict[EntryId, int] = {}
        """The highest version of each entry that a host was told of."""
        self.digest = hashlib.sha256()
        """Over every event that was recorded, in order."""

    def catch_up(self) -> None:
        """Take in what was recorded since."""
        log = self._world.store.log
        while records := log.follow(after_position=self._position, limit=STEP):
            for record in records:
                if record.position <= self._position:
                    self._complain("positions_rise", f"{record}")
                self._position = record.position
                self._take(record.event)

    def check(self, *, audit: bool = False) -> None:
        """See that everything agrees now; ``audit``: in the eyes of the product's auditor, too."""
        self.catch_up()
        if self._position == self._checked_position and not audit:
            return
        self._checked_position = self._position
        self._check_chain()
        if audit or self._entries_changed:
            self._check_parts()
            self._entries_changed = False
        self._check_receipts()
        path = self._world.folder and self._world.folder / "memory.db"
        for found in findings_in(self._world.store, path) if audit else ():
            self._complain(f"audit {found.partition(':')[0]}", found)
        for entry_id, version in self.acknowledged.items():
            if len(self.entries.get(str(entry_id), ())) < version:
                self._complain("acknowledged_is_there", f"{entry_id} version {version}")

    # -- One event ---------------------------------------------------------

    def _take(self, event: Any) -> None:
        stream, version = event.originator_id, event.originator_version
        if version != self._versions[stream] + 1:
            self._complain("no_gaps", f"{stream}: {version} after {self._versions[stream]}")
        self._versions[stream] = version
        self._world.seen[type(event).__name__] += 1
        self._world.books.take(event)
        self._entries_changed |= type(event).__name__.startswith("Entry")
        match type(event).__name__:
            case "EntryRemembered":
                self.entries[str(event.entry_id)] = [event.digest]
                self.owners[str(event.entry_id)] = (event.tenant, event.owner)
            case "EntryCorrected":
                self.entries[str(event.entry_id)].append(event.digest)
                if str(event.entry_id) in self.erased:
                    self._complain("erased_once", f"{event}")
            case "EntryErased":
                self.erased.add(str(event.entry_id))
            case "L3EntriesSelected":
                self._selected(event)
            case "ContextPackAssembled":
                self._assembled(event)

    def _selected(self, event: Any) -> None:
        if event.originator_version != 1:
            self._complain("selected_once", f"{event}")
        chosen = [one["entry_id"] for one in event.entries]
        if len(set(chosen)) != len(chosen) or len(chosen) > event.k:
            self._complain("selected_within", f"{event}")
        for one in event.entries:
            digests = self.entries.get(one["entry_id"], [])
            if one["digest"] not in digests[one["version"] - 1 : one["version"]]:
                self._complain("selected_is_known", f"{event}")
            if self.owners.get(one["entry_id"]) != (event.tenant, event.owner):
                self._complain("selected_is_own", f"{event}")
        self._world.selections[event.originator_id] = chosen

    def _assembled(self, event: Any) -> None:
        chosen = self._world.selections.get(event.originator_id)
        if chosen is None:
            self._complain("selection_before_pack", f"{event}")
            return
        included = [one for one in event.included if one in self.entries]
        if [one for one in chosen if one in included] != included:
            self._complain("pack_within_selection", f"{event}: {chosen}")
        if event.tokens > event.token_budget:
            self._complain("pack_within_budget", f"{event}")

    # -- Everything --------------------------------------------------------

    def _check_chain(self) -> None:
        for position, stream, version, topic, state, predecessor, own in self._rows():
            self._raw_position = position
            before = self._hashes.get(stream, GENESIS)
            expected = hashlib.sha256(before + topic.encode() + b"\0" + state).digest()
            if predecessor != before or own != expected:
                self._complain("chained", f"{stream} {version}")
            self._hashes[stream] = own
            self.digest.update(own)

    def _rows(self) -> list[tuple[int, UUID, int, str, bytes, bytes, bytes]]:
        log: Any = self._world.store.log
        recorder = log._recorder
        if isinstance(recorder, MemoryRecorder):
            return [
                (number, row.stream_id, *row.link)
                for number, row in enumerate(recorder._rows, start=1)
                if number > self._raw_position
            ]
        with recorder._database.read() as connection:
            return [
                (number, UUID(bytes=stream), *rest)
                for number, stream, *rest in connection.execute(_ROWS, (self._raw_position,))
            ]

    def _check_parts(self) -> None:
        try:
            assert_agreement(self._world.store, all_have_vectors=False, common_word="common")
        except AssertionError as disagreement:
            [*_, where] = traceback.extract_tb(disagreement.__traceback__)
            self._complain("parts_agree", f"{where.line} {disagreement}")

    def _check_receipts(self) -> None:
        ledger, books = self._world.store.ledger, self._world.books
        for id_, one in books.reservations.items():
            receipt = ledger.receipt(*one.owner, id_)
            told = receipt and (
                receipt.state.value,
                receipt.charged_quanta,
                receipt.reserved_quanta,
                receipt.day,
                receipt.usage_tokens,
            )
            if told != (one.state, one.charged, one.reserved, one.day, one.usage):
                self._complain("receipts_agree", f"{id_}: {told}, not {one}")
        told_days = {
            (day.tenant, day.owner, day.day): (day.charged_quanta, day.requests)
            for tenant in {one.owner[0] for one in books.reservations.values()}
            for day in ledger.days(tenant)
        }
        if told_days != books.days():
            self._complain("days_agree", f"{told_days}, not {books.days()}")

    def _complain(self, rule: str, what: str) -> None:
        self._world.complain(rule, what)
