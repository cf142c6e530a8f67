"""Vectors in one collection, found by Qdrant and scored by the domain's rule (adr/0019).

Qdrant compares float32 directions; how far its scores can be from the true ones is known.  So a
query asks for a few more than it needs, or, where a tie may reach past them, for all that could
tie; the stored numbers come back with them, and their true scores decide.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from remembrancer.adapters.qdrant.link import Asking, QdrantLink
from remembrancer.adapters.qdrant.local_folder import settle
from remembrancer.adapters.qdrant.payload import (
    NORM,
    NUMBERS,
    VERSION,
    Marks,
    spelt,
)
from remembrancer.adapters.qdrant.requests import COMPLETED, Batch, Point
from remembrancer.application.ports.vector_store import (
    Filter,
    KeptVector,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.domain.errors import InvalidInputError, StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, checked_vector

if TYPE_CHECKING:
    from remembrancer.adapters.qdrant.search import Searched

IDS_AT_ONCE = 1_000
REQUEST_NUMBERS_MAX = 300_000
"""Numbers of vectors in one request: some 10 MB of JSON, where a server takes 32 by default."""
POINTS_AT_ONCE = 1_000

Opened = Callable[[Asking], None]
"""Looks at the collection before it is first used; raises if it isn't what it should be."""


class QdrantVectorStore(VectorStore):
    """The points of one collection.

    A batch larger than one request may be left half done by a failure.  A write counts once
    Qdrant says *completed*; on anything else it is repeated by the projection, which changes
    nothing where it had been done.
    """

    def __init__(
        self, *, link: QdrantLink, collection: str, dimensions: int, marks: Marks, opened: Opened
    ) -> None:
        self._link = link
        self._collection = collection
        self._dimensions = dimensions
        self._marks = marks
        self._opened = opened

    # -- Writing -----------------------------------------------------------

    @override
    def upsert(self, id: EntryId, vector: Vector, metadata: Mapping[str, str]) -> None:
        self.upsert_many([VectorPoint(id, vector, metadata)])

    @override
    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        new = {
            point.id: (point, checked_vector(point.vector, self._dimensions)) for point in points
        }
        if not new:
            return
        size = max(1, min(POINTS_AT_ONCE, REQUEST_NUMBERS_MAX // self._dimensions))
        with self._link.asking(self._link.options.write_timeout_s) as asking:
            self._opened(asking)
            for some in _batches(list(new.values()), size):
                self._upsert(asking, some)
            if self._link.is_local:
                settle(asking.client, self._collection)

    @override
    def delete(self, id: EntryId) -> None:
        self.delete_many([id])

    @override
    def delete_many(self, ids: Sequence[EntryId]) -> None:
        for some in _batches(list(dict.fromkeys(ids)), IDS_AT_ONCE):
            # As short as a query: an erasure is tried while its caller waits.
            with self._link.asking(self._link.options.timeout_s) as asking:
                self._opened(asking)
                # Always by ids: a filter without conditions would match all.
                self._delete(asking, asking.models.PointIdsList(points=list(map(str, some))))

    @override
    def clear(self) -> None:
        with self._link.asking(self._link.options.write_timeout_s) as asking:
            self._opened(asking)
            everything = asking.models.Filter(must=[])
            self._delete(asking, asking.models.FilterSelector(filter=everything))

    # -- Finding -----------------------------------------------------------

    @override
    def query(self, vector: Vector, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        asked = checked_vector(vector, self._dimensions)
        if top_k < 1:
            raise InvalidInputError(field="top_k", problem="is below 1")
        conditions = self._marks.conditions(filter or {})
        if not all(values for _, values in conditions):
            return []  # One of none matches nothing.
        with self._link.asking(self._link.options.timeout_s) as asking:
            self._opened(asking)
            from remembrancer.adapters.qdrant import search  # noqa: PLC0415  # imports numpy

            question = search.Question(asked, top_k, conditions)
            return search.Search(self._searched(asking), question).best()

    @override
    def kept(self, ids: Sequence[EntryId]) -> dict[EntryId, KeptVector]:
        return {
            one.id: KeptVector(array("f", one.numbers), one.version)
            for one in self._retrieved(ids, with_numbers=True)
        }

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        return {id_: kept.vector for id_, kept in self.kept(ids).items()}

    @override
    def present(self, ids: Sequence[EntryId]) -> set[EntryId]:
        return {one.id for one in self._retrieved(ids, with_numbers=False)}

    @override
    def count(self) -> int:
        with self._link.asking(self._link.options.timeout_s) as asking:
            self._opened(asking)
            return asking.client.count(
                self._collection, exact=True, timeout=asking.timeout()
            ).count

    # -- Requests ----------------------------------------------------------

    def _upsert(self, asking: Asking, new: Sequence[tuple[VectorPoint, "array[float]"]]) -> None:
        from remembrancer.adapters.qdrant import exact_sums, rows  # noqa: PLC0415  # import numpy

        table = rows.rows_of([vector for _, vector in new])
        lengths = exact_sums.norms(table)
        payloads = []
        for (point, vector), length in zip(new, lengths, strict=True):
            payload = self._marks.payload(point.metadata)
            # In hexadecimal: a server's parser of decimals may round the last bit otherwise.
            payload[NUMBERS], payload[NORM] = spelt(vector), length.hex()
            if point.version is not None:
                payload[VERSION] = point.version
            payloads.append(payload)
        ids = [point.id for point, _ in new]
        batch = Batch(ids, rows.directions(table, lengths), payloads)
        self._require_completed(asking.requests.upsert(self._collection, batch))

    def _delete(self, asking: Asking, which: Any) -> None:
        result = asking.client.delete(
            self._collection,
            which,
            wait=True,
            ordering=asking.models.WriteOrdering.STRONG,
            timeout=asking.timeout(),
        )
        self._require_completed(result.status.value)
        if self._link.is_local:
            settle(asking.client, self._collection)

    def _require_completed(self, status: str) -> None:
        if status != COMPLETED:
            raise StoreUnavailableError(
                store=self._link.options.place,
                problem=f"says {status} to a write, not completed",
            )

    def _retrieved(self, ids: Sequence[EntryId], *, with_numbers: bool) -> list[Point]:
        with self._link.asking(self._link.options.write_timeout_s) as asking:
            self._opened(asking)
            return self._retrieved_by(asking, ids, with_numbers=with_numbers)

    def _retrieved_by(
        self, asking: Asking, ids: Sequence[EntryId], *, with_numbers: bool
    ) -> list[Point]:
        """Return those of ``ids`` that are here, in requests that a server takes."""
        found: list[Point] = []
        at_once = IDS_AT_ONCE
        if with_numbers:
            at_once = max(1, min(at_once, REQUEST_NUMBERS_MAX // self._dimensions))
        for some in _batches(list(dict.fromkeys(ids)), at_once):
            found += asking.requests.retrieved(self._collection, some, with_numbers=with_numbers)
        return found

    def _searched(self, asking: Asking) -> "Searched":
        """Return what a search asks of this collection."""
        from remembrancer.adapters.qdrant import search  # noqa: PLC0415  # imports numpy

        return search.Searched(
            nearest=partial(asking.requests.nearest, self._collection),
            retrieved=partial(self._retrieved_by, asking, with_numbers=True),
            params=self._search_params,
            is_exact=self._link.is_local or self._link.options.exact,
            error=search.greatest_error(self._dimensions),
        )

    def _search_params(self, limit: int) -> dict[str, Any]:
        options = self._link.options
        if options.exact:
            return {"exact": True}
        found: dict[str, Any] = {"hnsw_ef": max(options.hnsw_ef, limit)}
        if options.quantization != "none":
            found["quantization"] = {"rescore": True, "oversampling": options.oversampling}
        return found


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
