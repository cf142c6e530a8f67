"""Each way in which a log could lie, and the invariant that says so.

Whoever tampers here can rewrite the whole file: the chain of hashes is always made to fit, so that
only the rules are left to find it.  What the chain alone finds comes first.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.application.recorded_log import (
    BEGAN,
    CONFIGURATION,
    OWNER,
    TENANT,
    RecordedLog,
    a_pack,
    a_selection,
    altered,
    changed,
    moved,
    rechained,
    some_terms,
    stamped,
    swapped,
    twice,
    without,
)

from remembrancer.application.audit.finding import AuditScope
from remembrancer.application.audit.invariants import INVARIANTS
from remembrancer.application.audit.records import audit_records
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.bounds import LEASE_S
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.entry import EntryHeader, MemoryEntry
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import L3Selection, SelectedEntry
from remembrancer.domain.recall import Ranks
from remembrancer.domain.reservation import (
    ReconciliationEvidence,
    Reservation,
    ReservationKind,
    ReservationRequest,
    UnknownReason,
)
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.sensitivity import Sensitivity

Rows = list[RawEvent]
REMEMBERED = MemoryEntry.EntryRemembered.TOPIC
CORRECTED = MemoryEntry.EntryCorrected.TOPIC
ERASED = MemoryEntry.EntryErased.TOPIC
SELECTED = L3Selection.L3EntriesSelected.TOPIC
PACKED = L3Selection.ContextPackAssembled.TOPIC
ADMITTED = ReservationLedger.ReservationAdmitted.TOPIC
SETTLED = ReservationLedger.ReservationSettled.TOPIC
UNKNOWN = ReservationLedger.ReservationBecameUnknown.TOPIC
RECONCILED = ReservationLedger.ReservationReconciled.TOPIC
BOUND = CacheContext.CacheContextBound.TOPIC
PREPARED = CacheContext.QueryVectorsPrepared.TOPIC
REPLACED = CacheContext.CacheContextReplaced.TOPIC
WITHDRAWN = CacheContext.AdmissionWithdrawn.TOPIC
KEPT, GONE = EntryId(UUID(int=1)), EntryId(UUID(int=2))
QUERY, LOST, BATCH, LATE = (UUID(int=number) for number in range(10, 14))
DAY = BEGAN.date().isoformat()
NEXT_DAY = (BEGAN + timedelta(days=1)).date().isoformat()


def _header(entry_id: EntryId, version: int = 1) -> EntryHeader:
    return EntryHeader(
        tenant=TENANT,
        owner=OWNER,
        entry_id=entry_id,
        version=version,
        scope="project/alpha",
        kind="note",
        sensitivity=Sensitivity.INTERNAL,
    )


def _at(seconds: float) -> Any:
    return BEGAN + timedelta(seconds=seconds)


class _Ledger:
    def __init__(self, log: RecordedLog) -> None:
        self._log = log
        self._facts: list[Any] = []
        self.ledger = ReservationLedger.unused(TENANT, OWNER)

    def earlier(self, one: UUID) -> Reservation | None:
        return reservation_in(self._facts, one)

    def admit(self, one: UUID, kind: ReservationKind, seconds: float) -> None:
        request = ReservationRequest(
            reservation_id=one, kind=kind, request_digest="a" * 64, charge_quanta=40
        )
        self.ledger.admit(request, terms=some_terms(100, 3), earlier=None, at=_at(seconds))
        self.record()

    def record(self) -> None:
        self._facts += self.ledger.pending_events
        self._log.record(self.ledger)


def sound() -> Rows:
    """Return a log with something of everything; it spans midnight."""
    log = RecordedLog()
    kept = MemoryEntry.remember(_header(KEPT), digest="1" * 64, length=7, at=_at(0))
    kept.correct(_header(KEPT, 2), digest="2" * 64, length=9, reason="outdated", at=_at(1))
    gone = MemoryEntry.remember(_header(GONE), digest="3" * 64, length=7, at=_at(1))
    log.record(kept, gone)
    entries = tuple(
        SelectedEntry(entry_id=one, version=version, digest=digest, score=0.5, ranks=Ranks())
        for one, version, digest in ((KEPT, 2, "2" * 64), (GONE, 1, "3" * 64))
    )
    stage = L3Selection.select(a_selection(entries), at=_at(2))
    log.record(stage)
    pack = a_pack(
        number=1,
        digest="c" * 64,
        included=("rules", str(KEPT), str(GONE)),
        omitted=(),
    )
    stage.assemble(pack, at=_at(3))
    log.record(stage)
    gone.erase(reason="asked", at=_at(4))
    log.record(gone)
    other = a_pack(
        number=2, digest="e" * 64, included=("rules", str(KEPT)), omitted=((str(GONE), "erased"),)
    )
    stage.assemble(other, at=_at(5))
    log.record(stage)
    _spend(log)
    return log.rows


def _spend(log: RecordedLog) -> None:
    names = (TENANT, OWNER, "cli")
    context = CacheContext.bind(
        *names, context_digest="a" * 64, configuration_digest=CONFIGURATION, at=_at(5)
    )
    log.record(context)
    books = _Ledger(log)
    ledger = books.ledger
    books.admit(QUERY, ReservationKind.QUERY, 6)
    ledger.settle(QUERY, charged_quanta=3, usage_tokens=7, earlier=None, at=_at(7))
    books.record()
    context.record_prepared(1, reservation_id=QUERY, vectors=2, at=_at(8))
    context.replace(context_digest="b" * 64, configuration_digest=CONFIGURATION, at=_at(9))
    context.withdraw(reason="evidence_revoked", at=_at(10))
    log.record(context)
    books.admit(LOST, ReservationKind.INDEXING, 11)
    books.admit(BATCH, ReservationKind.INDEXING, 20)
    ledger.expire(at=_at(27))
    books.record()
    evidence = ReconciliationEvidence(digest="e" * 64, stated_quanta=5, by="op")
    earlier = books.earlier(LOST)
    ledger.reconcile(LOST, charged_quanta=10, evidence=evidence, earlier=earlier, at=_at(28))
    ledger.mark_unknown(BATCH, reason=UnknownReason.TIMEOUT, earlier=None, at=_at(29))
    books.record()
    books.admit(LATE, ReservationKind.QUERY, 31)
    ledger.settle(LATE, charged_quanta=3, usage_tokens=7, earlier=None, at=_at(32))
    books.record()


Tamper = Callable[[Rows], Rows]
CASES: dict[str, tuple[str, Tamper]] = {
    # The chain and the form
    "a byte of a state": ("hash-chain", altered),
    "an event taken out": ("hash-chain", lambda rows: [row for row in rows if row[3] != CORRECTED]
                           + [(99, rows[0][1], 2, *rows[2][3:])]),
    "a version left out": ("versions-without-gaps",
                           lambda rows: [row for row in rows if row[3] != ADMITTED]),
    "two events swapped": ("versions-without-gaps",
                           lambda rows: swapped(rows, (REMEMBERED, 0), (CORRECTED, 0))),
    "an event of a newer release": ("known-events",
                                    lambda rows: [*rows, (99, bytes(16), 1, "remembrancer.new",
                                                          b"{}", bytes(32), bytes(32))]),
    "a field too many": ("canonical-events", lambda rows: changed(rows, ERASED, 0, more=1)),
    "a field too few": ("canonical-events", lambda rows: changed(rows, ERASED, 0, reason=...)),
    "a field of another type": ("canonical-events",
                                lambda rows: changed(rows, SETTLED, 0, charged_quanta="3")),
    "a stream under another id": ("stream-of-its-key",
                                  lambda rows: rechained(moved(rows, ADMITTED))),
    "another aggregate's name": ("stream-of-its-key",
                                 lambda rows: changed(rows, BOUND, 0, originator_topic="x")),
    "an earlier time": ("time-goes-forward",
                        lambda rows: changed(rows, SETTLED, 0, timestamp=stamped(_at(5)))),
    # Entries
    "erased twice": ("entry-life", lambda rows: twice(rows, ERASED)),
    "no beginning": ("entry-life", lambda rows: without(rows, REMEMBERED)),
    "another entry's event": ("entry-life",
                              lambda rows: changed(rows, ERASED, 0,
                                                   entry_id={"_data_": KEPT.hex,
                                                             "_type_": "uuid_hex"})),
    "no digest": ("entry-labels", lambda rows: changed(rows, CORRECTED, 0, digest="x")),
    "no length": ("entry-labels", lambda rows: changed(rows, CORRECTED, 0, length=0)),
    "an unknown sensitivity": ("entry-labels",
                               lambda rows: changed(rows, CORRECTED, 0, sensitivity="secret")),
    "words in the log": ("no-words-in-log",
                         lambda rows: changed(rows, ERASED, 0, reason="Ana asked for it.")),
    # Selections and packs
    "a pack without a selection": ("selection-before-pack", lambda rows: without(rows, SELECTED)),
    "a pack's number": ("selection-before-pack", lambda rows: changed(rows, PACKED, 1, number=3)),
    "selected again": ("selection-before-pack", lambda rows: twice(rows, SELECTED)),
    "more than asked for": ("selection-is-sound", lambda rows: changed(rows, SELECTED, 0, k=1)),
    "an unknown mode": ("selection-is-sound",
                        lambda rows: changed(rows, SELECTED, 0, mode="guessed")),
    "an unknown reason": ("selection-is-sound",
                          lambda rows: changed(rows, SELECTED, 0,
                                               left_out=[["whim", UUID(int=3).hex]])),
    "left out, not counted": ("selection-is-sound",
                              lambda rows: changed(rows, SELECTED, 0, left_out_count=0)),
    "a version that never was": ("selected-was-remembered",
                                 lambda rows: changed(rows, CORRECTED, 0, digest="4" * 64)),
    "another tenant's entry": ("selected-was-remembered",
                               lambda rows: changed(rows, REMEMBERED, 1, tenant="other")),
    "selected before it was": ("selected-was-remembered",
                               lambda rows: swapped(rows, (SELECTED, 0), (REMEMBERED, 1))),
    "an entry left unsaid": ("included-within-selected",
                             lambda rows: changed(rows, PACKED, 1, omitted=[])),
    "another order": ("included-within-selected",
                      lambda rows: changed(rows, PACKED, 0,
                                           included=["rules", str(GONE), str(KEPT)])),
    "an entry before the items": ("included-within-selected",
                                  lambda rows: changed(rows, PACKED, 0,
                                                       included=[str(KEPT), "rules", str(GONE)])),
    "included and omitted": ("included-within-selected",
                             lambda rows: changed(rows, PACKED, 0,
                                                  omitted=[[str(KEPT), "budget"]])),
    "omitted on a whim": ("included-within-selected",
                          lambda rows: changed(rows, PACKED, 1, omitted=[[str(GONE), "whim"]])),
    "above the budget": ("pack-within-budget",
                         lambda rows: changed(rows, PACKED, 0, tokens=2_001)),
    "the same pack again": ("pack-within-budget",
                            lambda rows: changed(rows, PACKED, 1, digest="c" * 64)),
    # Ledgers
    "settled, never admitted": ("settlement-within-reservation",
                                lambda rows: without(rows, ADMITTED, 3)),
    "settled twice": ("settlement-within-reservation", lambda rows: twice(rows, SETTLED, 1)),
    "settled after the lease": ("settlement-within-reservation",
                                lambda rows: changed(rows, SETTLED, 1,
                                                     timestamp=stamped(_at(31 + LEASE_S)))),
    "charged above the reservation": ("settlement-within-reservation",
                                      lambda rows: changed(rows, SETTLED, 1, charged_quanta=41)),
    "charged nothing": ("settlement-within-reservation",
                        lambda rows: changed(rows, SETTLED, 1, charged_quanta=0)),
    "another reservation's amount": ("settlement-within-reservation",
                                     lambda rows: changed(rows, SETTLED, 1, reserved_quanta=41)),
    "no usage": ("settlement-within-reservation",
                 lambda rows: changed(rows, SETTLED, 1, usage_tokens=0)),
    "settled after unknown": ("settlement-within-reservation",
                              lambda rows: changed(rows, SETTLED, 1,
                                                   reservation_id={"_data_": BATCH.hex,
                                                                   "_type_": "uuid_hex"})),
    "settled on today's day": ("lease-and-day",
                               lambda rows: changed(rows, SETTLED, 0, day=NEXT_DAY)),
    "admitted on another day": ("lease-and-day",
                                lambda rows: changed(rows, ADMITTED, 0, day=NEXT_DAY)),
    "a longer lease": ("lease-and-day", lambda rows: changed(rows, ADMITTED, 0, lease_s=16)),
    "no deadline": ("lease-and-day", lambda rows: changed(rows, ADMITTED, 0, deadline=...)),
    "an indexing event with a kind": ("lease-and-day",
                                      lambda rows: changed(rows, ADMITTED, 1, kind="indexing")),
    "an id used again": ("reservation-first",
                         lambda rows: changed(rows, ADMITTED, 3,
                                              reservation_id={"_data_": QUERY.hex,
                                                              "_type_": "uuid_hex"})),
    "a ledger's end first": ("reservation-first",
                             lambda rows: [row for row in rows if row[3] != ADMITTED]),
    "another owner's event": ("reservation-first",
                              lambda rows: changed(rows, SETTLED, 0, owner="bo")),
    "two queries at once": ("one-pending-query",
                            lambda rows: without(
                                changed(rows, ADMITTED, 1, kind="query",
                                        deadline=stamped(_at(11 + LEASE_S))), SETTLED)),
    "an expired one before it": ("expired-becomes-unknown-first",
                                 lambda rows: without(rows, UNKNOWN)),
    "above the money": ("within-ceilings",
                        lambda rows: changed(rows, ADMITTED, 1, ceiling_quanta=42)),
    "above the requests": ("within-ceilings",
                           lambda rows: changed(rows, ADMITTED, 1, ceiling_requests=1)),
    "a charge of nothing": ("within-ceilings",
                            lambda rows: changed(rows, ADMITTED, 0, reserved_quanta=0)),
    "other totals": ("totals-add-up",
                     lambda rows: changed(rows, ADMITTED, 2, day_quanta_before=0)),
    "a settlement taken out": ("totals-add-up", lambda rows: without(rows, SETTLED)),
    "unknown for less": ("unknown-keeps-charge",
                         lambda rows: changed(rows, UNKNOWN, 0, charged_quanta=39)),
    "unknown on a whim": ("unknown-keeps-charge",
                          lambda rows: changed(rows, UNKNOWN, 0, reason="whim")),
    "unknown twice": ("unknown-keeps-charge", lambda rows: twice(rows, UNKNOWN)),
    "expired too early": ("unknown-keeps-charge",
                          lambda rows: changed(rows, UNKNOWN, 1, reason="expired")),
    "reconciled under the evidence": ("reconciled-with-evidence",
                                      lambda rows: changed(rows, RECONCILED, 0, stated_quanta=11)),
    "reconciled upwards": ("reconciled-with-evidence",
                           lambda rows: changed(rows, RECONCILED, 0, charged_quanta=40)),
    "reconciled twice": ("reconciled-with-evidence", lambda rows: twice(rows, RECONCILED)),
    "reconciled, never unknown": ("reconciled-with-evidence", lambda rows: without(rows, UNKNOWN)),
    # Cache contexts
    "a generation left out": ("generations",
                              lambda rows: changed(rows, REPLACED, 0, generation=3)),
    "replaced by itself": ("generations",
                           lambda rows: changed(rows, REPLACED, 0, context_digest="a" * 64)),
    "withdrawn twice": ("generations", lambda rows: twice(rows, WITHDRAWN)),
    "another surface's event": ("generations",
                                lambda rows: changed(rows, REPLACED, 0, surface="chat")),
    "prepared for an older generation": ("prepared-in-same-generation",
                                         lambda rows: twice(rows, PREPARED)),
    "prepared for another": ("prepared-in-same-generation",
                             lambda rows: changed(rows, PREPARED, 0, generation=2)),
    "too many vectors": ("prepared-in-same-generation",
                         lambda rows: changed(rows, PREPARED, 0, vectors=5)),
    "cached, never settled": ("cached-after-settlement", lambda rows: without(rows, SETTLED)),
    "cached before settlement": ("cached-after-settlement",
                                 lambda rows: swapped(rows, (SETTLED, 0), (PREPARED, 0))),
    "cached from an unknown one": ("cached-after-settlement",
                                   lambda rows: changed(rows, PREPARED, 0,
                                                        reservation_id={"_data_": BATCH.hex,
                                                                        "_type_": "uuid_hex"})),
    "cached by another owner": ("cached-after-settlement",
                                lambda rows: changed(rows, BOUND, 0, owner="bo")),
    "another configuration": ("cached-after-settlement",
                              lambda rows: changed(rows, BOUND, 0, configuration_digest="f" * 64)),
    "reserved before the generation": ("cached-after-settlement",
                                       lambda rows: swapped(rows, (BOUND, 0), (ADMITTED, 0))),
    "cached twice": ("cached-after-settlement",
                     lambda rows: twice(without(without(rows, WITHDRAWN), REPLACED), PREPARED)),
}  # fmt: skip


def test_the_log_is_sound_before_anybody_tampers() -> None:
    assert audit_records(sound()) == []


@pytest.mark.parametrize("case", CASES)
def test_tampering_is_found(case: str) -> None:
    invariant, tamper = CASES[case]

    findings = audit_records(tamper(sound()))

    assert invariant in {one.invariant for one in findings}
    assert {one.invariant for one in findings} <= {one.name for one in INVARIANTS}


def test_a_finding_names_the_place() -> None:
    rows = changed(sound(), SETTLED, 1, charged_quanta=41)

    [finding] = audit_records(rows)

    assert finding.stream == ReservationLedger.create_id(TENANT, OWNER)
    assert (finding.version, finding.position) == (9, next(
        row[0] for row in rows[::-1] if row[3] == SETTLED
    ))  # fmt: skip
    assert (finding.tenant, finding.owner, finding.at) == (TENANT, OWNER, _at(32))
    assert (finding.expected, finding.found) == ("a charge of 1 to 40", "41")


def test_findings_about_earlier_events_can_be_left_out() -> None:
    rows = changed(sound(), SETTLED, 1, charged_quanta=41)

    assert audit_records(rows, scope=AuditScope(since=_at(32)))
    assert not audit_records(rows, scope=AuditScope(since=_at(33)))


def test_nothing_is_concluded_from_a_stream_that_is_not_understood() -> None:
    """One finding for one event of a newer release, whatever follows it."""
    rows = [
        (*row[:3], "remembrancer.newer" if row[3] == CORRECTED else row[3], *row[4:])
        for row in sound()
        if row[3] in {REMEMBERED, CORRECTED}
    ]

    findings = audit_records(rechained(rows))

    assert [one.invariant for one in findings] == ["known-events"]
