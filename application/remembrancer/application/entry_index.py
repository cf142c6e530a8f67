"""Entries in the indexes: what stands where, under which labels.

A current version stands under the entry's id, a superseded one under its
:func:`~remembrancer.domain.identity.version_id`, so that historical recall finds it too.
"""

from collections.abc import Iterable, Sequence

from remembrancer.application.ports import (
    Original,
    OutboxErasure,
    OutboxVector,
    SparseDocument,
    SparseIndex,
    VectorIndex,
    VectorIndexes,
    VectorOutbox,
    VectorPoint,
)
from remembrancer.domain.entry import subject_key
from remembrancer.domain.identity import EntryId, version_id
from remembrancer.domain.vector import Vector

TENANT, OWNER, SCOPE, KIND, SENSITIVITY, STATE = (
    "tenant",
    "owner",
    "scope",
    "kind",
    "sensitivity",
    "state",
)
HEADING = "heading"
"""The metadata key of the headings that a text stands under, the outermost first."""
CURRENT, SUPERSEDED = "current", "superseded"
YES = "1"


def subject_label(subject: str) -> str:
    """Return the metadata key that marks an entry as being about ``subject``."""
    return f"subject:{subject_key(subject)}"


def index_id(original: Original) -> EntryId:
    """Return the id under which a version stands in every index."""
    if original.superseded_at is None:
        return original.entry_id
    return version_id(original.entry_id, original.version)


def labels(original: Original) -> dict[str, str]:
    """Return the metadata by which indexes filter."""
    found = {
        TENANT: original.tenant,
        OWNER: original.owner,
        SCOPE: original.scope,
        KIND: original.kind,
        SENSITIVITY: original.sensitivity.word,
        STATE: CURRENT if original.superseded_at is None else SUPERSEDED,
    }
    for subject in original.subjects:
        found[subject_label(subject)] = YES
    return found


def searchable_text(original: Original) -> str:
    """Return what keyword search sees: the text, the headings it stands under, the subjects.

    A section of a document seldom repeats the words of its document's title, and a question
    often has them: without the headings it would find the title alone.
    """
    headings = original.metadata.get(HEADING)
    beside = (headings, *original.subjects) if headings else original.subjects
    return "\n".join((original.text, *beside)) if beside else original.text


class EntryIndex:
    """Writes entries into the sparse index and the vector indexes of one store.

    Called inside the transaction that keeps the originals, so that event, text, sparse row and
    vector are committed together (design section 7).  What an index elsewhere has to get is left
    in the outbox, in the same transaction (adr/0020).
    """

    def __init__(
        self, *, sparse: SparseIndex, indexes: VectorIndexes, outbox: VectorOutbox
    ) -> None:
        self._sparse = sparse
        self._indexes = indexes
        self._outbox = outbox

    def add(
        self,
        originals: Sequence[Original],
        vectors: Sequence[Vector | None],
        index: VectorIndex | None,
    ) -> None:
        """Index new versions in ``index``; one without a vector is found by its words alone."""
        documents = [_document(one) for one in originals]
        self._sparse.upsert_many(documents)
        if index is None:
            return
        if index.follows:
            self._outbox.put(index, list(map(left_for, originals, vectors)))
        else:
            self._put(index, documents, vectors)

    def supersede(
        self, old: Original, new: Original, vector: Vector | None, index: VectorIndex | None
    ) -> None:
        """Move ``old`` (already marked superseded) aside and put ``new`` in its place."""
        if index is not None and not index.follows:
            store = self._indexes.store(index)
            old_vector = store.vectors([old.entry_id]).get(old.entry_id)
            if vector is None:
                store.delete(old.entry_id)
            self._put(index, [_document(old)], [old_vector])
        self._sparse.upsert_many([_document(old)])
        self.add([new], [vector], index)

    def drop(self, entry: Original, versions: Sequence[int]) -> None:
        """Remove all versions of an entry from every index there is, active or not."""
        places = [entry.entry_id, *(version_id(entry.entry_id, one) for one in versions)]
        for place in places:
            self._sparse.delete(place)
        elsewhere = []
        for index in self._indexes.all():
            if index.follows:
                elsewhere.append(index)
            else:
                self._indexes.store(index).delete_many(places)
        if elsewhere:
            erasure = OutboxErasure(
                tenant=entry.tenant,
                owner=entry.owner,
                entry_id=entry.entry_id,
                versions=max(versions),
            )
            self._outbox.erase(elsewhere, erasure)

    def _put(
        self,
        index: VectorIndex,
        documents: Iterable[SparseDocument],
        vectors: Iterable[Vector | None],
    ) -> None:
        """Put vectors under the ids and labels of their documents."""
        points = [
            VectorPoint(one.id, vector, one.metadata)
            for one, vector in zip(documents, vectors, strict=True)
            if vector is not None
        ]
        if points:
            self._indexes.store(index).upsert_many(points)


def _document(original: Original) -> SparseDocument:
    return SparseDocument(index_id(original), searchable_text(original), labels(original))


def left_for(original: Original, vector: Vector | None) -> OutboxVector:
    """Return what an index elsewhere gets of a version."""
    return OutboxVector(
        tenant=original.tenant,
        owner=original.owner,
        entry_id=original.entry_id,
        version=original.version,
        vector=vector,
    )
