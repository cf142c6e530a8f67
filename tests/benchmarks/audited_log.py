"""A store with as many events as wanted, decided by the domain and written by the adapters.

Of a hundred events some forty-six are of entries' lives, thirty of ledgers and cache contexts, and
twenty-four of selections and their packs.
"""

import itertools
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import apsw
from eventsourcing.domain import Aggregate, AggregateEvent
from tests.benchmarks.corpus import SCOPES, SENSITIVITIES, TENANT, Corpus

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite import spend_receipts
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.entry_vault import SqliteEntryVault
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.session_vault import SqliteSessionVault
from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex
from remembrancer.application.build_pack import items_as_json, items_digest
from remembrancer.application.entry_index import index_id, labels
from remembrancer.application.ports import Original, SparseDocument
from remembrancer.application.quote import quotation_of
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.context_pack import ContextItem, assemble, pack_digest
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.l3_selection import AssembledPack, L3Selection, SelectedEntry, Selection
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.recall import LeftOut, LeftOutReason, Ranks, RecallKind, RecallMode
from remembrancer.domain.reservation import (
    Ceilings,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
)
from remembrancer.domain.reservation_event import LedgerEvent
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.sensitivity import Sensitivity

OWNERS = 200
ROUNDS = 10
"""Rounds of one transaction; about 500 events each."""
CACHE_KIB = 256 * 1024
"""What is written lies all over the file."""
QUOTED = 4
"""Entries of a pack."""
_SECOND = timedelta(seconds=1)
_TERMS = SpendTerms(
    ceilings=Ceilings(quanta_per_day=10**12, requests_per_day=10**8),
    mechanism_version="semantic-query@1",
    configuration_digest="c" * 64,
    embedding_tuple_digest="d" * 64,
    pricing_digest="e" * 64,
)
_RULES = [ContextItem(layer=0, id="rules", text="Answer briefly, and say what you don't know.")]
_ITEMS = items_as_json(_RULES)


class AuditedLog:
    """Writes a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        self._vault = SqliteEntryVault(database=database)
        self._sessions = SqliteSessionVault(database=database)
        self._sparse = SqliteSparseIndex(database=database)
        self._chance = random.Random(6)  # noqa: S311 - not a secret: a workload
        self._corpus = Corpus(6)
        self._texts = [self._corpus.text() for _ in range(2_000)]
        self._ledgers = [ReservationLedger.unused(TENANT, f"owner{n}") for n in range(OWNERS)]
        self._at = datetime(2030, 1, 1, tzinfo=UTC)
        self._numbers = itertools.count(1)
        self._kept: list[tuple[Original, MemoryEntry]] = []
        self._events: list[AggregateEvent] = []
        """Of the round, not yet written: one writing for all takes half the time."""
        self._contexts: dict[str, CacheContext] = {}

    def write(self, events: int) -> None:
        """Write about so many events, and no fewer."""
        while self._log.position() < events:
            with self._database.write() as connection:
                connection.pragma("cache_size", -CACHE_KIB)
                for _ in range(ROUNDS):
                    self._remember(150)
                    self._correct(45)
                    self._erase(10)
                    self._spend(connection, 65)
                    self._assemble(55)
                    self._log.append(self._events)
                    self._events.clear()

    def _decided(self, aggregate: Aggregate) -> None:
        """Take what an aggregate has decided, to be written with the round."""
        self._events += aggregate.collect_events()  # type: ignore[arg-type]  # all ours are events

    def _uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    def _now(self) -> datetime:
        self._at += _SECOND
        return self._at

    def _original(self, **labels: object) -> Original:
        text, salt = self._chance.choice(self._texts), self._chance.randbytes(32)
        number = next(self._numbers)
        given = {
            "tenant": TENANT,
            "owner": f"owner{number % OWNERS}",
            "entry_id": EntryId(self._uuid()),
            "version": 1,
            "scope": SCOPES[number % len(SCOPES)],
            "kind": "note",
            "sensitivity": SENSITIVITIES[number % len(SENSITIVITIES)],
            "subjects": (),
            "metadata": {"path": f"notes/{number % 97}.md"},
            **labels,
        }
        return Original(
            **given,  # type: ignore[arg-type]  # labels by name
            text=text,
            salt=salt,
            digest=original_digest(salt, text),
            tokens=len(text) // 4,
            token_counter="bench@1",  # noqa: S106 - counts tokens
            recorded_at=self._now(),
        )

    def _remember(self, count: int) -> None:
        made = []
        for one in [self._original() for _ in range(count)]:
            entry = MemoryEntry.remember(
                one.header, digest=one.digest, length=len(one.text.encode()), at=one.recorded_at
            )
            self._decided(entry)
            made.append((one, entry))
        self._vault.keep([one for one, _ in made])
        self._index([one for one, _ in made])
        self._kept = [*self._kept[-20_000:], *made]

    def _correct(self, count: int) -> None:
        new: list[Original] = []
        superseded: list[tuple[EntryId, int]] = []
        for place in self._chance.sample(range(len(self._kept)), count):
            old, entry = self._kept[place]
            one = self._original(owner=old.owner, entry_id=old.entry_id, version=old.version + 1)
            entry.correct(
                one.header,
                digest=one.digest,
                length=len(one.text.encode()),
                reason="outdated",
                at=one.recorded_at,
            )
            self._decided(entry)
            new.append(one)
            superseded.append((old.entry_id, old.version))
            self._kept[place] = (one, entry)
        self._vault.keep(new)
        self._index([*self._vault.versions(superseded).values(), *new])

    def _erase(self, count: int) -> None:
        for place in sorted(self._chance.sample(range(len(self._kept)), count), reverse=True):
            one, entry = self._kept.pop(place)
            entry.erase(reason="asked", at=self._now())
            self._decided(entry)
            for version in self._vault.erase(one.entry_id):
                self._sparse.delete(version_id(one.entry_id, version))
            self._sparse.delete(one.entry_id)

    def _index(self, originals: list[Original]) -> None:
        # An audit reads what stands where, not the words: a few are enough.
        self._sparse.upsert_many(
            [SparseDocument(index_id(one), one.text[:20], labels(one)) for one in originals]
        )

    def _spend(self, connection: apsw.Connection, count: int) -> None:
        for number in range(count):
            ledger = self._chance.choice(self._ledgers)
            is_query = number % 3 == 0
            context = self._context(ledger.owner) if is_query else None
            reservation = self._uuid()
            kind = ReservationKind.QUERY if is_query else ReservationKind.INDEXING
            ledger.admit(
                ReservationRequest(
                    reservation_id=reservation,
                    kind=kind,
                    request_digest=self._chance.randbytes(32).hex(),
                    charge_quanta=self._chance.randrange(10, 1_000),
                ),
                terms=_TERMS,
                earlier=None,
                at=self._now(),
            )
            ledger.settle(
                reservation, charged_quanta=7, usage_tokens=70, earlier=None, at=self._now()
            )
            facts = [fact for fact in ledger.pending_events if isinstance(fact, LedgerEvent)]
            self._decided(ledger)
            for fact in facts:
                spend_receipts.record(connection, fact)
            if context is not None:
                context.record_prepared(
                    context.generation, reservation_id=reservation, vectors=2, at=self._now()
                )
                self._decided(context)

    def _context(self, owner: str) -> CacheContext:
        context = self._contexts.get(owner)
        if context is None:
            context = self._contexts[owner] = CacheContext.bind(
                TENANT,
                owner,
                "cli",
                context_digest="a" * 64,
                configuration_digest="c" * 64,
                at=self._now(),
            )
        elif self._chance.random() < 0.1:
            context.replace(
                context_digest=self._chance.randbytes(32).hex(),
                configuration_digest="c" * 64,
                at=self._now(),
            )
        self._decided(context)
        return context

    def _assemble(self, count: int) -> None:
        for _ in range(count):
            chosen = [one for one, _ in self._chance.sample(self._kept, QUOTED + 6)]
            selected = L3Selection.select(self._selection(chosen), at=self._now())
            key = self._chance.randbytes(32)
            selection = selected.selection
            selected.assemble(self._pack(selection, chosen[:QUOTED], key), at=self._now())
            self._decided(selected)
            self._sessions.keep_key(
                selected.id,
                tenant=TENANT,
                owner=selection.owner,
                session=selection.session,
                key=key,
            )
            self._sessions.keep_items(selected.id, number=1, items=_ITEMS)

    def _selection(self, chosen: list[Original]) -> Selection:
        number = next(self._numbers)
        return Selection(
            tenant=TENANT,
            owner=f"owner{number % OWNERS}",
            principal="agent-7",
            session=f"session-{number}",
            stage="plan",
            kind=RecallKind.DELIBERATE,
            entries=tuple(
                SelectedEntry(
                    entry_id=one.entry_id,
                    version=one.version,
                    digest=one.digest,
                    score=1 / (60 + rank),
                    ranks=Ranks(sparse_rank=rank, sparse_score=9.5 / rank),
                )
                for rank, one in enumerate(chosen, start=1)
            ),
            mode=RecallMode.SPARSE,
            mode_reason="no_vector_index",
            left_out=tuple(
                LeftOut(entry_id=one.entry_id, reason=LeftOutReason.RANK)
                for one, _ in self._kept[:10]
            ),
            left_out_count=90,
            limit=10,
            filter={
                "tenant": (TENANT,),
                "owner": (f"owner{number % OWNERS}",),
                "scopes": SCOPES,
                "sensitivity": tuple(one.value for one in Sensitivity),
            },
            embedding_tuple=None,
            sealed_query_vector=None,
        )

    def _pack(self, selection: Selection, quoted: list[Original], key: bytes) -> AssembledPack:
        label = self._chance.randbytes(8).hex()
        shown = {one.entry_id for one in quoted}
        draft = assemble(
            _RULES,
            [quotation_of(one, str(one.entry_id)) for one in quoted],
            label=label,
            token_budget=10_000,
            count=lambda text: len(text) // 4,
        )
        omitted = (
            *draft.omitted,
            *(
                (str(one.entry_id), LeftOutReason.BUDGET.value)
                for one in selection.entries
                if one.entry_id not in shown
            ),
        )
        said = {
            "included": draft.included,
            "omitted": omitted,
            "token_budget": 10_000,
            "tokens": draft.tokens,
            "token_counter": "bench@1",
        }
        digest = pack_digest(selection=selection, text=draft.text, **said)  # type: ignore[arg-type]  # by name
        return AssembledPack(
            number=1,
            digest=digest,
            label=label,
            format_version=1,
            items_digest=items_digest(key, _ITEMS),
            **said,  # type: ignore[arg-type]  # by name
        )


def audited_log(path: Path, events: int) -> None:
    """Make a store with ``events`` events, or a few more."""
    with Database.open(path) as database:
        AuditedLog(database).write(events)
