"""Entries in the indexes: what stands where, under which labels.

A current version stands under the entry's id, a superseded one under its
:func:`~remembrancer.domain.identity.version_id`, so that historical recall finds it too.
"""

from collections.abc import Iterable, Sequence

from remembrancer.application.ports import (
    Original,
    SparseDocument,
    SparseIndex,
    VectorIndex,
    VectorIndexes,
    VectorPoint,
    VectorStore,
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
        SENSITIVITY: original.sensitivity.value,
        STATE: CURRENT if original.superseded_at is None else SUPERSEDED,
    }
    found.update((subject_label(subject), YES) for subject in original.subjects)
    return found


def searchable_text(original: Original) -> str:
    """Return what keyword search sees: the text, the headings it stands under, the subjects.

    A section of a document seldom repeats the words of its document's title, and a question
    often has them: without the headings it would find the title alone.
    """
    headings = filter(None, (original.metadata.get(HEADING),))
    return "\n".join((original.text, *headings, *original.subjects))


class EntryIndex:
    """Writes entries into the sparse index and the vector indexes of one store.

    Called inside the transaction that keeps the originals, so that event, text, sparse row and
    vector are committed together (design section 7).
    """

    def __init__(self, *, sparse: SparseIndex, indexes: VectorIndexes) -> None:
        self._sparse = sparse
        self._indexes = indexes

    def of(self, index: VectorIndex | None) -> VectorStore | None:
        """Return the vectors of ``index``, if there is one."""
        return None if index is None else self._indexes.store(index)

    def add(
        self,
        originals: Sequence[Original],
        vectors: Sequence[Vector | None],
        store: VectorStore | None,
    ) -> None:
        """Index versions; one without a vector is found by its words alone."""
        documents, points = [], []
        for original, vector in zip(originals, vectors, strict=True):
            place, metadata = index_id(original), labels(original)
            documents.append(SparseDocument(place, searchable_text(original), metadata))
            if vector is not None:
                points.append(VectorPoint(place, vector, metadata))
        self._sparse.upsert_many(documents)
        if store is not None and points:
            store.upsert_many(points)

    def supersede(
        self, old: Original, new: Original, vector: Vector | None, store: VectorStore | None
    ) -> None:
        """Move ``old`` (already marked superseded) aside and put ``new`` in its place."""
        old_vector = None
        if store is not None:
            old_vector = store.vectors([old.entry_id]).get(old.entry_id)
            if vector is None:
                store.delete(old.entry_id)
        self.add([old, new], [old_vector, vector], store)

    def drop(self, entry_id: EntryId, versions: Iterable[int]) -> None:
        """Remove all versions of an entry from every index there is, active or not."""
        places = [entry_id, *(version_id(entry_id, version) for version in versions)]
        for place in places:
            self._sparse.delete(place)
        for index in self._indexes.all():
            store = self._indexes.store(index)
            for place in places:
                store.delete(place)
