"""Use case: recall, live.

Candidates come from the indexes; what is shown comes from the vault: current, permitted originals,
resolved on every call.  What an index offers beyond that is dropped, and the answer topped up from
the next candidates (design 4.1).
"""

from collections.abc import Iterable, Mapping, Sequence

from remembrancer.application.dense_search import DenseQuery, DenseSearch, words_of
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
    EventLog,
    Original,
    SemanticQueryLookup,
    SparseIndex,
    Transactions,
    VectorIndexes,
    VectorMatch,
)
from remembrancer.application.ports.access_policy import Access
from remembrancer.domain.entry import KIND_CORE
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import LEFT_OUT_MAX
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.ranking import Fused, Scored, best_first, fuse
from remembrancer.domain.recall import (
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

CANDIDATES_MIN = 100
CANDIDATES_PER_RESULT = 4
DEEPER = 4
"""How many candidates a list is asked for at first, and by what it grows when too few remain."""

IndexFilter = dict[str, tuple[str, ...]]


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
        log: EventLog | None = None,
    ) -> None:
        self._vault = vault
        self._sparse = sparse
        self._policy = policy
        self._transactions = transactions
        self._dense = DenseSearch(indexes=indexes, embedders=embedders, lookup=lookup, log=log)

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
        dense = self._dense.asked(query, context)
        if dense.goes_elsewhere:
            return self._from_afar(query, dense)
        # One state of the store for indexes and vault: no match can go stale in between.
        with self._transactions.snapshot():
            if not self._dense.is_current(dense):
                # Another index took over meanwhile: the question needs a vector of its space.
                dense = self._dense.asked(query, context)
            filters = self.filters(query)
            if not filters:
                return _answer([], {}, query, _mode(dense, query, by_words=False), dense)
            return self._ranked(query, filters, dense)

    def _from_afar(self, query: RecallQuery, dense: DenseQuery) -> Recalled:
        """Ask the vectors' index outside of snapshots: nobody waits for another service there."""
        depth = _first_depth(query)
        while True:
            with self._transactions.snapshot():
                filters = self.filters(query)
            if not filters:
                return _answer([], {}, query, _mode(dense, query, by_words=False), dense)
            near, dense = self._dense.matches(dense, depth, filters)
            with self._transactions.snapshot():
                answer = self._at_depth(query, filters, dense, near, depth, {})
            if answer is not None:
                return answer
            depth *= DEEPER

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

    def _ranked(
        self, query: RecallQuery, filters: list[IndexFilter], dense: DenseQuery
    ) -> Recalled:
        depth = _first_depth(query)
        resolved: dict[EntryId, Original] = {}
        while True:
            near, dense = self._dense.matches(dense, depth, filters)
            answer = self._at_depth(query, filters, dense, near, depth, resolved)
            if answer is not None:
                return answer
            depth *= DEEPER

    def _at_depth(  # what a question is answered from
        self,
        query: RecallQuery,
        filters: list[IndexFilter],
        dense: DenseQuery,
        near: list[list[VectorMatch]],
        depth: int,
        resolved: dict[EntryId, Original],
    ) -> Recalled | None:
        """Answer from the ``depth`` best of each list; None if more must be looked at."""
        by_vector = _merged(near, depth)
        by_words = _merged(
            [self._sparse.query(words_of(query), depth, one) for one in filters], depth
        )
        found = {one.id for one in (*by_vector, *by_words)}
        resolved |= self._vault.indexed([one for one in found if one not in resolved])
        is_all = max(len(by_vector), len(by_words)) < depth
        outdated = _outdated(near, resolved)
        if outdated:
            by_vector = [one for one in by_vector if one.id not in outdated]
        if query.kind is RecallKind.HISTORICAL:
            by_vector, by_words = (_by_entry(one, resolved) for one in (by_vector, by_words))
        fused = fuse(by_vector, by_words)
        judged = self._judge(query, fused, resolved)
        kept = sum(reason is None for _, reason in judged)
        if kept < query.limit and not is_all:
            return None
        outdated -= {one.id for one in fused}
        judged += [
            (Fused(one, 0.0, Ranks()), LeftOutReason.STALE)
            for one in sorted(outdated)
            if resolved[one].tenant == query.tenant
        ]
        mode = _mode(dense, query, by_words=bool(by_words))
        return _answer(judged, resolved, query, mode, dense)

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
        if original.sensitivity > query.read_ceiling:  # Which no policy lifts, nor core entries.
            return LeftOutReason.PERMISSION
        for one in (original,) if head is original else (original, head):
            if not self._policy.permits(access, one.header):
                return LeftOutReason.PERMISSION
        if query.as_of is None:
            return None if original.superseded_at is None else LeftOutReason.STALE
        began, ended = original.recorded_at, original.superseded_at
        current_then = began <= query.as_of and (ended is None or query.as_of < ended)
        return None if current_then else LeftOutReason.FILTER


def _first_depth(query: RecallQuery) -> int:
    return max(CANDIDATES_MIN, CANDIDATES_PER_RESULT * query.limit)


def _outdated(
    near: Sequence[Sequence[VectorMatch]], resolved: Mapping[EntryId, Original]
) -> set[EntryId]:
    """Return whose vector is of another version than the one that now stands under its id."""
    return {
        match.id
        for matches in near
        for match in matches
        if match.version is not None
        and match.id in resolved
        and resolved[match.id].version != match.version
    }


def _merged(lists: Sequence[Sequence[VectorMatch]], depth: int) -> list[Scored]:
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
    if not by_words and parsed_question(words_of(query)) == Question(()):
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
