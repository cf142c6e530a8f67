"""Use case: rebuild the indexes from log and vault.

A new vector index is built beside the one that answers, by following the log from its recorded
position.  Once it has caught up it is looked at, and takes over in one step; interrupted
anywhere, it goes on from where it was.  Every answer comes from one index, so two spaces never mix
(case 23), nor two places.  Where vectors are bought and can't be any more, it stops instead of
switching to an index with gaps.
"""

from dataclasses import dataclass

from remembrancer.application.document_vectors import DocumentVectors
from remembrancer.application.entry_index import index_id, labels, searchable_text
from remembrancer.application.entry_versions import kept_versions, touched
from remembrancer.application.index_building import EVENTS_AT_ONCE, IndexBuilding
from remembrancer.application.index_check import IndexCheck
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    IndexState,
    Randomness,
    SparseDocument,
    SparseIndex,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorOutbox,
)
from remembrancer.application.projection import LEASE_S
from remembrancer.application.remember import Progress
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import (
    IndexUnfitError,
    SettingsError,
    StoreUnavailableError,
)

TOO_LATE_MAX = 3
"""How often others may come in between catching up and the switch; then they wait for it."""
LOOKS_MAX = 3
"""How often an index is looked at: what is written meanwhile may make it seem unfit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What a reindexing has come to."""

    index: VectorIndex
    vectors: int
    resumed_from: int
    """Log position at which an earlier, interrupted run had stopped; 0 for none."""
    retired: tuple[int, ...]
    """Numbers of indexes that don't answer any more and can be dropped."""


class Reindex:
    """Builds beside, looks, switches, keeps the old until it is dropped on request."""

    def __init__(  # noqa: PLR0913  # one port each
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        sparse: SparseIndex,
        indexes: VectorIndexes,
        outbox: VectorOutbox,
        vectors: DocumentVectors,
        building: IndexBuilding,
        check: IndexCheck,
        transactions: Transactions,
        randomness: Randomness,
    ) -> None:
        self._log = log
        self._vault = vault
        self._sparse = sparse
        self._indexes = indexes
        self._outbox = outbox
        self._vectors = vectors
        self._building = building
        self._check = check
        self._transactions = transactions
        self._holder = str(randomness.uuid())

    def __call__(
        self,
        *,
        to: EmbeddingTuple | None = None,
        place: str | None = None,
        drop_retired: bool = False,
        allow_gaps: bool = False,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Build a fresh vector index of ``to`` (the preferred space) in ``place``, then switch.

        With ``allow_gaps`` it switches although vectors couldn't be bought; :meth:`missing` can
        bring them later.

        Raises:
            SettingsError: no embedder of that space is here.
            ReindexStoppedError: the budget or the provider said no; the next call goes on.
            IndexUnfitError: what was built isn't what it should be; no index was switched.
            StoreUnavailableError: that place doesn't answer; the next call goes on.
        """
        index = self._begun(self._space(to), place)
        began = index.position
        with self._transactions.over_all_tenants():
            index = self._built(index, allow_gaps=allow_gaps, progress=progress)
        retired = [one for one in self._indexes.all() if one.number != index.number]
        if drop_retired:
            retired = self._dropped(retired)
        with self._transactions.over_all_tenants():
            vectors = self._indexes.store(index).count()
        numbers = tuple(one.number for one in retired)
        return Reindexed(index=index, vectors=vectors, resumed_from=began, retired=numbers)

    def drop_retired(self, *, unfinished: bool = False) -> tuple[int, ...]:
        """Destroy the indexes that answered once; return their numbers.

        One that is still being built stays, and the next call goes on with it, unless
        ``unfinished`` says that it goes too: a process that builds it just now is told so.

        Raises:
            StoreUnavailableError: what keeps one elsewhere is away, or isn't set up here, or
                another process builds one there; none was destroyed.
        """
        states = {IndexState.RETIRED, *([IndexState.BUILDING] if unfinished else [])}
        going = [one for one in self._indexes.all() if one.state in states]
        building = [one for one in going if one.state is IndexState.BUILDING]
        try:
            for one in building:
                self._require_alone(one)
            self._indexes.sweep(going)
            self._drop(going)
        finally:
            for one in building:
                self._outbox.release(one, self._holder)
        return tuple(one.number for one in going)

    def words(self, *, progress: Progress | None = None) -> int:
        """Rebuild the sparse index, in one transaction; return how many versions are in it."""
        with (
            self._transactions.over_all_tenants(),
            self._transactions.begin(alone=True),
        ):
            self._sparse.clear()
            position, end = 0, self._log.position()
            while records := self._log.follow(after_position=position, limit=EVENTS_AT_ONCE):
                entry_ids, _ = touched(record.event for record in records)
                versions = kept_versions(self._vault, entry_ids)
                self._sparse.upsert_many(
                    [
                        SparseDocument(index_id(one), searchable_text(one), labels(one))
                        for one in versions
                    ]
                )
                position = records[-1].position
                if progress is not None:
                    progress(position, end)
            return self._sparse.count()

    def missing(self, *, progress: Progress | None = None) -> int:
        """Give vectors to versions that have none in the active index; return how many got one.

        For texts that were kept while a provider was away or a budget was used up.

        Raises:
            SettingsError: nobody here embeds into the index's space.
        """
        active = self._indexes.active()
        space = self._space(None if active is None else active.embedding_tuple)
        if active is None:
            with self._transactions.begin(alone=True):
                active = self._indexes.active() or self._indexes.activate(
                    self._indexes.begin(space)
                )
        with self._transactions.over_all_tenants():
            return self._filled(active, progress)

    # -- Inside ------------------------------------------------------------

    def _space(self, to: EmbeddingTuple | None) -> EmbeddingTuple:
        space = self._vectors.preferred_space if to is None else to
        if space is None or not self._vectors.can_embed_into(space):
            wanted = "any space" if space is None else str(space)
            raise SettingsError(setting="embedder", problem=f"none for {wanted} is configured")
        return space

    def _begun(self, space: EmbeddingTuple, place: str | None) -> VectorIndex:
        """Begin an index, or go on with one; what was built of another goes, unless it is away."""
        before = [one for one in self._indexes.all() if one.state is IndexState.BUILDING]
        with self._transactions.over_all_tenants(), self._transactions.begin():
            index = self._indexes.begin(space, place)
        numbers = {one.number for one in before} - {index.number}
        self._dropped([one for one in self._indexes.all() if one.number in numbers])
        return index

    def _built(
        self, index: VectorIndex, *, allow_gaps: bool, progress: Progress | None
    ) -> VectorIndex:
        self._require_alone(index)
        try:
            if index.follows and index.state is IndexState.BUILDING:
                self._indexes.prepare(index)
            looked, too_late = False, 0
            while True:
                step = self._building.step(index, allow_gaps=allow_gaps)
                index = step.index
                if progress is not None:
                    progress(index.position, self._log.position())
                if step.caught_up and not looked:
                    index, looked = self._looked_at(index, allow_gaps=allow_gaps), True
                if step.caught_up:
                    hurry = too_late >= TOO_LATE_MAX
                    switched = self._building.switched(index, hurry=hurry)
                    if switched is not None:
                        return switched
                    too_late += 1
                self._require_alone(index)
        finally:
            if index.follows:
                self._outbox.release(index, self._holder)

    def _require_alone(self, index: VectorIndex) -> None:
        """Keep others from carrying to an index elsewhere while it is built."""
        if index.follows and not self._outbox.claim(index, self._holder, lease_s=LEASE_S):
            raise StoreUnavailableError(
                store=f"vector index {index.number}", problem="another process builds it"
            )

    def _looked_at(self, index: VectorIndex, *, allow_gaps: bool) -> VectorIndex:
        """Look at what was built; what comes in meanwhile is taken in before looking again."""
        problem = None
        for _ in range(LOOKS_MAX):
            if self._building.as_it_is(index).state is IndexState.ACTIVE:
                return index
            problem = self._check.problem(index)
            if problem is None:
                return index
            index = self._building.caught_up(index, allow_gaps=allow_gaps)
        now = self._building.as_it_is(index)
        if now.state is IndexState.ACTIVE:  # Others have looked at it as well, and switched.
            return now
        self._dropped([index])
        raise IndexUnfitError(number=index.number, problem=problem or "it keeps changing")

    def _filled(self, index: VectorIndex, progress: Progress | None) -> int:
        self._require_alone(index)
        try:
            added, position, end = 0, 0, self._log.position()
            while records := self._log.follow(after_position=position, limit=EVENTS_AT_ONCE):
                entry_ids, _ = touched(record.event for record in records)
                some, go_on = self._building.fill(index, entry_ids)
                added += some
                position = records[-1].position
                if progress is not None:
                    progress(position, end)
                if not go_on:
                    break
                self._require_alone(index)
            return added
        finally:
            if index.follows:
                self._outbox.release(index, self._holder)

    def _dropped(self, indexes: list[VectorIndex]) -> list[VectorIndex]:
        """Destroy indexes; return those that stay, because what keeps them is away."""
        away = list[VectorIndex]()
        try:
            self._indexes.sweep(indexes)
        except (StoreUnavailableError, SettingsError):
            away = [one for one in indexes if one.follows]
        self._drop([one for one in indexes if one not in away])
        return away

    def _drop(self, indexes: list[VectorIndex]) -> None:
        for one in indexes:
            with self._transactions.over_all_tenants(), self._transactions.begin():
                self._indexes.drop(one)
                self._outbox.forget(one)
