"""Use case: recall, live.

Candidates come from the indexes; what is shown comes from the vault: current, permitted originals,
resolved on every call.  What an index offers beyond that is dropped, and the answer topped up from
the next candidates (design 4.1).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remembrancer.application.embedders import Embedders
from remembrancer.application.entry_index import (
    CURRENT,
    OWNER,
    SCOPE,
    SENSITIVITY,
    STATE,
    TENANT,
    YES,
    subject_label,
)
from remembrancer.application.ports import (
    AccessPolicy,
    EntryVault,
    Original,
    SemanticQueryLookup,
    SparseIndex,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorMatch,
)
from remembrancer.application.ports.access_policy import Access
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import KIND_CORE
from remembrancer.domain.errors import (
    ImpossibleVectorError,
    StoreCorruptError,
    StoreUnavailableError,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import LEFT_OUT_MAX
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.ranking import Fused, Scored, best_first, fuse
from remembrancer.domain.recall import (
    CandidateSelection,
    LeftOut,
    LeftOutReason,
    Ranks,
    RecallContext,
    Recalled,
    RecalledEntry,
    RecallKind,
    RecallMode,
    RecallQuery,
)
from remembrancer.domain.scope import covered_by_any
from remembrancer.domain.search_text import Question, parsed_question
from remembrancer.domain.vector import Vector

CANDIDATES_MIN = 100
CANDIDATES_PER_RESULT = 4
DEEPER = 4
"""How many candidates a list is asked for at first, and by what it grows when too few remain."""

IndexFilter = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseQuery:
    """The question as a vector, or why there is none."""

    vector: Vector | None = field(default=None, repr=False)
    index: VectorIndex | None = None
    reason: str = ""

    @property
    def embedding_tuple(self) -> EmbeddingTuple | None:
        """The space searched in, if any is."""
        return None if self.vector is None or self.index is None else self.index.embedding_tuple


def access_of(query: RecallQuery) -> Access:
    """Return who asks, as policies see it."""
    return Access(
        tenant=query.tenant,
        owner=query.owner,
        principal=query.principal,
        scopes=query.scopes,
        read_ceiling=query.read_ceiling,
    )


class Recall:
    """Finds, resolves and ranks."""

    def __init__(  # one port each
        self,
        *,
        vault: EntryVault,
        sparse: SparseIndex,
        indexes: VectorIndexes,
        policy: AccessPolicy,
        transactions: Transactions,
        embedders: Embedders,
        lookup: SemanticQueryLookup | None = None,
    ) -> None:
        self._vault = vault
        self._sparse = sparse
        self._indexes = indexes
        self._policy = policy
        self._transactions = transactions
        self._embedders = embedders
        self._lookup = lookup

    def __call__(self, query: RecallQuery, context: RecallContext) -> Recalled:
        """Answer ``query``; never an exception for what a question says."""
        owners = self._policy.owners(access_of(query))
        only = owners[0] if owners is not None and len(owners) == 1 else None
        with self._transactions.acting_for(query.tenant, only):
            return self._answered(query, context)

    def _answered(self, query: RecallQuery, context: RecallContext) -> Recalled:
        if query.kind is RecallKind.CORE:
            with self._transactions.snapshot():
                return self._core(query)
        dense = self._dense_query(query, context)
        # One state of the store for indexes and vault: no match can go stale in between.
        with self._transactions.snapshot():
            if dense.index is not None and dense.index != self._indexes.active():
                # Another index took over meanwhile: the question needs a vector of its space.
                dense = self._dense_query(query, context)
            filters = self.filters(query)
            if not filters:
                return _answer([], {}, query, _mode(dense, query, by_words=False), dense)
            return self._ranked(query, filters, dense)

    def filters(self, query: RecallQuery) -> list[IndexFilter]:
        """Return what the indexes are asked with: every one names the tenant.

        Several filters are alternatives (one for each subject); none at all means that nothing
        can match.
        """
        owners = self._policy.owners(access_of(query))
        known = self._vault.scopes(tenant=query.tenant, owners=owners)
        readable = frozenset(query.scopes)
        scopes = tuple(scope for scope in known if covered_by_any(readable, scope))
        if not scopes or owners == ():
            return []
        found: IndexFilter = {
            TENANT: (query.tenant,),
            SCOPE: scopes,
            SENSITIVITY: tuple(one.value for one in query.read_ceiling.at_or_under()),
        }
        if owners is not None:
            found[OWNER] = owners
        if query.kind is not RecallKind.HISTORICAL:
            found[STATE] = (CURRENT,)
        if query.kind is not RecallKind.PEOPLE:
            return [found]
        return [{**found, subject_label(subject): (YES,)} for subject in query.subjects]

    def _core(self, query: RecallQuery) -> Recalled:
        access = access_of(query)
        owners = self._policy.owners(access)
        known = self._vault.scopes(tenant=query.tenant, owners=owners)
        readable = frozenset(query.scopes)
        scopes = tuple(scope for scope in known if covered_by_any(readable, scope))
        originals = self._vault.of_kind(
            tenant=query.tenant, owners=owners, kind=KIND_CORE, scopes=scopes
        )
        resolved = {one.entry_id: one for one in originals}
        listed = [Fused(one.entry_id, 0.0, Ranks()) for one in originals]
        judged = self._judge(query, listed, resolved)
        return _answer(judged, resolved, query, (RecallMode.LISTED, ""), DenseQuery())

    def _dense_query(self, query: RecallQuery, context: RecallContext) -> DenseQuery:
        if query.candidate_selection is CandidateSelection.LEGACY:
            return DenseQuery(reason="legacy_candidate_selection")
        index = self._indexes.active()
        if index is None:
            return DenseQuery(reason="no_vector_index")
        embedder = self._embedders.of(index.embedding_tuple)
        if embedder is not None:
            vector = embedder.embed_query(_question(query))
            return DenseQuery(vector=vector, index=index, reason="no_usable_vector")
        lookup = self._lookup
        if lookup is None:
            return DenseQuery(reason="no_embedder_for_index")
        if lookup.embedding_tuple != index.embedding_tuple:
            return DenseQuery(reason="embedding_tuple_mismatch")
        return DenseQuery(
            vector=lookup.lookup(query, context), index=index, reason="query_not_prepared"
        )

    def _ranked(
        self, query: RecallQuery, filters: list[IndexFilter], dense: DenseQuery
    ) -> Recalled:
        depth = max(CANDIDATES_MIN, CANDIDATES_PER_RESULT * query.limit)
        resolved: dict[EntryId, Original] = {}
        while True:
            by_vector, dense = self._by_vector(dense, depth, filters)
            by_words = _merged(
                [self._sparse.query(_question(query), depth, one) for one in filters], depth
            )
            found = {one.id for one in (*by_vector, *by_words)}
            resolved |= self._vault.indexed([one for one in found if one not in resolved])
            if query.kind is RecallKind.HISTORICAL:
                by_vector, by_words = (_by_entry(one, resolved) for one in (by_vector, by_words))
            judged = self._judge(query, fuse(by_vector, by_words), resolved)
            kept = sum(reason is None for _, reason in judged)
            if kept >= query.limit or max(len(by_vector), len(by_words)) < depth:
                mode = _mode(dense, query, by_words=bool(by_words))
                return _answer(judged, resolved, query, mode, dense)
            depth *= DEEPER

    def _by_vector(
        self, dense: DenseQuery, depth: int, filters: list[IndexFilter]
    ) -> tuple[list[Scored], DenseQuery]:
        if dense.vector is None or dense.index is None:
            return [], dense
        store = self._indexes.store(dense.index)
        vector = dense.vector
        try:
            found = _merged([store.query(vector, depth, one) for one in filters], depth)
        except ImpossibleVectorError:
            return [], DenseQuery(reason="impossible_query_vector")
        except StoreUnavailableError:
            # The words' index answers from the store itself; the vectors' may be elsewhere.
            return [], DenseQuery(reason="vector_index_unavailable")
        return found, dense

    def _judge(
        self, query: RecallQuery, ranked: Iterable[Fused], resolved: Mapping[EntryId, Original]
    ) -> list[tuple[Fused, LeftOutReason | None]]:
        """Say of each candidate why it can't be in the answer, or None."""
        access = access_of(query)
        candidates = list(ranked)
        heads = resolved
        if query.kind is RecallKind.HISTORICAL:
            # Permission follows today's labels too: what was reclassified since stays hidden.
            entry_ids = [one.entry_id for one in resolved.values()]
            heads = self._vault.current(entry_ids)
        judged = []
        for one in candidates:
            original = resolved.get(one.id)
            if original is not None and original.tenant != query.tenant:
                continue  # Not even its id is told across tenants, whatever an index offers.
            head = None if original is None else heads.get(original.entry_id)
            judged.append((one, self._verdict(query, access, original, head)))
        return judged

    def _verdict(
        self,
        query: RecallQuery,
        access: Access,
        original: Original | None,
        head: Original | None,
    ) -> LeftOutReason | None:
        if original is None or head is None:
            return LeftOutReason.STALE
        for one in (original,) if head is original else (original, head):
            if not self._policy.permits(access, one.header):
                return LeftOutReason.PERMISSION
        if query.as_of is None:
            return None if original.superseded_at is None else LeftOutReason.STALE
        began, ended = original.recorded_at, original.superseded_at
        current_then = began <= query.as_of and (ended is None or query.as_of < ended)
        return None if current_then else LeftOutReason.FILTER


def _question(query: RecallQuery) -> str:
    return " ".join((query.question, *query.subjects)) if query.subjects else query.question


def _merged(lists: Sequence[list[VectorMatch]], depth: int) -> list[Scored]:
    """Merge the answers to alternative filters: each id once, best first."""
    if len(lists) == 1:  # As usual; an index gives each id once and best first by itself.
        return [Scored(match.id, match.score) for match in lists[0]]
    best: dict[EntryId, float] = {}
    for matches in lists:
        for match in matches:
            best[match.id] = max(match.score, best.get(match.id, match.score))
    return best_first(Scored(entry_id, score) for entry_id, score in best.items())[:depth]


def _by_entry(scored: list[Scored], resolved: Mapping[EntryId, Original]) -> list[Scored]:
    """Order by (score, then entry id) what an index has by (score, then its own id)."""

    def place(one: Scored) -> tuple[float, int]:
        original = resolved.get(one.id)
        return -one.score, (one.id if original is None else original.entry_id).int

    return sorted(scored, key=place)


def _mode(dense: DenseQuery, query: RecallQuery, *, by_words: bool) -> tuple[RecallMode, str]:
    """Return the mode and why it isn't hybrid; ``by_words``: whether words found anything."""
    if dense.vector is None:
        return RecallMode.SPARSE, dense.reason
    if not by_words and parsed_question(_question(query)) == Question(()):
        return RecallMode.DENSE, "no_searchable_words"
    return RecallMode.HYBRID, ""


def _answer(
    judged: list[tuple[Fused, LeftOutReason | None]],
    resolved: Mapping[EntryId, Original],
    query: RecallQuery,
    mode: tuple[RecallMode, str],
    dense: DenseQuery,
) -> Recalled:
    entries: list[RecalledEntry] = []
    left_out: list[LeftOut] = []
    for one, verdict in judged:
        reason = verdict
        if reason is None and len(entries) == query.limit:
            reason = LeftOutReason.RANK
        if reason is None:
            entries.append(_recalled(one, resolved[one.id]))
        elif len(left_out) < LEFT_OUT_MAX:
            original = resolved.get(one.id)
            entry_id = one.id if original is None else original.entry_id
            left_out.append(LeftOut(entry_id=entry_id, reason=reason))
    vector = dense.vector
    return Recalled(
        entries=tuple(entries),
        mode=mode[0],
        mode_reason=mode[1],
        left_out=tuple(left_out),
        left_out_count=len(judged) - len(entries),
        embedding_tuple=dense.embedding_tuple,
        query_vector=None if vector is None else tuple(vector),
    )


def _recalled(fused: Fused, original: Original) -> RecalledEntry:
    if original_digest(original.salt, original.text) != original.digest:
        raise StoreCorruptError(
            store="vault",
            problem=f"entry {original.entry_id}, version {original.version}, isn't the text that "
            "was kept",
        )
    return RecalledEntry(
        entry_id=original.entry_id,
        version=original.version,
        digest=original.digest,
        text=original.text,
        score=fused.score,
        ranks=fused.ranks,
        scope=original.scope,
        kind=original.kind,
        sensitivity=original.sensitivity,
        subjects=original.subjects,
        metadata=dict(original.metadata),
        recorded_at=original.recorded_at,
    )
