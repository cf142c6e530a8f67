"""The points of entries in an index elsewhere, brought to what the vault holds.

It may be called for the same entries again and again, by several at once, after a crash anywhere:
what it leaves is what the vault holds at its end.  For that it looks again once a write was
acknowledged, and undoes what was erased or corrected while the write was under way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from remembrancer.application.document_vectors import DocumentText, DocumentVectors
from remembrancer.application.entry_index import index_id, labels, left_for
from remembrancer.application.entry_versions import floors, kept_versions, places
from remembrancer.application.ports import (
    EntryVault,
    IndexState,
    KeptVector,
    Original,
    OutboxVector,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorOutbox,
    VectorPoint,
    VectorStore,
)
from remembrancer.application.whose import places_by_owner
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What has arrived."""

    rows: list[OutboxVector] = field(repr=False)
    """Of the outbox, done with: they go in the transaction that records the position."""
    points: int
    unanswered: Mapping[EntryId, str]
    """Entries whose vectors were to be bought and weren't, and the code why."""


@dataclass(slots=True, kw_only=True)
class _Wanted:
    """Versions of one batch, and the vectors found for them so far, by index id."""

    versions: list[Original]
    rows: dict[tuple[EntryId, int], OutboxVector] = field(repr=False)
    vectors: dict[EntryId, Vector | None] = field(repr=False)
    there: set[EntryId] = field(default_factory=set)
    """Those that are in place already."""

    def missing(self) -> list[Original]:
        """Return the versions that nobody has given a vector for."""
        return [
            one
            for one in self.versions
            if index_id(one) not in self.vectors and index_id(one) not in self.there
        ]


class IndexPoints:
    """Writes and deletes points, from the vectors that are nearest at hand."""

    def __init__(  # one port each
        self,
        *,
        vault: EntryVault,
        indexes: VectorIndexes,
        outbox: VectorOutbox,
        vectors: DocumentVectors,
        transactions: Transactions,
    ) -> None:
        self._vault = vault
        self._indexes = indexes
        self._outbox = outbox
        self._vectors = vectors
        self._transactions = transactions

    def bring(
        self,
        index: VectorIndex,
        entry_ids: Sequence[EntryId],
        erased: Mapping[EntryId, int],
        *,
        may_buy: bool = False,
    ) -> Brought:
        """Bring these entries' points to what the vault holds, outside transactions.

        A vector is taken from the outbox, from this index where it stands, or from the index of
        the same space that answers; only what none of them has is embedded.  With ``may_buy`` it
        may be bought as well, and lies in the outbox before it is sent on.

        Raises:
            StoreUnavailableError: the index doesn't answer; all can be done again.
        """
        store = self._indexes.store(index)
        rows: dict[tuple[EntryId, int], OutboxVector] = {}
        unanswered: dict[EntryId, str] = {}
        points = 0
        again = list(entry_ids)
        gone = list(places(erased))
        while again or gone:
            wanted = self._found(index, again)
            self._take_from_place(wanted, store)
            unanswered |= self._embed(index, wanted, may_buy=may_buy)
            points += self._write(store, wanted, gone)
            rows |= wanted.rows
            again, gone = self._changed(wanted)
        return Brought(rows=list(rows.values()), points=points, unanswered=unanswered)

    def erase(self, index: VectorIndex, erased: Mapping[EntryId, int]) -> None:
        """Delete all that erased entries had, given their version counts."""
        self._indexes.store(index).delete_many(list(places(erased)))

    def done(self, index: VectorIndex, rows: Sequence[OutboxVector]) -> None:
        """Take rows out of the outbox; joins the open transaction."""
        for (tenant, owner), found in places_by_owner(rows):
            with self._transactions.acting_for(tenant, owner):
                self._outbox.remove(index, [rows[i] for i in found])

    # -- Where vectors come from -------------------------------------------

    def _found(self, index: VectorIndex, entry_ids: Sequence[EntryId]) -> _Wanted:
        """Read versions, and vectors of the store's own, in one snapshot."""
        with self._transactions.snapshot():
            versions = kept_versions(self._vault, entry_ids)
            rows = self._outbox.vectors(index, [(one.entry_id, one.version) for one in versions])
            wanted = _Wanted(versions=versions, rows=rows, vectors={})
            for one in versions:
                row = rows.get((one.entry_id, one.version))
                if row is not None:
                    wanted.vectors[index_id(one)] = row.vector
            sibling = self._sibling(index)
            if sibling is not None and not sibling.follows:
                self._take(wanted, self._indexes.store(sibling).kept(_ids(wanted.missing())))
        if sibling is not None and sibling.follows:
            for place, vector in self.at_hand(sibling, wanted.missing()).items():
                wanted.vectors[place] = vector
        return wanted

    def at_hand(
        self, index: VectorIndex, versions: Sequence[Original]
    ) -> dict[EntryId, Vector | None]:
        """Return vectors that have reached an index elsewhere, or are on their way there.

        By index id; None is that of a text that has none.

        Raises:
            StoreUnavailableError: it doesn't answer, and what it has would have to be bought.
        """
        keys = [(one.entry_id, one.version) for one in versions]
        rows = self._outbox.vectors(index, keys)
        found = {
            index_id(one): rows[one.entry_id, one.version].vector
            for one in versions
            if (one.entry_id, one.version) in rows
        }
        missing = [one for one in versions if index_id(one) not in found]
        kept = self._kept_elsewhere(index, _ids(missing)) if missing else {}
        for one in missing:
            there = kept.get(index_id(one))
            if there is not None and there.version == one.version:
                found[index_id(one)] = there.vector
        return found

    def _kept_elsewhere(
        self, index: VectorIndex, ids: Sequence[EntryId]
    ) -> Mapping[EntryId, KeptVector]:
        if index.position == 0:
            return {}  # Nothing has been carried there yet.
        try:
            return self._indexes.store(index).kept(ids)
        except StoreUnavailableError:
            # It may be gone for good; what costs nothing is made afresh, the rest isn't bought.
            if not self._vectors.can_embed_here(index.embedding_tuple):
                raise
            return {}

    def _sibling(self, index: VectorIndex) -> VectorIndex | None:
        """Return the index that answers, if it is another of the same space."""
        for one in self._indexes.all():
            if one.state is IndexState.ACTIVE and one.number != index.number:
                return one if one.embedding_tuple == index.embedding_tuple else None
        return None

    @staticmethod
    def _take(wanted: _Wanted, kept: Mapping[EntryId, KeptVector]) -> None:
        for one in wanted.missing():
            found = kept.get(index_id(one))
            if found is not None and found.version in {None, one.version}:
                wanted.vectors[index_id(one)] = found.vector

    @staticmethod
    def _take_from_place(wanted: _Wanted, store: VectorStore) -> None:
        """See what is in its place already, and take what was there before it was superseded."""
        missing = wanted.missing()
        if not missing:
            return
        kept = store.kept([*_ids(missing), *(one.entry_id for one in missing)])
        for one in missing:
            place = index_id(one)
            standing, current = kept.get(place), kept.get(one.entry_id)
            if standing is not None and standing.version == one.version:
                wanted.there.add(place)
            elif current is not None and current.version == one.version:
                wanted.vectors[place] = current.vector

    def _embed(self, index: VectorIndex, wanted: _Wanted, *, may_buy: bool) -> dict[EntryId, str]:
        missing, space = wanted.missing(), index.embedding_tuple
        here = self._vectors.can_embed_here(space)
        if not missing or not (here or may_buy):
            return {}
        levels = floors(wanted.versions)
        found = self._vectors.embedded(
            [
                DocumentText(
                    tenant=one.tenant,
                    owner=one.owner,
                    sensitivity=levels[index_id(one)],
                    text=one.text,
                )
                for one in missing
            ],
            space,
        )
        answered = [i for i in range(len(missing)) if i not in found.unanswered]
        for i in answered:
            wanted.vectors[index_id(missing[i])] = found.vectors[i]
        if not here:
            self._keep_bought(index, wanted, [missing[i] for i in answered])
        return {missing[i].entry_id: reason for i, reason in found.unanswered.items()}

    def _keep_bought(
        self, index: VectorIndex, wanted: _Wanted, bought: Sequence[Original]
    ) -> None:
        """Leave in the outbox what was paid for: a crash must not buy it again."""
        with self._transactions.begin():
            for (tenant, owner), found in places_by_owner(bought):
                with self._transactions.acting_for(tenant, owner):
                    ids = [bought[i].entry_id for i in found]
                    kept = self._vault.current(ids)  # Not of what was erased meanwhile.
                    rows = [
                        left_for(bought[i], wanted.vectors[index_id(bought[i])])
                        for i in found
                        if bought[i].entry_id in kept
                    ]
                    self._outbox.put(index, rows)
                    wanted.rows |= {(row.entry_id, row.version): row for row in rows}

    # -- Writing -----------------------------------------------------------

    @staticmethod
    def _write(store: VectorStore, wanted: _Wanted, gone: Sequence[EntryId]) -> int:
        points, absent = [], list(gone)
        for one in wanted.versions:
            place = index_id(one)
            vector = wanted.vectors.get(place)
            if vector is not None:
                points.append(VectorPoint(place, vector, labels(one), one.version))
            elif place not in wanted.there:
                # Not even the one that an earlier version may have left there.
                absent.append(place)
        if points:
            store.upsert_many(points)
        if absent:
            store.delete_many(absent)
        return len(points)

    def _changed(self, wanted: _Wanted) -> tuple[list[EntryId], list[EntryId]]:
        """Return which entries were corrected, and which places erased, while it was written."""
        again: dict[EntryId, None] = {}
        gone: list[EntryId] = []
        with self._transactions.snapshot():
            now = self._vault.indexed(_ids(wanted.versions))
            kept = self._vault.current([one.entry_id for one in wanted.versions])
        for one in wanted.versions:
            still = now.get(index_id(one))
            if one.entry_id not in kept:
                gone.append(index_id(one))
            elif still is None or still.version != one.version:
                again[one.entry_id] = None
        return list(again), gone


def _ids(versions: Sequence[Original]) -> list[EntryId]:
    return [index_id(one) for one in versions]
