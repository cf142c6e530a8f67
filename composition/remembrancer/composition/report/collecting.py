"""Reads the log once, stream by stream, into a picture; memory doesn't grow with the log.

Only one stream's open reservations are held at a time.  A log may be damaged or of a newer
release: what can't be read is counted and passed over, since the audit has named it already.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any
from uuid import UUID

from remembrancer.application.audit.finding import AuditScope
from remembrancer.application.audit.reading import State, StateReader
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.composition.report.picture import (
    ENTRIES_OF_SELECTION_MAX,
    IDS_OF_PACK_MAX,
    LEFT_OUT_OF_SELECTION_MAX,
    PACKS_OF_SELECTION_MAX,
    Cell,
    ChosenEntry,
    ErasureShown,
    OwnerDay,
    PackShown,
    Picture,
    ReservationLife,
    SelectionShown,
)
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import StoreError
from remembrancer.domain.fences import escaped
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.money import QUANTA_MAX
from remembrancer.domain.reservation import ReservationKind, ReservationState
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.stored_format import EVENTS

TEXT_CHARACTERS_MAX = 300
"""A name has at most 256; a damaged one may have any number."""
_EVENTS_BETWEEN_PROGRESS = 5_000


def collect(
    streams: Iterable[RawEvent],
    *,
    reader: StateReader,
    scope: AuditScope | None = None,
    progress: Callable[[int], None] | None = None,
) -> Picture:
    """Return the picture of events that come by (stream id, version).

    ``progress`` is called with the number of events read so far.
    """
    picture = Picture()
    collector = _Collector(picture, scope or AuditScope())
    try:
        for _, stream, _, topic, data, _, _ in streams:
            collector.begin(stream)
            picture.events += 1
            if progress is not None and picture.events % _EVENTS_BETWEEN_PROGRESS == 0:
                progress(picture.events)
            state, problem = reader.read(topic, data) if topic in EVENTS else (None, topic)
            if problem or not collector.take(topic, state):
                picture.unreadable += 1
    except StoreError as error:
        picture.stopped = str(error)
    collector.end()
    return picture


class _Collector:
    """Takes the events of one stream after the other."""

    def __init__(self, picture: Picture, scope: AuditScope) -> None:
        self._picture = picture
        self._scope = scope
        self._stream: bytes | None = None
        self._begin_empty()
        ledger, selection, entry = ReservationLedger, L3Selection, MemoryEntry
        self._takers: dict[str, Callable[[State], None]] = {
            ledger.ReservationAdmitted.TOPIC: self._admitted,
            ledger.ReservationSettled.TOPIC: self._settled,
            ledger.ReservationBecameUnknown.TOPIC: self._became_unknown,
            ledger.ReservationReconciled.TOPIC: self._reconciled,
            selection.L3EntriesSelected.TOPIC: self._selected,
            selection.ContextPackAssembled.TOPIC: self._assembled,
            entry.EntryRemembered.TOPIC: self._remembered,
            entry.EntryCorrected.TOPIC: self._corrected,
            entry.EntryErased.TOPIC: self._erased,
            CacheContext.AdmissionWithdrawn.TOPIC: self._withdrawn,
        }

    def begin(self, stream: bytes) -> None:
        """Say whose the next event is; the stream before it is complete."""
        if stream != self._stream:
            self.end()
            self._stream = stream

    def take(self, topic: str, state: State) -> bool:
        """Take an event in; return whether it could be understood."""
        taker = self._takers.get(topic)
        if taker is None:
            return True
        try:
            taker(state)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Its inner parts aren't what they were written as; no taker changes anything first.
            return False
        return True

    def end(self) -> None:
        """Complete the stream: what is still open stays as it is."""
        for life in self._open.values():
            self._finish(life)
        for day in self._days.values():
            self._picture.owner_days.add(day.day, day)
        if self._selection is not None and self._wants(self._selection.at):
            self._picture.selections.add(self._selection.at.isoformat(), self._selection)
            self._picture.packs += self._selection.packs_count
        self._begin_empty()

    def _begin_empty(self) -> None:
        self._open: dict[str, ReservationLife] = {}
        self._days: dict[str, OwnerDay] = {}
        self._selection: SelectionShown | None = None
        self._entry: _Entry | None = None

    def _wants(self, at: datetime) -> bool:
        return self._scope.since is None or at >= self._scope.since

    def _is_wanted(self, state: State) -> bool:
        return self._scope.wants_stream(state.tenant, state.owner)

    # -- Reservations ------------------------------------------------------

    def _admitted(self, state: State) -> None:
        if not self._is_wanted(state):
            return
        tenant, owner, day = _text(state.tenant), _text(state.owner), _text(state.day)
        life = ReservationLife(
            tenant=tenant,
            owner=owner,
            reservation_id=_uuid(state.reservation_id),
            kind=_text(state.kind or ReservationKind.INDEXING.value),
            outcome=ReservationState.PENDING.value,
            day=day,
            admitted_at=state.timestamp,
            reserved_quanta=_quanta(state.reserved_quanta),
            charged_quanta=_quanta(state.reserved_quanta),
        )
        ceiling = _quanta(state.ceiling_quanta)
        requests = _quanta(state.ceiling_requests)
        if not self._wants(life.admitted_at):
            return
        known = self._days.get(day)
        if known is None:
            known = self._days[day] = OwnerDay(
                tenant=tenant, owner=owner, day=day, ceiling_quanta=0, ceiling_requests=0
            )
        known.ceiling_quanta, known.ceiling_requests = ceiling, requests
        known.reserved_quanta += life.reserved_quanta
        self._open[life.reservation_id] = life

    def _settled(self, state: State) -> None:
        self._ended(state, ReservationState.SETTLED, usage_tokens=_quanta(state.usage_tokens))

    def _became_unknown(self, state: State) -> None:
        self._ended(state, ReservationState.UNKNOWN, reason=_text(state.reason))

    def _reconciled(self, state: State) -> None:
        by = f"reconciled by {_text(state.reconciled_by)}"
        self._ended(state, ReservationState.RECONCILED, reason=by)

    def _ended(
        self,
        state: State,
        outcome: ReservationState,
        *,
        usage_tokens: int | None = None,
        reason: str = "",
    ) -> None:
        charged = _quanta(state.charged_quanta)
        life = self._open.get(_uuid(state.reservation_id))
        if life is None:  # Before the days asked for, or never admitted: the audit's to tell.
            return
        life.outcome = outcome.value
        life.charged_quanta = charged
        life.ended_at = state.timestamp
        life.usage_tokens = usage_tokens
        life.reason = "; ".join(filter(None, (life.reason, reason)))
        if outcome is not ReservationState.UNKNOWN:  # What is unknown may be reconciled yet.
            del self._open[life.reservation_id]
            self._finish(life)

    def _finish(self, life: ReservationLife) -> None:
        cell = self._days[life.day].cells.setdefault((life.kind, life.outcome), Cell())
        cell.count += 1
        cell.charged_quanta += life.charged_quanta
        self._picture.reservations.add(life.admitted_at.isoformat(), life)

    # -- Selections and packs ----------------------------------------------

    def _selected(self, state: State) -> None:
        if not self._is_wanted(state):
            return
        entries, left_out = state.entries, state.left_out
        self._selection = SelectionShown(
            tenant=_text(state.tenant),
            owner=_text(state.owner),
            principal=_text(state.principal),
            session=_text(state.session),
            stage=_text(state.stage),
            kind=_text(state.kind),
            mode=_text(state.mode),
            mode_reason=_text(state.mode_reason),
            at=state.timestamp,
            limit=_quanta(state.k),
            filter=_filter(state.filter),
            embedding_tuple=_space(state.embedding_tuple),
            entries=tuple(map(_chosen, entries[:ENTRIES_OF_SELECTION_MAX])),
            entries_count=len(entries),
            left_out=_left_out(left_out),
            left_out_count=_quanta(state.left_out_count),
        )

    def _assembled(self, state: State) -> None:
        included, omitted = state.included, state.omitted
        pack = PackShown(
            number=_quanta(state.number),
            at=state.timestamp,
            digest=_text(state.digest),
            tokens=_quanta(state.tokens),
            token_budget=_quanta(state.token_budget),
            token_counter=_text(state.token_counter),
            included=tuple(_text(one) for one in included[:IDS_OF_PACK_MAX]),
            included_count=len(included),
            omitted=tuple((_text(one), _text(why)) for one, why in omitted[:IDS_OF_PACK_MAX]),
            omitted_count=len(omitted),
        )
        if self._selection is not None:
            self._selection.packs_count += 1
            self._selection.packs.append(pack)
            del self._selection.packs[:-PACKS_OF_SELECTION_MAX]

    # -- Entries -----------------------------------------------------------

    def _remembered(self, state: State) -> None:
        if self._is_wanted(state):
            at: datetime = state.timestamp
            self._entry = _Entry(state.tenant, state.owner, at, labels=_labels(state))
            self._picture.entries += self._wants(at)

    def _corrected(self, state: State) -> None:
        if self._entry is not None:
            self._entry.labels = _labels(state)
            self._entry.versions += 1
            self._picture.corrections += self._wants(state.timestamp)

    def _erased(self, state: State) -> None:
        if self._entry is None or not self._wants(state.timestamp):
            return
        kind, scope, sensitivity = self._entry.labels
        erasure = ErasureShown(
            tenant=_text(self._entry.tenant),
            owner=_text(self._entry.owner),
            entry_id=_uuid(state.entry_id),
            kind=kind,
            scope=scope,
            sensitivity=sensitivity,
            versions=self._entry.versions,
            remembered_at=self._entry.remembered_at,
            erased_at=state.timestamp,
            reason=_text(state.reason),
        )
        self._picture.erasures.add(erasure.erased_at.isoformat(), erasure)

    def _withdrawn(self, state: State) -> None:
        self._picture.withdrawals += self._is_wanted(state) and self._wants(state.timestamp)


@dataclass(slots=True)
class _Entry:
    """The entry whose stream is read."""

    tenant: str
    owner: str
    remembered_at: datetime
    labels: tuple[str, str, str]
    """Kind, scope and sensitivity of the current version."""
    versions: int = 1


def _labels(state: State) -> tuple[str, str, str]:
    return _text(state.kind), _text(state.scope), _text(state.sensitivity)


def _text(value: str) -> str:
    """Return a label without characters that hide or reorder text, and not endless."""
    if type(value) is not str:
        raise TypeError("not a label")
    shown = escaped(value[: TEXT_CHARACTERS_MAX + 1])
    return shown if len(value) <= TEXT_CHARACTERS_MAX else f"{shown[:TEXT_CHARACTERS_MAX]}…"


def _uuid(value: str) -> str:
    return str(UUID(value))


def _quanta(value: int) -> int:
    """Return a count or an amount; what no store can hold isn't one."""
    if type(value) is not int or not 0 <= value <= QUANTA_MAX:
        raise ValueError("not an amount")
    return value


def _chosen(state: State) -> ChosenEntry:
    return ChosenEntry(
        entry_id=_uuid(state.entry_id),
        version=_quanta(state.version),
        score=_score(state.score),
        dense_rank=_or_none(_quanta, state.dense_rank),
        dense_score=_or_none(_score, state.dense_score),
        sparse_rank=_or_none(_quanta, state.sparse_rank),
        sparse_score=_or_none(_score, state.sparse_score),
    )


def _score(value: float) -> float:
    if type(value) not in {float, int} or not isfinite(value):
        raise ValueError("not a score")
    return value


def _or_none(read: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else read(value)


def _left_out(runs: list[list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    kept: list[tuple[str, tuple[str, ...]]] = []
    room = LEFT_OUT_OF_SELECTION_MAX
    for reason, ids in runs:
        shown = tuple(_uuid(one) for one in ids.split()[:room])
        if shown:
            kept.append((_text(reason), shown))
            room -= len(shown)
    return tuple(kept)


def _filter(recorded: dict[str, list[str]]) -> str:
    return _text(
        "; ".join(f"{key}: {', '.join(values)}" for key, values in sorted(recorded.items()))
    )


def _space(recorded: dict[str, Any] | None) -> str:
    if recorded is None:
        return ""
    return _text(", ".join(f"{key} {value}" for key, value in sorted(recorded.items())))
