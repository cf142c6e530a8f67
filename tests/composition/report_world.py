"""A log as raw rows, as long as a test wants it, told stream by stream.

The rows are spelt as the stores spell them; what isn't needed to draw a page (hashes) is empty.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from remembrancer.application.audit.finding import AuditReport, Finding
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.reservation_ledger import ReservationLedger

START = datetime(2030, 1, 31, 8, 0, tzinfo=UTC)
SPACE = UUID(int=1)
_spelt = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
HOSTILE = [
    "</script><script>globalThis.pwned=1</script>",
    "<img src=x onerror=globalThis.pwned=1>",
    '"><svg onload=globalThis.pwned=1>',
    "'><b>bold</b>",
    "<!--<script>",
    "{{data}}",
    "javascript:globalThis.pwned=1",
    "&lt;&amp;&#60;",
    "line\u2028end\u2029",
    "\u202egnihtyna",
    "__proto__",
    "constructor",
]
"""Names that a host may give, and that mean something to a browser."""


class Rows:
    """Makes raw rows, with positions and versions as they come."""

    def __init__(self) -> None:
        self.position = 0
        self._versions: dict[UUID, int] = {}

    def row(self, stream: UUID, topic: str, at: datetime, **state: Any) -> RawEvent:
        """Return the next event of a stream."""
        self.position += 1
        version = self._versions[stream] = self._versions.get(stream, 0) + 1
        stored = {name: _typed(value) for name, value in state.items()}
        data = _spelt({**stored, "timestamp": _typed(at)}).encode()
        return (self.position, stream.bytes, version, topic, data, b"", b"")

    def reservation(
        self,
        tenant: str,
        owner: str,
        number: int,
        at: datetime,
        *,
        outcome: str = "settled",
        kind: str = "query",
        charged: int = 400,
        ceiling: int = 100_000,
    ) -> Iterator[RawEvent]:
        """Iterate over the events of one reservation, which sets 900 quanta aside."""
        reserved = 900
        ledger = ReservationLedger
        stream = ledger.create_id(tenant, owner)
        who = {
            "tenant": tenant,
            "owner": owner,
            "reservation_id": uuid5(SPACE, f"{tenant}/{owner}/{number}"),
            "day": at.date().isoformat(),
        }
        queried = {"kind": kind, "deadline": at + timedelta(seconds=15)}
        yield self.row(
            stream,
            ledger.ReservationAdmitted.TOPIC,
            at,
            **who,
            request_digest="0" * 64,
            reserved_quanta=reserved,
            lease_s=15,
            day_quanta_before=0,
            day_requests_before=0,
            ceiling_quanta=ceiling,
            ceiling_requests=1_000,
            mechanism_version="semantic-query@1",
            configuration_digest="1" * 64,
            embedding_tuple_digest="2" * 64,
            pricing_digest="3" * 64,
            **(queried if kind == "query" else {}),
        )
        later = at + timedelta(seconds=2)
        if outcome == "settled":
            yield self.row(
                stream,
                ledger.ReservationSettled.TOPIC,
                later,
                **who,
                reserved_quanta=reserved,
                charged_quanta=charged,
                usage_tokens=12,
            )
        if outcome in {"unknown", "reconciled"}:
            yield self.row(
                stream,
                ledger.ReservationBecameUnknown.TOPIC,
                later,
                **who,
                charged_quanta=reserved,
                reason="timeout",
            )
        if outcome == "reconciled":
            yield self.row(
                stream,
                ledger.ReservationReconciled.TOPIC,
                at + timedelta(days=1),
                **who,
                unknown_quanta=reserved,
                charged_quanta=charged,
                stated_quanta=charged,
                evidence_digest="4" * 64,
                reconciled_by="ana",
            )

    def selection(
        self,
        tenant: str,
        owner: str,
        session: str,
        at: datetime,
        *,
        stage: str = "plan",
        entries: int = 3,
        left_out: int = 4,
        items: tuple[str, ...] = ("rules",),
    ) -> Iterator[RawEvent]:
        """Iterate over a selection and one pack of it."""
        stream = L3Selection.create_id(tenant, session, stage)
        ids = [str(uuid5(stream, str(number))) for number in range(entries)]
        others = " ".join(uuid5(stream, f"out {number}").hex for number in range(left_out))
        yield self.row(
            stream,
            L3Selection.L3EntriesSelected.TOPIC,
            at,
            originator_topic=L3Selection.TOPIC,
            tenant=tenant,
            owner=owner,
            principal="agent-7",
            session=session,
            stage=stage,
            kind="deliberate",
            entries=[
                {
                    "entry_id": one,
                    "version": 1,
                    "digest": "5" * 64,
                    "score": 1 / (61 + rank),
                    "dense_rank": rank + 1,
                    "dense_score": 0.75,
                    "sparse_rank": None,
                    "sparse_score": None,
                }
                for rank, one in enumerate(ids)
            ],
            mode="dense",
            mode_reason="no_words",
            left_out=[["rank", others]] if left_out else [],
            left_out_count=left_out,
            k=entries,
            filter={"owner": [owner], "tenant": [tenant]},
            embedding_tuple=None,
            query_embedding=None,
        )
        yield self.row(
            stream,
            L3Selection.ContextPackAssembled.TOPIC,
            at + timedelta(seconds=1),
            number=1,
            digest="6" * 64,
            label="ab" * 8,
            format_version=1,
            included=[*items, *ids[1:]],
            omitted=[[one, "budget"] for one in ids[:1]],
            token_budget=800,
            tokens=640,
            token_counter="wordllama@1",  # noqa: S106  # tokens of a text
            items_digest="7" * 64,
        )

    def entry(
        self,
        tenant: str,
        owner: str,
        number: int,
        at: datetime,
        *,
        scope: str = "project/alpha",
        kind: str = "note",
        erased: bool = True,
    ) -> Iterator[RawEvent]:
        """Iterate over the life of one entry."""
        entry_id = uuid5(SPACE, f"entry {tenant}/{owner}/{number}")
        stream = MemoryEntry.create_id(tenant, entry_id)
        yield self.row(
            stream,
            MemoryEntry.EntryRemembered.TOPIC,
            at,
            originator_topic=MemoryEntry.TOPIC,
            tenant=tenant,
            owner=owner,
            entry_id=entry_id,
            digest="8" * 64,
            length=20,
            scope=scope,
            kind=kind,
            sensitivity="internal",
        )
        if erased:
            yield self.row(
                stream,
                MemoryEntry.EntryErased.TOPIC,
                at + timedelta(hours=1),
                entry_id=entry_id,
                reason="outdated",
            )


def small_log() -> Iterator[RawEvent]:
    """Iterate over a log with something of everything, and with hostile names."""
    rows = Rows()
    for day in range(4):
        at = START + timedelta(days=day)
        for number, outcome in enumerate(("settled", "unknown", "reconciled", "pending")):
            yield from rows.reservation(
                "acme", "ana", 10 * day + number, at + timedelta(hours=number), outcome=outcome
            )
    yield from rows.reservation("acme", "bob", 1, START, kind="indexing", ceiling=500)
    for number in range(12):
        yield from rows.selection(
            "acme", "ana", f"session-{number:02}", START + timedelta(hours=number)
        )
    for number in range(3):
        yield from rows.entry("acme", "bob", number, START)
    for number, name in enumerate(HOSTILE):
        yield from rows.reservation(name, name, number, START + timedelta(days=1))
        yield from rows.selection(
            name, name, name, START + timedelta(days=2), stage=name, items=(name,)
        )
        yield from rows.entry(name, name, number, START, scope=name, kind=name)


def long_log(events: int) -> Iterator[RawEvent]:
    """Iterate over a log of about so many events: forty owners, two years."""
    rows = Rows()
    owners, reservations = 40, events * 8 // 10 // 2 // 40
    outcomes = ("settled",) * 17 + ("unknown", "reconciled", "pending")
    for owner in range(owners):
        for number in range(reservations):
            yield from rows.reservation(
                "acme",
                f"owner-{owner:02}",
                number,
                START + timedelta(days=730) * (number / reservations) + timedelta(minutes=owner),
                outcome=outcomes[number % len(outcomes)],
                kind="query" if number % 3 else "indexing",
                charged=100 + 37 * number % 700,
                ceiling=3_000,
            )
    selections = (events - rows.position) // 4
    for number in range(selections):
        yield from rows.selection(
            "acme",
            f"owner-{number % owners:02}",
            f"session-{number:05}",
            START + timedelta(minutes=number),
            entries=10,
            left_out=40,
        )
    number = 0
    while rows.position < events:
        number += 1
        at = START + timedelta(minutes=number)
        yield from rows.entry("acme", f"owner-{number % owners:02}", number, at)


def report_of(findings: int = 0, *, names: tuple[str, ...] = ("acme",)) -> AuditReport:
    """Return an audit's report with so many findings, about these tenants in turn."""
    found = tuple(
        Finding(
            invariant="within-ceilings",
            stream=uuid5(SPACE, str(number)),
            version=number + 1,
            expected="at most 100000 quanta",
            found=f"{names[number % len(names)]}: 100001 quanta",
            position=number + 1,
            at=START + timedelta(hours=number),
            tenant=names[number % len(names)],
            owner="ana",
        )
        for number in range(findings)
    )
    return AuditReport(
        store="memory.db",
        findings=found,
        findings_count=findings,
        notes=("2 originals were erased",),
        counts={"events": 100, "streams": 9},
        position=100,
    )


def _typed(value: Any) -> Any:
    if isinstance(value, UUID):
        return {"_type_": "uuid_hex", "_data_": value.hex}
    if isinstance(value, datetime):
        return {"_type_": "datetime_iso", "_data_": value.isoformat()}
    return value
