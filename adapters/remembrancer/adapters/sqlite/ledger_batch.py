"""The decisions of one group commit: taken one after the other, written together.

Most of a decision needs no statement: while nobody else has committed, ledgers are as this process
left them.  What the decisions recorded then goes into the file with one statement a table.  If
that fails, each decision is written by itself, and only those that can't be fail.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite import spend_receipts
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.group_commit import Batch
from remembrancer.adapters.sqlite.stream_rows import stream_key
from remembrancer.application.load import evolved
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.domain.errors import MalformedRecordError, RefusedError
from remembrancer.domain.ledger_snapshot import ledger_from_snapshot, ledger_snapshot
from remembrancer.domain.reservation import Reservation
from remembrancer.domain.reservation_ledger import ReservationLedger

if TYPE_CHECKING:
    from remembrancer.domain.reservation_event import LedgerEvent

SNAPSHOT_EVERY = 16
"""Events from one snapshot to the next: about the most that loading reads behind one."""
LEDGERS_KNOWN_MAX = 1_024
"""Owners whose ledger this process remembers, to read only what others have added since."""

_SNAPSHOT_VERSION = "SELECT version FROM ledger_snapshots WHERE tenant = ? AND owner = ?"
_SNAPSHOT = "SELECT state FROM ledger_snapshots WHERE tenant = ? AND owner = ?"
_KEEP_SNAPSHOT = (
    "INSERT INTO ledger_snapshots (tenant, owner, version, state) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (tenant, owner) DO UPDATE SET version = excluded.version, state = excluded.state"
)

_Result = TypeVar("_Result")
_Owner = tuple[str, str]


class Answer(Generic[_Result]):
    """What came of one decision."""

    __slots__ = ("error", "result")

    def __init__(self) -> None:
        self.result: _Result | None = None
        self.error: Exception | None = None
        """A refusal, to be raised once what was recorded nevertheless is committed; or why it
        could not be written, while others' decisions were."""

    def given(self) -> _Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # It holds this frame, which holds it.
        return cast("_Result", self.result)


@dataclass(slots=True)
class _Known:
    """A ledger as committed, or as the open transaction will commit it."""

    ledger: ReservationLedger
    snapshot_version: int
    """Of the snapshot that others would begin from."""
    stream: bytes
    """The ledger's, as the recorder keys it."""


class _Decided:
    """What one decision recorded, not yet written."""

    __slots__ = ("answer", "earlier", "facts", "known")

    def __init__(self, known: _Known, earlier: "_Earlier", answer: Answer[Any]) -> None:
        self.known = known
        self.facts = cast("list[LedgerEvent]", [*known.ledger.pending_events])
        self.earlier = earlier
        self.answer = answer


class LedgerBatch(Batch):
    """One for each :class:`GroupCommit`; its leader alone uses it, inside the transaction."""

    def __init__(self, *, database: Database, log: EventLog, clock: Clock) -> None:
        self._database = database
        self._log = log
        self._clock = clock
        # A ledger is taken out of here before it decides, and put back after the commit.  So what
        # was rolled back is never met again.
        self._known: dict[_Owner, _Known] = {}
        # What follows is the open transaction's.
        self._connection: apsw.Connection
        self._taken = 0
        """Decisions, failed ones included."""
        self._written: dict[_Owner, _Known] = {}
        self._unwritten: dict[_Owner, _Decided] = {}

    @override
    def begin(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._database.heads.vouch()
        self._database.after_commit(self._keep)
        self._taken, self._written, self._unwritten = 0, {}, {}

    def decide(
        self, tenant: str, owner: str, decision: Callable[[HeldLedger], _Result]
    ) -> Answer[_Result]:
        """Take one decision; what it records is written with the next :meth:`write`."""
        self._taken += 1
        key = (tenant, owner)
        if key in self._unwritten:
            self.write()  # This decision must find what that one recorded.
        known = self._written.pop(key, None) or self._loaded(key)
        ledger = known.ledger
        earlier = _Earlier(self._connection, ledger)
        held = HeldLedger(
            ledger=ledger, now=ledger.not_before(self._clock.now()), find=earlier.find
        )
        answer: Answer[_Result] = Answer()
        try:
            answer.result = decision(held)
        except RefusedError as refusal:
            answer.error = refusal
        if ledger.pending_events:
            self._unwritten[key] = _Decided(known, earlier, answer)
        else:
            self._written[key] = known
        return answer

    @override
    def write(self) -> None:
        decided = list(self._unwritten.values())
        self._unwritten = {}
        if self._taken == 1:  # Then the transaction holds nothing that must outlive a failure.
            self._write(decided)
            self._note(decided)
        elif decided:
            self._try_to_write(decided)

    def _try_to_write(self, decided: Sequence[_Decided]) -> None:
        try:
            with self._database.attempt():
                self._write(decided)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite has rolled back the whole.
            if len(decided) == 1:
                decided[0].answer.error = error
            else:
                for one in decided:
                    self._try_to_write([one])
        else:
            self._note(decided)

    def _write(self, decided: Sequence[_Decided]) -> None:
        facts = [(fact, one.earlier.find) for one in decided for fact in one.facts]
        if facts:
            self._log.append([fact for fact, _ in facts])
            spend_receipts.record_all(self._connection, facts)
        for one in decided:
            one.known.ledger.collect_events()
            self._keep_snapshot(one.known)

    def _note(self, decided: Sequence[_Decided]) -> None:
        for one in decided:
            ledger = one.known.ledger
            if _wants_snapshot(one.known):
                one.known.snapshot_version = ledger.version  # Kept with what was written.
            self._written[ledger.tenant, ledger.owner] = one.known

    def _keep_snapshot(self, known: _Known) -> None:
        ledger = known.ledger
        if _wants_snapshot(known):
            state = ledger_snapshot(ledger)
            self._connection.execute(
                _KEEP_SNAPSHOT, (ledger.tenant, ledger.owner, ledger.version, state)
            )

    def _loaded(self, owner: _Owner) -> _Known:
        known = self._known.pop(owner, None)
        if known is not None:
            head = self._database.heads.find(known.stream)
            if head is not None and head[0] == known.ledger.version:
                return known
        snapshot_version: int = self._connection.execute(_SNAPSHOT_VERSION, owner).get or 0
        if known is None or known.ledger.version < snapshot_version:
            ledger = _from_snapshot(self._connection, *owner)
            known = _Known(ledger, ledger.version, stream_key(ledger.id))
        else:
            known.snapshot_version = snapshot_version
        for event in self._log.read(known.ledger.id, after_version=known.ledger.version):
            evolved(known.ledger, event)
        return known

    def _keep(self) -> None:
        self._known.update(self._written)
        while len(self._known) > LEDGERS_KNOWN_MAX:
            del self._known[next(iter(self._known))]


class _Earlier:
    """What became of one owner's reservations before a decision."""

    __slots__ = ("_connection", "_owner", "_pending")

    def __init__(self, connection: apsw.Connection, ledger: ReservationLedger) -> None:
        self._connection = connection
        self._owner = ledger.tenant, ledger.owner
        self._pending = {one.reservation_id: one for one in ledger.pending}

    def find(self, reservation_id: UUID) -> Reservation | None:
        """Return it as committed; a pending one without a look at its receipt."""
        pending = self._pending.get(reservation_id)
        if pending is not None:
            return pending
        return spend_receipts.find(self._connection, *self._owner, reservation_id)


def _wants_snapshot(known: _Known) -> bool:
    return known.ledger.version - known.snapshot_version >= SNAPSHOT_EVERY


def _from_snapshot(connection: apsw.Connection, tenant: str, owner: str) -> ReservationLedger:
    state: bytes | None = connection.execute(_SNAPSHOT, (tenant, owner)).get
    if state is not None:
        try:
            return ledger_from_snapshot(state, tenant=tenant, owner=owner)
        except MalformedRecordError:
            pass  # Not readable by this release: the stream tells it all.
    return ReservationLedger.unused(tenant, owner)
