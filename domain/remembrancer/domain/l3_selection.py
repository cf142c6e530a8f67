"""What was selected for one stage of a session, and which packs were assembled from it.

The selection is committed before the pack is assembled, and never changes: replay reads it
instead of asking an index (seed L3, "determinism contract"; design 4.1).  Topics and field names
are stored format: never rename one.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Self, TypedDict, cast
from uuid import UUID

from eventsourcing.domain import Aggregate

from remembrancer.domain.embedding_tuple import EmbeddingTuple, recorded_tuple
from remembrancer.domain.identity import EntryId, entry_ids, spelt, stream_id
from remembrancer.domain.parsed import Name, Parsed
from remembrancer.domain.recall import (
    LeftOut,
    LeftOutReason,
    Ranks,
    RecallKind,
    RecallMode,
)
from remembrancer.domain.recorded_sequence import RecordedSequence

LEFT_OUT_MAX = 200
"""How many left-out candidates an event names, best first; the rest is only counted."""


class StageKey(Parsed):
    """One stage of a session: what a selection is committed for."""

    tenant: Name
    session: Name
    stage: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedEntry:
    """One committed entry, in rank order."""

    entry_id: EntryId
    version: int
    digest: str
    score: float
    ranks: Ranks


class SelectedState(TypedDict):
    """A :class:`SelectedEntry` as it is recorded."""

    dense_rank: int | None
    dense_score: float | None
    digest: str
    entry_id: str
    score: float
    sparse_rank: int | None
    sparse_score: float | None
    version: int


CommittedText = tuple[str, EntryId, int, str]
"""What the vault is asked for, of a committed entry, and what it must answer.

The entry's id as packs list it, the id itself, the version, and the text's digest.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A committed selection.

    ``sealed_query_vector`` is AES-256-GCM ciphertext (base64), or none; its key is in the vault
    and goes with ``erase_session``.  ``filter`` is what the index was asked with.
    """

    tenant: str
    owner: str
    principal: str
    session: str
    stage: str
    kind: RecallKind
    entries: Sequence[SelectedEntry]
    mode: RecallMode
    mode_reason: str
    left_out: Sequence[LeftOut]
    left_out_count: int
    limit: int
    filter: Mapping[str, tuple[str, ...]]
    embedding_tuple: EmbeddingTuple | None
    sealed_query_vector: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPack:
    """The record of one pack: enough to assemble the same bytes again, but for the texts."""

    number: int
    """1 for the first pack of the stage."""
    digest: str
    label: str
    """Of the fences; drawn once, recorded here."""
    format_version: int
    included: tuple[str, ...]
    omitted: tuple[tuple[str, str], ...]
    token_budget: int
    tokens: int
    token_counter: str
    items_digest: str
    """Digest of the host's items, keyed with the session's salt."""


class L3Selection(Aggregate):
    """Selection and packs of one (tenant, session, stage)."""

    TOPIC = "remembrancer.l3_selection"

    # -- Facts, in the order they may first appear -------------------------

    class Event(Aggregate.Event):
        """Base of the facts below; never stored itself."""

        TOPIC = "remembrancer.l3_selection.event"

    class L3EntriesSelected(Event, Aggregate.Created):
        """Entries were chosen for a stage; no pack existed yet."""

        TOPIC = "remembrancer.l3_selection.l3_entries_selected"
        tenant: str
        owner: str
        principal: str
        session: str
        stage: str
        kind: str
        entries: list[SelectedState]
        mode: str
        mode_reason: str
        left_out: list[list[str]]
        left_out_count: int
        k: int
        filter: dict[str, list[str]]
        embedding_tuple: dict[str, Any] | None
        query_embedding: str | None

        def mutate(self, aggregate: Any) -> Any:
            """Begin the aggregate, as the library asks of its first event."""
            if aggregate is not None or self.originator_topic != L3Selection.TOPIC:
                raise TypeError("doesn't begin such an aggregate here")
            begun = L3Selection.__new__(L3Selection)
            begun.__base_init__(self.originator_id, self.originator_version, self.timestamp)
            begun.take_selection(self)
            return begun

    class ContextPackAssembled(Event):
        """A pack was assembled from the committed selection."""

        TOPIC = "remembrancer.l3_selection.context_pack_assembled"
        number: int
        digest: str
        label: str
        format_version: int
        included: list[str]
        omitted: list[list[str]]
        token_budget: int
        tokens: int
        token_counter: str
        items_digest: str

        def apply(self, aggregate: "L3Selection") -> None:
            """Hand itself over, once the library has seen that it comes next."""
            aggregate.take_pack(self)

    # -- Questions ---------------------------------------------------------

    @staticmethod
    def create_id(tenant: str, session: str, stage: str) -> UUID:
        """Return the stream of a stage's selection."""
        return stream_id("l3_selection", tenant, session, stage)

    @property
    def selection(self) -> Selection:
        """What was committed."""
        return self._selection

    @property
    def texts(self) -> list[CommittedText]:
        """What to ask the vault for: the committed entries' texts, in order."""
        ids, states = self._entry_ids, self._entry_states
        versions, digests = map(_version, states), map(_digest, states)
        return list(zip(spelt(ids), ids, versions, digests, strict=True))

    @property
    def packs(self) -> tuple[AssembledPack, ...]:
        """Packs assembled so far, oldest first."""
        return tuple(self._packs)

    # -- Decisions ---------------------------------------------------------

    @classmethod
    def select(cls, selection: Selection, *, at: datetime) -> Self:
        """Commit ``selection`` for its stage."""
        embedding = selection.embedding_tuple
        state: dict[str, Any] = {  # Of fields that the library adds type checkers know nothing.
            "originator_topic": cls.TOPIC,
            "originator_id": cls.create_id(selection.tenant, selection.session, selection.stage),
            "originator_version": cls.INITIAL_VERSION,
            "timestamp": at,
            "tenant": selection.tenant,
            "owner": selection.owner,
            "principal": selection.principal,
            "session": selection.session,
            "stage": selection.stage,
            "kind": selection.kind.value,
            "entries": [_selected_state(entry) for entry in selection.entries],
            "mode": selection.mode.value,
            "mode_reason": selection.mode_reason,
            "left_out": _left_out_state(selection.left_out[:LEFT_OUT_MAX]),
            "left_out_count": selection.left_out_count,
            "k": selection.limit,
            "filter": {key: list(values) for key, values in sorted(selection.filter.items())},
            "embedding_tuple": None if embedding is None else embedding.model_dump(mode="json"),
            "query_embedding": selection.sealed_query_vector,
        }
        fact = cls.L3EntriesSelected(**state)
        begun = cast("Self", fact.mutate(None))
        begun.pending_events.append(fact)
        return begun

    def assemble(self, pack: AssembledPack, *, at: datetime) -> None:
        """Record that ``pack`` was assembled; the same digest as the last records nothing."""
        if self._packs and self._packs[-1].digest == pack.digest:
            return
        self.trigger_event(
            self.ContextPackAssembled,
            number=len(self._packs) + 1,
            digest=pack.digest,
            label=pack.label,
            format_version=pack.format_version,
            included=list(pack.included),
            omitted=[list(pair) for pair in pack.omitted],
            token_budget=pack.token_budget,
            tokens=pack.tokens,
            token_counter=pack.token_counter,
            items_digest=pack.items_digest,
            timestamp=at,
        )

    # -- Evolution: no rules here, replay must never refuse ----------------
    #
    # Facts hand themselves over.  The library would give a decorated method their fields by name:
    # to choose them, twice for the first, took a third of reading them (adr/0006).

    def take_selection(self, fact: L3EntriesSelected) -> None:
        """Begin with what was selected."""
        states, space = fact.entries, fact.embedding_tuple
        deque(map(_values, states), maxlen=0)  # None lacks a field.
        self._entry_states = states
        self._entry_ids = entry_ids(list(map(_entry_id, states)))
        self._selection = Selection(
            tenant=fact.tenant,
            owner=fact.owner,
            principal=fact.principal,
            session=fact.session,
            stage=fact.stage,
            kind=_KINDS[fact.kind],
            entries=_RecordedEntries(self._entry_ids, states),
            mode=_MODES[fact.mode],
            mode_reason=fact.mode_reason,
            left_out=_RecordedLeftOut(fact.left_out),
            left_out_count=fact.left_out_count,
            limit=fact.k,
            filter=dict(zip(fact.filter, map(tuple, fact.filter.values()), strict=True)),
            embedding_tuple=None if space is None else recorded_tuple(**space),
            sealed_query_vector=fact.query_embedding,
        )
        self._packs: list[AssembledPack] = []

    def take_pack(self, fact: ContextPackAssembled) -> None:
        """Go on with a pack that was assembled."""
        self._packs.append(
            AssembledPack(
                number=fact.number,
                digest=fact.digest,
                label=fact.label,
                format_version=fact.format_version,
                included=_names(fact.included),
                omitted=tuple([(one, reason) for one, reason in map(_names, fact.omitted)]),
                token_budget=fact.token_budget,
                tokens=fact.tokens,
                token_counter=fact.token_counter,
                items_digest=fact.items_digest,
            )
        )


class _RecordedEntries(RecordedSequence[SelectedEntry]):
    def __init__(self, ids: Sequence[EntryId], states: Sequence[SelectedState]) -> None:
        self._ids = ids
        self._states = states

    def _make(self) -> tuple[SelectedEntry, ...]:
        return tuple(map(_selected_entry, self._ids, self._states))


class _RecordedLeftOut(RecordedSequence[LeftOut]):
    def __init__(self, runs: Sequence[Sequence[str]]) -> None:
        self._runs = runs

    def __len__(self) -> int:
        return sum(len(ids.split()) for _, ids in self._runs)

    def _make(self) -> tuple[LeftOut, ...]:
        return tuple(
            LeftOut(entry_id=EntryId(UUID(hex=one)), reason=LeftOutReason(reason))
            for reason, ids in self._runs
            for one in ids.split()
        )


_KINDS, _MODES = {one.value: one for one in RecallKind}, {one.value: one for one in RecallMode}
"""An Enum that is asked for the member of a value takes ten times as long."""
_values = itemgetter(*SelectedState.__annotations__)
"""Raises ``LookupError`` where an entry's state lacks a field."""
_entry_id, _version, _digest = map(itemgetter, ("entry_id", "version", "digest"))
_STRINGS = frozenset({str})


def _left_out_state(left_out: Sequence[LeftOut]) -> list[list[str]]:
    """Return runs of one reason each, in order: the reason, and the ids with blanks between.

    It would be nine tenths of the record if each candidate were an object of its own.
    """
    return [
        [reason, " ".join(one.entry_id.hex for one in run)]
        for reason, run in groupby(left_out, key=lambda one: one.reason.value)
    ]


def _names(recorded: Sequence[str]) -> tuple[str, ...]:
    if not _STRINGS.issuperset(map(type, recorded)):
        raise TypeError("not names")
    return tuple(recorded)


def _selected_state(entry: SelectedEntry) -> SelectedState:
    ranks = entry.ranks
    return {
        "entry_id": str(entry.entry_id),
        "version": entry.version,
        "digest": entry.digest,
        "score": entry.score,
        "dense_rank": ranks.dense_rank,
        "dense_score": ranks.dense_score,
        "sparse_rank": ranks.sparse_rank,
        "sparse_score": ranks.sparse_score,
    }


def _selected_entry(entry_id: EntryId, state: SelectedState) -> SelectedEntry:
    return SelectedEntry(
        entry_id=entry_id,
        version=state["version"],
        digest=state["digest"],
        score=state["score"],
        ranks=Ranks(
            dense_rank=state["dense_rank"],
            dense_score=state["dense_score"],
            sparse_rank=state["sparse_rank"],
            sparse_score=state["sparse_score"],
        ),
    )
