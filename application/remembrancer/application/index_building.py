"""Building a vector index beside the one that answers, a step of the log at a time.

One that the store keeps is written in the transaction that records how far it has come.  One that
is kept elsewhere is brought to what the vault holds first, and its position recorded then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remembrancer.application.document_vectors import DocumentText, DocumentVectors, Embedded
from remembrancer.application.entry_index import index_id, labels
from remembrancer.application.entry_versions import floors, kept_versions, places, touched
from remembrancer.application.index_points import IndexPoints
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    IndexState,
    Original,
    Recorded,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorPoint,
    VectorStore,
)
from remembrancer.application.whose import places_by_owner
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import ReindexStoppedError, StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector

EVENTS_AT_ONCE = 256
"""Events a step takes in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step has come to."""

    index: VectorIndex
    caught_up: bool = False
    """Whether the log had nothing more as it was read, so that the index may be looked at and
    switched to; on a busy memory it has something more at once."""


class IndexBuilding:
    """Takes the log into an index that is being built."""

    def __init__(  # one port each
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        indexes: VectorIndexes,
        points: IndexPoints,
        vectors: DocumentVectors,
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._vault = vault
        self._indexes = indexes
        self._points = points
        self._vectors = vectors
        self._transactions = transactions

    def step(self, index: VectorIndex, *, allow_gaps: bool) -> Step:
        """Take in the next events.

        Raises:
            ReindexStoppedError: vectors couldn't be bought; what was is kept.
            StoreUnavailableError: the index is kept elsewhere, and doesn't answer.
        """
        records = self._log.follow(after_position=index.position, limit=EVENTS_AT_ONCE)
        if not records:
            return Step(index=index, caught_up=True)
        if index.follows:
            index = self._there(index, records, allow_gaps=allow_gaps)
        else:
            index = self._here(index, records, allow_gaps=allow_gaps)
        return Step(index=index, caught_up=len(records) < EVENTS_AT_ONCE)

    def caught_up(self, index: VectorIndex, *, allow_gaps: bool) -> VectorIndex:
        """Take in all there is; as :meth:`step`."""
        while not (step := self.step(index, allow_gaps=allow_gaps)).caught_up:
            index = step.index
        return step.index

    def switched(self, index: VectorIndex, *, hurry: bool = False) -> VectorIndex | None:
        """Let an index answer; None if something was written since: take it in first.

        With ``hurry`` the little that was written since is taken in here, while nobody else
        writes: where others write without end, the switch would never come otherwise.  Not where
        a model elsewhere would have to be asked, or the index is kept elsewhere.
        """
        with self._transactions.begin(alone=True):
            now = self.as_it_is(index)
            if now.state is IndexState.ACTIVE:
                return now
            if hurry and not now.follows and self._vectors.can_embed_here(now.embedding_tuple):
                index = self.caught_up(index, allow_gaps=True)
            if self._log.follow(after_position=index.position, limit=1):
                return None
            return self._indexes.activate(index)

    def as_it_is(self, index: VectorIndex) -> VectorIndex:
        """Return the index as it stands: two that reindex at once build one, and one is first.

        Raises:
            StoreUnavailableError: others finished it, and a further one since.
        """
        now = next((one for one in self._indexes.all() if one.number == index.number), index)
        if now.state is IndexState.RETIRED:
            raise StoreUnavailableError(
                store=f"vector index {index.number}", problem="another was put in its place"
            )
        return now

    def fill(self, index: VectorIndex, wanted: Sequence[EntryId]) -> tuple[int, bool]:
        """Give vectors to versions that have none; return how many, and whether to go on."""
        if index.follows:
            brought = self._points.bring(index, wanted, {}, may_buy=True)
            with self._transactions.begin():
                self._points.done(index, brought.rows)
            return brought.points, not brought.unanswered or brought.points > 0
        store = self._indexes.store(index)
        versions = kept_versions(self._vault, wanted)
        here = store.vectors([index_id(one) for one in versions])
        absent = [one for one in versions if index_id(one) not in here]
        found = self._embedded(absent, versions, index.embedding_tuple)
        return self._write(store, absent, found.vectors), not found.nobody_answered

    # -- Elsewhere ---------------------------------------------------------

    def _there(
        self, index: VectorIndex, records: Sequence[Recorded], *, allow_gaps: bool
    ) -> VectorIndex:
        entry_ids, erased = touched(record.event for record in records)
        brought = self._points.bring(index, entry_ids, erased, may_buy=True)
        gaps = set() if allow_gaps else set(brought.unanswered)
        position = _position_before(records, gaps, index.position)
        with self._transactions.begin():
            now = self.as_it_is(index)
            self._points.done(index, brought.rows)
            if now.state is IndexState.BUILDING and position != index.position:
                now = self._indexes.advance(index, position)
        if gaps:
            raise self._stopped(next(iter(brought.unanswered.values())), position)
        return now

    # -- In the store ------------------------------------------------------

    def _here(
        self, index: VectorIndex, records: Sequence[Recorded], *, allow_gaps: bool
    ) -> VectorIndex:
        store = self._indexes.store(index)
        entry_ids, erased = touched(record.event for record in records)
        versions = kept_versions(self._vault, entry_ids)
        # A model works or a provider is asked: outside the transaction.
        found = self._found(index, versions)
        gaps = set() if allow_gaps else {versions[place].entry_id for place in found.unanswered}
        position = _position_before(records, gaps, index.position)
        with self._transactions.begin():
            now = self.as_it_is(index)
            if now.state is IndexState.ACTIVE:
                return now
            self._write(store, versions, found.vectors)
            for entry_id, count in erased.items():
                self._drop(store, entry_id, count)
            if position != index.position:
                index = self._indexes.advance(index, position)
        if gaps:
            raise self._stopped(next(iter(found.unanswered.values())), position)
        return index

    def _found(self, index: VectorIndex, versions: Sequence[Original]) -> Embedded:
        """Return vectors, from an index elsewhere where it has them, else made or bought."""
        active = self._indexes.active()
        if active is None or not active.follows or active.embedding_tuple != index.embedding_tuple:
            return self._embedded(versions, versions, index.embedding_tuple)
        here = self._points.at_hand(active, versions)
        vectors = [here.get(index_id(one)) for one in versions]
        missing = [i for i, one in enumerate(versions) if index_id(one) not in here]
        made = self._embedded([versions[i] for i in missing], versions, index.embedding_tuple)
        for place, vector in zip(missing, made.vectors, strict=True):
            vectors[place] = vector
        unanswered = {missing[i]: reason for i, reason in made.unanswered.items()}
        return Embedded(vectors=vectors, unanswered=unanswered)

    def _embedded(
        self, wanted: Sequence[Original], versions: Sequence[Original], space: EmbeddingTuple
    ) -> Embedded:
        """Embed ``wanted``, which are among all ``versions`` of their entries."""
        levels = floors(versions)
        documents = [
            DocumentText(
                tenant=one.tenant,
                owner=one.owner,
                sensitivity=levels[index_id(one)],
                text=one.text,
            )
            for one in wanted
        ]
        return self._vectors.embedded(documents, space)

    def _write(
        self, store: VectorStore, versions: Sequence[Original], vectors: Sequence[Vector | None]
    ) -> int:
        """Write what is still as it was read: nothing erased or corrected since gets a vector.

        What has no vector now loses the one that an earlier version may have left in its place.
        """
        written = 0
        with self._transactions.begin():
            for (tenant, owner), found in places_by_owner(versions):
                with self._transactions.acting_for(tenant, owner):
                    now = self._vault.indexed([index_id(versions[i]) for i in found])
                    points = []
                    for one, vector in ((versions[i], vectors[i]) for i in found):
                        still = now.get(index_id(one))
                        if vector is None:
                            store.delete(index_id(one))
                        elif still is not None and still.digest == one.digest:
                            points.append(VectorPoint(index_id(one), vector, labels(one)))
                    store.upsert_many(points)
                    written += len(points)
        return written

    def _drop(self, store: VectorStore, entry_id: EntryId, count: int) -> None:
        """Remove what an erased entry of ``count`` versions had in an index."""
        tenant = self._vault.tenant_of_erased(entry_id)
        if tenant is None:  # Never here: the log is another's.
            return
        with self._transactions.acting_for(tenant):
            store.delete_many(list(places({entry_id: count})))

    def _stopped(self, reason: str, position: int) -> ReindexStoppedError:
        return ReindexStoppedError(reason=reason, position=position, end=self._log.position())


def _position_before(records: Sequence[Recorded], gaps: set[EntryId], position: int) -> int:
    """Return the position of the last event before the first that is about one of ``gaps``."""
    for record in records:
        if not gaps.isdisjoint(touched([record.event])[0]):
            break
        position = record.position
    return position
