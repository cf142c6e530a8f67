"""The decisions behind the recordings: each file's stream, decided anew by today's code."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain import (
    EmbeddingTuple,
    EntryHeader,
    EntryId,
    LeftOut,
    LeftOutReason,
    RecallKind,
    RecallMode,
    Selection,
    Sensitivity,
)
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.l3_selection import AssembledPack, L3Selection, SelectedEntry
from remembrancer.domain.recall import Ranks
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_ledger import ReservationLedger

START = datetime(2030, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
MIDNIGHT = datetime(2030, 1, 2, tzinfo=UTC)
FIRST, SECOND = EntryId(UUID(int=1)), EntryId(UUID(int=2))
INDEXED, LOST, LATE, CRASHED = (UUID(int=number) for number in range(10, 14))
HEADER = EntryHeader(
    tenant="acme",
    owner="ana",
    entry_id=FIRST,
    version=1,
    scope="project/alpha",
    kind="decision",
    sensitivity=Sensitivity.INTERNAL,
)
SELECTION = Selection(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    session="session-1",
    stage="plan",
    kind=RecallKind.DELIBERATE,
    entries=(
        SelectedEntry(
            entry_id=SECOND,
            version=3,
            digest="b" * 64,
            score=1 / 61 + 1 / 62,
            ranks=Ranks(dense_rank=1, dense_score=0.75, sparse_rank=2, sparse_score=3.5),
        ),
        SelectedEntry(
            entry_id=FIRST,
            version=1,
            digest="a" * 64,
            score=1 / 61,
            ranks=Ranks(sparse_rank=1, sparse_score=4.25),
        ),
    ),
    mode=RecallMode.HYBRID,
    mode_reason="",
    left_out=(LeftOut(entry_id=EntryId(UUID(int=3)), reason=LeftOutReason.STALE),),
    left_out_count=7,
    limit=2,
    filter={"tenant": ("acme",), "owner": ("ana",), "scope": ("project", "project/ä")},
    embedding_tuple=EmbeddingTuple(
        provider="wordllama",
        model="l2-supercat",
        model_revision="0.4.0",
        dimensions=256,
        input_preparation="plain@1",
    ),
    sealed_query_vector="c2VhbGVkIHZlY3Rvcg==",
)
PACK = AssembledPack(
    number=1,
    digest="c" * 64,
    label="0123456789abcdef",
    format_version=1,
    included=("rules", str(SECOND)),
    omitted=((str(FIRST), "budget"),),
    token_budget=2000,
    tokens=311,
    token_counter="wordllama-l2-supercat@1",  # noqa: S106  # counts tokens, is no password
    items_digest="d" * 64,
)
TERMS = SpendTerms(
    ceilings=Ceilings(quanta_per_day=1_000, requests_per_day=20),
    mechanism_version="semantic-query@1",
    configuration_digest="c" * 64,
    embedding_tuple_digest="d" * 64,
    pricing_digest="e" * 64,
)


def _life_of_an_entry() -> MemoryEntry:
    entry = MemoryEntry.remember(HEADER, digest="a" * 64, length=42, at=START)
    entry.correct(
        EntryHeader(
            tenant="acme",
            owner="ana",
            entry_id=FIRST,
            version=2,
            scope="project/älpha",
            kind="note",
            sensitivity=Sensitivity.RESTRICTED,
        ),
        digest="b" * 64,
        length=1_048_576,
        reason="It said something private.",
        at=START + timedelta(seconds=1),
    )
    entry.erase(reason="gdpr.request", at=START + timedelta(days=400))
    return entry


def _stage_with_two_packs() -> L3Selection:
    stage = L3Selection.select(SELECTION, at=START)
    stage.assemble(PACK, at=START + timedelta(seconds=1))
    stage.assemble(
        AssembledPack(
            number=2,
            digest="e" * 64,
            label="fedcba9876543210",
            format_version=1,
            included=(),
            omitted=(("rules", "budget"), (str(SECOND), "budget"), (str(FIRST), "erased")),
            token_budget=0,
            tokens=0,
            token_counter="wordllama-l2-supercat@1",  # noqa: S106  # as above
            items_digest="d" * 64,
        ),
        at=START + timedelta(seconds=2),
    )
    return stage


def _owner_who_spends() -> ReservationLedger:
    """Two requests of a morning, one of the last minute, one whose lease runs out."""
    ledger = ReservationLedger.unused("acme", "ana")

    def admit(request_id: UUID, kind: ReservationKind, charge_quanta: int, at: datetime) -> None:
        request = ReservationRequest(
            reservation_id=request_id,
            kind=kind,
            request_digest=f"{request_id.int:x}" * 64,
            charge_quanta=charge_quanta,
        )
        ledger.admit(request, terms=TERMS, earlier=None, at=at)

    def settle(request_id: UUID, charged: int, usage: int, at: datetime) -> None:
        ledger.settle(request_id, charged_quanta=charged, usage_tokens=usage, earlier=None, at=at)

    admit(INDEXED, ReservationKind.INDEXING, 40, START)
    admit(LOST, ReservationKind.QUERY, 300, START + timedelta(seconds=1))
    settle(INDEXED, 3, 117, START + timedelta(seconds=2))
    ledger.mark_unknown(
        LOST, reason=UnknownReason.TIMEOUT, earlier=None, at=START + timedelta(seconds=11)
    )
    admit(LATE, ReservationKind.QUERY, 25, MIDNIGHT - timedelta(seconds=2))
    settle(LATE, 2, 64, MIDNIGHT + timedelta(seconds=3))
    admit(CRASHED, ReservationKind.QUERY, 25, MIDNIGHT + timedelta(hours=9))
    ledger.reconcile(
        LOST,
        charged_quanta=120,
        evidence=ReconciliationEvidence(digest="f" * 64, stated_quanta=100, by="ben"),
        earlier=None,
        at=MIDNIGHT + timedelta(hours=10),
    )
    return ledger


def _surface_of_two_contexts() -> CacheContext:
    context = CacheContext.bind(
        "acme", "ana", "ide", context_digest="a" * 64, configuration_digest="c" * 64, at=START
    )
    context.record_prepared(1, reservation_id=LATE, vectors=4, at=START + timedelta(seconds=3))
    context.replace(
        context_digest="b" * 64,
        configuration_digest="c" * 64,
        at=START + timedelta(minutes=5),
    )
    context.withdraw(reason="evidence_revoked", at=START + timedelta(minutes=6))
    return context


RECORDED: dict[str, Callable[[], Any]] = {
    "memory_entry-1.jsonl": _life_of_an_entry,
    "l3_selection-1.jsonl": _stage_with_two_packs,
    "reservation_ledger-1.jsonl": _owner_who_spends,
    "cache_context-1.jsonl": _surface_of_two_contexts,
}
