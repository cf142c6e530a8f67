"""Whether an index that was built holds what it should, before it answers.

Every version that the vault keeps is looked for, and nothing else may be there; some vectors are
compared with where they came from; and some of them must find themselves first.

Others write meanwhile, without end on a busy memory.  So where the store keeps the vectors, all is
looked at as it was at one moment; and what the log tells of entries since the position that the
index has reached is left aside.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from remembrancer.application.document_vectors import DocumentVectors
from remembrancer.application.entry_index import OWNER, SCOPE, TENANT, index_id
from remembrancer.application.entry_versions import touched, written
from remembrancer.application.ports import (
    EntryVault,
    EventLog,
    Original,
    Recorded,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorStore,
)
from remembrancer.domain.counted import counted
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, cosine, norm

EVENTS_AT_ONCE = 1_000
SAMPLES_MAX = 64
NEIGHBOURS = 10
LIKE_ENOUGH = 0.9999
"""Cosine of a vector with itself as another run, or another machine, has computed it."""


class IndexCheck:
    """Looks at an index, and changes nothing."""

    def __init__(
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        indexes: VectorIndexes,
        vectors: DocumentVectors,
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._vault = vault
        self._indexes = indexes
        self._vectors = vectors
        self._transactions = transactions

    def problem(self, index: VectorIndex) -> str | None:
        """Return what is wrong with an index that has come to its position; None for nothing.

        Where it is kept elsewhere, what others write meanwhile may look like something wrong:
        look again.
        """
        # Elsewhere nothing is of one moment, and waiting for it shouldn't hold a snapshot open.
        one_moment = nullcontext() if index.follows else self._transactions.snapshot()
        with one_moment:
            store = self._indexes.store(index)
            present, samples, absent = self._counted(store)
            count = store.count()
            new, erased = self._since(index)
            if abs(present - count) > (erased if index.follows else 0):
                return f"it has {counted(count, 'vector')}, where {present} are of kept versions"
            samples = [one for one in samples if one.entry_id not in new]
            absent = [one for one in absent if one.entry_id not in new]
            return (
                self._absent_for_nothing(index, absent)
                or self._unlike(index, store, samples)
                or _neighbourless(store, samples)
            )

    def _since(self, index: VectorIndex) -> tuple[set[EntryId], int]:
        """Return who changed since the index's position, and of how many versions erasures were.

        So many vectors more or fewer may be elsewhere, where those go at another moment.
        """
        new: set[EntryId] = set()
        gone = 0
        for records in self._told(after_position=index.position):
            entry_ids, erased = touched(record.event for record in records)
            new.update(entry_ids, erased)
            gone += sum(erased.values())
        return new, gone

    def _counted(self, store: VectorStore) -> tuple[int, list[Original], list[Original]]:
        """Return how many kept versions are there, and some of those that are and aren't."""
        present = 0
        stride = max(1, self._log.position() // SAMPLES_MAX)
        samples: list[Original] = []
        absent: list[Original] = []
        for records in self._told(after_position=0):
            with self._transactions.snapshot():
                found = self._vault.versions(written(record.event for record in records))
                there = store.present([index_id(one) for one in found.values()])
            present += len(there)
            for one in found.values():
                if index_id(one) not in there:
                    absent += [one] if len(absent) < SAMPLES_MAX else []
                elif (present + one.version) % stride == 0 or len(samples) < NEIGHBOURS:
                    samples += [one] if len(samples) < SAMPLES_MAX else []
        return present, samples, absent

    def _told(self, *, after_position: int) -> Iterator[Sequence[Recorded]]:
        while records := self._log.follow(after_position=after_position, limit=EVENTS_AT_ONCE):
            after_position = records[-1].position
            yield records

    def _absent_for_nothing(self, index: VectorIndex, absent: Sequence[Original]) -> str | None:
        made = self._made(index, absent)
        if any(vector is not None for vector in made):
            return "a version that can have a vector has none"
        return None

    def _unlike(
        self, index: VectorIndex, store: VectorStore, samples: Sequence[Original]
    ) -> str | None:
        kept = store.vectors([index_id(one) for one in samples])
        for one, vector in zip(samples, self._made(index, samples), strict=True):
            stored = kept.get(index_id(one))
            if stored is None or vector is None:
                continue
            if cosine(vector, stored, norms=norm(vector) * norm(stored)) < LIKE_ENOUGH:
                return "a vector isn't its text's"
        return None

    def _made(self, index: VectorIndex, versions: Sequence[Original]) -> list[Vector | None]:
        """Make vectors afresh, where that costs nothing."""
        if not versions or not self._vectors.can_embed_here(index.embedding_tuple):
            return [None] * len(versions)
        return self._vectors.embedded(versions, index.embedding_tuple).vectors


def _neighbourless(store: VectorStore, samples: Sequence[Original]) -> str | None:
    vectors = store.vectors([index_id(one) for one in samples[:NEIGHBOURS]])
    for one in samples[:NEIGHBOURS]:
        vector = vectors.get(index_id(one))
        if vector is None:
            continue
        labels = {TENANT: one.tenant, OWNER: one.owner, SCOPE: one.scope}
        found = store.query(vector, NEIGHBOURS, labels)
        # Not always itself: others may have the very same text.
        if not found or found[0].score < LIKE_ENOUGH:
            return "a vector doesn't find itself"
    return None
