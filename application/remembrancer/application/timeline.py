"""Use case: what happened to an owner or in a session, event by event, in words."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.application.ports import EventLog, Transactions
from remembrancer.application.ports.archive import Archive, Part
from remembrancer.application.whose import acting_for_part
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.counted import counted
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import InvalidInputError, MalformedRecordError
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.money import usd_text
from remembrancer.domain.parsed import parsed_name
from remembrancer.domain.reservation_ledger import ReservationLedger

LIMIT_MAX = 10_000
LIMIT = 100
"""Events of a page by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One event."""

    position: int
    at: datetime
    owner: str
    stream_id: UUID
    version: int
    what: str
    """The event as a code, such as ``entry_corrected``."""
    about: str
    """The id of the entry or the reservation, ``session/stage``, or the surface."""
    words: str
    """What happened, for a person; holds no text, question or subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A page of events, oldest first."""

    happenings: tuple[Happening, ...]
    next_after: int | None
    """Where the next page begins; None where there is none."""


class ReadTimeline:
    """Reads, and reads only; the events are found by whose they are, however long the log is."""

    def __init__(self, *, archive: Archive, log: EventLog, transactions: Transactions) -> None:
        self._archive = archive
        self._log = log
        self._transactions = transactions

    def __call__(
        self,
        *,
        tenant: str,
        owner: str | None = None,
        session: str | None = None,
        after: int = 0,
        limit: int = LIMIT,
        newest: bool = False,
    ) -> Timeline:
        """Return up to ``limit`` events of an owner, of a session, or of an owner's session.

        They begin behind position ``after``; with ``newest`` the last ones come instead of the
        first.

        Raises:
            InvalidInputError: neither owner nor session is named, or a bound is broken.
            RecordError: one of the events can't be read.
        """
        part = Part(
            tenant=parsed_name(tenant, field="tenant"),
            owner=None if owner is None else parsed_name(owner, field="owner"),
            session=None if session is None else parsed_name(session, field="session"),
        )
        if part.owner is None and part.session is None:
            raise InvalidInputError(field="owner", problem="or a session must be named")
        if type(after) is not int or after < 0:
            raise InvalidInputError(field="after", problem="must be a whole number, 0 or more")
        if type(limit) is not int or not 1 <= limit <= LIMIT_MAX:
            raise InvalidInputError(
                field="limit", problem=f"must be a whole number from 1 to {LIMIT_MAX}"
            )
        with acting_for_part(self._transactions, part), self._transactions.snapshot():
            found = [
                (
                    one.position,
                    one.owner,
                    self._log.event_of(one.stream_id, one.version, one.topic, one.state),
                )
                for one in self._archive.events(
                    part, after_position=after, limit=limit + (not newest), newest=newest
                )
            ]
            told = [self._happening(*one) for one in found[:limit]]
        more = len(found) > limit
        return Timeline(
            happenings=tuple(told), next_after=told[-1].position if more and told else None
        )

    def _happening(self, position: int, owner: str, event: AggregateEvent) -> Happening:
        what, telling = _TOLD[type(event)]
        try:
            about, words = telling(event)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise MalformedRecordError(
                stream_id=event.originator_id,
                version=event.originator_version,
                problem="no decision recorded this",
            ) from error
        return Happening(
            position=position,
            at=event.timestamp,
            owner=owner,
            stream_id=event.originator_id,
            version=event.originator_version,
            what=what,
            about=about or self._stage(event.originator_id),
            words=words,
        )

    def _stage(self, stream_id: UUID) -> str:
        """Return the stage that a selection's stream is about: only its first event says it."""
        for event in self._log.read(stream_id):
            if isinstance(event, L3Selection.L3EntriesSelected):
                return f"{event.session}/{event.stage}"
        return str(stream_id)


_Told = tuple[str, str]
"""What an event is about (``""``: its stream says it), and what it says in words."""


def _remembered(event: Any) -> _Told:
    return str(event.entry_id), f"remembered: {_labels(event)}"


def _corrected(event: Any) -> _Told:
    version = event.originator_version
    words = f"corrected ({event.reason}), version {version} now: {_labels(event)}"
    return str(event.entry_id), words


def _labels(event: Any) -> str:
    length = counted(event.length, "byte")
    return f"{event.kind} in {event.scope}, {event.sensitivity}, {length}"


def _erased(event: Any) -> _Told:
    return str(event.entry_id), f"erased ({event.reason})"


def _selected(event: Any) -> _Told:
    how = f"{event.mode} ({event.mode_reason})" if event.mode_reason else event.mode
    selected = counted(len(event.entries), "entry", "entries")
    words = f"{selected} selected for {event.principal}, {how}; {event.left_out_count} left out"
    return f"{event.session}/{event.stage}", words


def _assembled(event: Any) -> _Told:
    words = (
        f"pack {event.number} assembled: {counted(len(event.included), 'piece')} in, "
        f"{len(event.omitted)} omitted, {event.tokens} of {counted(event.token_budget, 'token')}"
    )
    return "", words


def _admitted(event: Any) -> _Told:
    day = event.day_quanta_before + event.reserved_quanta
    words = (
        f"reserved {usd_text(event.reserved_quanta)} USD ({event.kind}); {event.day} is at "
        f"{usd_text(day)} of {usd_text(event.ceiling_quanta)} USD, request "
        f"{event.day_requests_before + 1} of {event.ceiling_requests}"
    )
    return str(event.reservation_id), words


def _settled(event: Any) -> _Told:
    used = counted(event.usage_tokens, "token")
    words = f"settled at {usd_text(event.charged_quanta)} USD for {used}"
    return str(event.reservation_id), words


def _unknown(event: Any) -> _Told:
    words = f"became unknown ({event.reason}), keeps {usd_text(event.charged_quanta)} USD"
    return str(event.reservation_id), words


def _reconciled(event: Any) -> _Told:
    words = f"reconciled to {usd_text(event.charged_quanta)} USD by {event.reconciled_by}"
    return str(event.reservation_id), words


def _bound(event: Any) -> _Told:
    return event.surface, f"cache context bound, generation {event.generation}"


def _replaced(event: Any) -> _Told:
    return event.surface, f"cache context replaced, generation {event.generation} begins"


def _prepared(event: Any) -> _Told:
    words = (
        f"{counted(event.vectors, 'query vector')} prepared in generation {event.generation}, "
        f"paid by reservation {event.reservation_id}"
    )
    return event.surface, words


def _withdrawn(event: Any) -> _Told:
    return event.surface, f"admission withdrawn ({event.reason}), generation {event.generation}"


_TOLD: dict[type, tuple[str, Callable[[Any], _Told]]] = {
    MemoryEntry.EntryRemembered: ("entry_remembered", _remembered),
    MemoryEntry.EntryCorrected: ("entry_corrected", _corrected),
    MemoryEntry.EntryErased: ("entry_erased", _erased),
    L3Selection.L3EntriesSelected: ("entries_selected", _selected),
    L3Selection.ContextPackAssembled: ("pack_assembled", _assembled),
    ReservationLedger.ReservationAdmitted: ("reservation_admitted", _admitted),
    ReservationLedger.ReservationSettled: ("reservation_settled", _settled),
    ReservationLedger.ReservationBecameUnknown: ("reservation_became_unknown", _unknown),
    ReservationLedger.ReservationReconciled: ("reservation_reconciled", _reconciled),
    CacheContext.CacheContextBound: ("cache_context_bound", _bound),
    CacheContext.CacheContextReplaced: ("cache_context_replaced", _replaced),
    CacheContext.QueryVectorsPrepared: ("query_vectors_prepared", _prepared),
    CacheContext.AdmissionWithdrawn: ("admission_withdrawn", _withdrawn),
}
"""Every event of :data:`~remembrancer.domain.stored_format.EVENTS`: its code, how it is told."""
