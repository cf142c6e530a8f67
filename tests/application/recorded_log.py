"""Logs for the auditor's tests: what aggregates decided, as raw rows, and rows tampered with."""

import random
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from eventsourcing.domain import Aggregate, AggregateEvent

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json
from remembrancer.domain.entry import EntryHeader, MemoryEntry
from remembrancer.domain.errors import RefusedError
from remembrancer.domain.hash_chain import GENESIS, event_hash
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import (
    AssembledPack,
    L3Selection,
    SelectedEntry,
    Selection,
)
from remembrancer.domain.recall import LeftOut, LeftOutReason, Ranks, RecallKind, RecallMode
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.sensitivity import Sensitivity

TENANT, OWNER = "acme", "ana"
CONFIGURATION = "c" * 64
BEGAN = datetime(2030, 1, 1, 23, 59, 30, tzinfo=UTC)


class RecordedLog:
    """Rows in the order in which they were decided."""

    def __init__(self) -> None:
        self.rows: list[RawEvent] = []
        self._mapper = ListedMapper()
        self._heads: dict[UUID, bytes] = {}

    def record(self, *aggregates: Aggregate) -> None:
        """Record what these have decided."""
        for aggregate in aggregates:
            for event in aggregate.collect_events():
                stored = self._mapper.to_stored_event(cast("AggregateEvent", event))
                stream = cast("UUID", stored.originator_id)
                before = self._heads.get(stream, GENESIS)
                own = event_hash(before, stored.topic, stored.state)
                self._heads[stream] = own
                self.rows.append(
                    (
                        *(len(self.rows) + 1, stream.bytes, stored.originator_version),
                        *(stored.topic, stored.state, before, own),
                    )
                )


def rechained(rows: Iterable[RawEvent]) -> list[RawEvent]:
    """Return rows with the hashes that somebody would give them who can rewrite the whole file."""
    heads: dict[bytes, bytes] = {}
    found: list[RawEvent] = []
    for position, key, version, topic, state, _, _ in rows:
        before = heads.get(key, GENESIS)
        heads[key] = event_hash(before, topic, state)
        found.append((position, key, version, topic, state, before, heads[key]))
    return found


def changed(rows: list[RawEvent], topic: str, number: int, /, **fields: Any) -> list[RawEvent]:
    """Return rows with other fields in the event of ``topic`` with this number, hashed anew."""
    places = [place for place, row in enumerate(rows) if row[3] == topic]
    place = places[number]
    position, key, version, _, state, before, own = rows[place]
    values = {**parse_canonical_json(state), **fields}
    told = {name: value for name, value in values.items() if value is not Ellipsis}
    tampered = [*rows]
    tampered[place] = (position, key, version, topic, canonical_json(told), before, own)
    return rechained(tampered)


def without(rows: list[RawEvent], topic: str, number: int = 0) -> list[RawEvent]:
    """Return rows without an event; what follows it in its stream moves up."""
    places = [place for place, row in enumerate(rows) if row[3] == topic]
    gone = rows[places[number]]
    left = [
        (row[0], row[1], row[2] - (row[1] == gone[1] and row[2] > gone[2]), *row[3:])
        for row in rows
        if row is not gone
    ]
    return rechained(left)


def swapped(
    rows: list[RawEvent], first: tuple[str, int], second: tuple[str, int]
) -> list[RawEvent]:
    """Return rows in which two events have changed their positions."""
    one, two = (
        [place for place, row in enumerate(rows) if row[3] == topic][number]
        for topic, number in (first, second)
    )
    other = [*rows]
    other[one] = (rows[two][0], *rows[one][1:])
    other[two] = (rows[one][0], *rows[two][1:])
    return other


def twice(rows: list[RawEvent], topic: str, number: int = 0) -> list[RawEvent]:
    """Return rows with an event once more, at the end of its stream."""
    event = [row for row in rows if row[3] == topic][number]
    version = max(row[2] for row in rows if row[1] == event[1]) + 1
    return rechained([*rows, (len(rows) + 1, event[1], version, *event[3:])])


def moved(rows: list[RawEvent], topic: str) -> list[RawEvent]:
    """Return rows in which a stream has another's id."""
    key = next(row[1] for row in rows if row[3] == topic)
    return [(row[0], bytes(16) if row[1] == key else row[1], *row[2:]) for row in rows]


def altered(rows: list[RawEvent]) -> list[RawEvent]:
    """Return rows with one byte of one state changed, and nothing else."""
    position, key, version, topic, state, before, own = rows[0]
    return [(position, key, version, topic, state.replace(b"7", b"8"), before, own), *rows[1:]]


def stamped(at: datetime) -> dict[str, str]:
    """Return a time as it is stored."""
    return {"_data_": at.isoformat(), "_type_": "datetime_iso"}


class Lives:
    """Random lives of everything, as only the domain decides them; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - a test's, not a secret
        self._at = BEGAN
        self.log = RecordedLog()
        self._entries: list[MemoryEntry] = []
        self._stages: list[L3Selection] = []
        self._ledgers = {owner: ReservationLedger.unused(TENANT, owner) for owner in ("ana", "bo")}
        self._facts: dict[str, list[Any]] = {owner: [] for owner in self._ledgers}
        self._contexts: dict[str, CacheContext] = {}
        self._prepared: list[tuple[str, UUID, int]] = []

    def live(self, deeds: int) -> list[RawEvent]:
        """Let so many things be tried; refusals are part of it."""
        acts = [self._remember, self._correct, self._erase, self._select, self._pack]
        acts += [self._spend] * 5 + [self._bind]
        for _ in range(deeds):
            self._at += timedelta(seconds=self._chance.choice([0, 0.4, 1, 5, 16, 3_000]))
            with suppress(RefusedError):
                self._chance.choice(acts)()
        return self.log.rows

    def _hex(self) -> str:
        return self._chance.randbytes(32).hex()

    def _uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    def _labels(self, entry_id: UUID, version: int) -> EntryHeader:
        return EntryHeader(
            tenant=TENANT,
            owner=self._chance.choice(["ana", "bo"]),
            entry_id=EntryId(entry_id),
            version=version,
            scope=self._chance.choice(["project/älpha", "x"]),
            kind="note",
            sensitivity=self._chance.choice(list(Sensitivity)),
        )

    def _remember(self) -> None:
        entry = MemoryEntry.remember(
            self._labels(self._uuid(), 1), digest=self._hex(), length=7, at=self._at
        )
        self._entries.append(entry)
        self.log.record(entry)

    def _correct(self) -> None:
        if self._entries:
            entry = self._chance.choice(self._entries)
            entry.correct(
                self._labels(entry.entry_id, entry.text_version + 1),
                digest=self._hex(),
                length=9,
                reason=self._chance.choice(["outdated", "In so many words."]),
                at=self._at,
            )
            self.log.record(entry)

    def _erase(self) -> None:
        if self._entries:
            entry = self._chance.choice(self._entries)
            entry.erase(reason="asked", at=self._at)
            self.log.record(entry)

    def _select(self) -> None:
        chosen = self._chance.sample(self._entries, min(3, len(self._entries)))
        entries = tuple(
            SelectedEntry(
                entry_id=one.entry_id,
                version=one.text_version,
                digest=one.digests[-1],
                score=self._chance.choice([0.0, 1 / 61, 1e-07]),
                ranks=Ranks(sparse_rank=1, sparse_score=0.25),
            )
            for one in chosen
        )
        stage = L3Selection.select(a_selection(entries, stage=str(self._uuid())), at=self._at)
        self._stages.append(stage)
        self.log.record(stage)

    def _pack(self) -> None:
        if self._stages:
            stage = self._chance.choice(self._stages)
            ids = [str(one.entry_id) for one in stage.selection.entries]
            kept = [one for one in ids if self._chance.random() < 0.5]
            stage.assemble(
                a_pack(
                    number=len(stage.packs) + 1,
                    digest=self._hex(),
                    included=("rules", *kept),
                    omitted=tuple((one, "budget") for one in ids if one not in kept),
                ),
                at=max(self._at, stage.modified_on),
            )
            self.log.record(stage)

    def _spend(self) -> None:
        owner = self._chance.choice(["ana", "bo"])
        ledger, facts = self._ledgers[owner], self._facts[owner]
        try:
            self._decide(owner, ledger, facts)
        finally:
            facts += ledger.pending_events
            self.log.record(ledger)
        self._record_prepared(owner)

    def _decide(self, owner: str, ledger: ReservationLedger, facts: list[Any]) -> None:
        clock = self._at - timedelta(seconds=self._chance.choice([0, 0, 0, 90_000]))
        known = list(dict.fromkeys(fact.reservation_id for fact in facts))
        one = self._chance.choice(known[-6:]) if known else self._uuid()
        earlier = reservation_in(facts, one)
        match self._chance.randrange(6):
            case 0 | 1 | 2:
                kind = self._chance.choice(list(ReservationKind))
                ledger.admit(
                    ReservationRequest(
                        reservation_id=self._uuid(),
                        kind=kind,
                        request_digest=self._hex(),
                        charge_quanta=self._chance.randrange(1, 60),
                    ),
                    terms=some_terms(self._chance.choice([100, 500]), 20),
                    earlier=None,
                    at=clock,
                )
            case 3:
                settled = ledger.settle(
                    one, charged_quanta=1, usage_tokens=1, earlier=earlier, at=clock
                )
                if ledger.pending_events and settled.kind is ReservationKind.QUERY:
                    self._settled(owner, one)
            case 4:
                reason = self._chance.choice(list(UnknownReason)[1:])
                ledger.mark_unknown(one, reason=reason, earlier=earlier, at=clock)
            case _:
                evidence = ReconciliationEvidence(digest="e" * 64, stated_quanta=0, by="op")
                ledger.reconcile(
                    one, charged_quanta=0, evidence=evidence, earlier=earlier, at=clock
                )

    def _bind(self) -> None:
        owner = self._chance.choice(["ana", "bo"])
        context = self._contexts.get(owner)
        if context is None:
            context = self._contexts[owner] = CacheContext.bind(
                *(TENANT, owner, "cli"),
                context_digest="a" * 64,
                configuration_digest=CONFIGURATION,
                at=self._at,
            )
        elif self._chance.random() < 0.3:
            context.withdraw(reason="evidence_revoked", at=self._at)
        else:
            context.replace(
                context_digest=self._hex(), configuration_digest=CONFIGURATION, at=self._at
            )
        self.log.record(context)

    def _settled(self, owner: str, reservation: UUID) -> None:
        context = self._contexts.get(owner)
        if context is not None and context.context_digest is not None:
            self._prepared.append((owner, reservation, context.generation))

    def _record_prepared(self, owner: str) -> None:
        """Record vectors whose reservation was made in the generation that is current still."""
        context = self._contexts.get(owner)
        for one, reservation, generation in self._prepared:
            if one == owner and context is not None and self._began_before(context, reservation):
                context.record_prepared(
                    generation, reservation_id=reservation, vectors=2, at=self._at
                )
                self.log.record(context)
        self._prepared = [entry for entry in self._prepared if entry[0] != owner]

    def _began_before(self, context: CacheContext, reservation: UUID) -> bool:
        spelt = reservation.hex.encode()
        admitted = next(
            row[0]
            for row in self.log.rows
            if row[3] == ReservationLedger.ReservationAdmitted.TOPIC and spelt in row[4]
        )
        begun = max(
            row[0]
            for row in self.log.rows
            if row[1] == context.id.bytes and row[3] != CacheContext.QueryVectorsPrepared.TOPIC
        )
        return begun < admitted


def some_terms(quanta: int, requests: int) -> SpendTerms:
    """Return terms with these ceilings."""
    return SpendTerms(
        ceilings=Ceilings(quanta_per_day=quanta, requests_per_day=requests),
        mechanism_version="semantic-query@1",
        configuration_digest=CONFIGURATION,
        embedding_tuple_digest="d" * 64,
        pricing_digest="e" * 64,
    )


def a_selection(entries: tuple[SelectedEntry, ...], *, stage: str = "plan") -> Selection:
    """Return a selection of these entries."""
    return Selection(
        tenant=TENANT,
        owner=OWNER,
        principal="agent-7",
        session="session-1",
        stage=stage,
        kind=RecallKind.DELIBERATE,
        entries=entries,
        mode=RecallMode.HYBRID,
        mode_reason="",
        left_out=(LeftOut(entry_id=EntryId(UUID(int=3)), reason=LeftOutReason.STALE),),
        left_out_count=7,
        limit=10,
        filter={
            "tenant": (TENANT,),
            "owner": (OWNER,),
            "scopes": ("project", "x"),
            "sensitivity": tuple(one.value for one in Sensitivity),
        },
        embedding_tuple=None,
        sealed_query_vector=None,
    )


def a_pack(
    *,
    number: int,
    digest: str,
    included: tuple[str, ...],
    omitted: tuple[tuple[str, str], ...],
) -> AssembledPack:
    """Return the record of a pack."""
    return AssembledPack(
        number=number,
        digest=digest,
        label="0123456789abcdef",
        format_version=1,
        included=included,
        omitted=omitted,
        token_budget=2_000,
        tokens=311,
        token_counter="test@1",  # noqa: S106 - counts tokens
        items_digest="d" * 64,
    )
