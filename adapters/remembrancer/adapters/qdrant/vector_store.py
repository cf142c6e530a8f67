"""Vectors in one collection, found by Qdrant and scored by the domain's rule (adr/0019).

Qdrant compares float32 directions; how far its scores can be from the true ones is known.  So a
query asks for a few more than it needs, or, where a tie may reach past them, for all that could
tie; the stored numbers come back with them, and their true scores decide.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.qdrant.link import Asking, QdrantLink
from remembrancer.adapters.qdrant.local_folder import settle
from remembrancer.adapters.qdrant.payload import (
    NORM,
    NUMBERS,
    VERSION,
    Marks,
    directions,
    numbers,
    spelt,
)
from remembrancer.adapters.qdrant.translation import is_refusal
from remembrancer.application.ports.vector_store import (
    Filter,
    KeptVector,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.domain.errors import InvalidInputError, StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, checked_vector, cosine, norm

if TYPE_CHECKING:
    from array import array

FIRST_LIMIT_MAX = 4_096
"""Most points of a query's first request; more are asked for where so many are there."""
GROWTH = 4
IDS_AT_ONCE = 1_000
REQUEST_NUMBERS_MAX = 300_000
"""Numbers of vectors in one request: some 10 MB of JSON, where a server takes 32 by default."""
POINTS_AT_ONCE = 1_000
FLOAT32_STEP = 2.0**-24

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
        # Of either direction each number is rounded once, and their products' sum at each step.
        self._error = 1.01 * (dimensions + 8) * FLOAT32_STEP + 1e-12

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
            return _Search(self, asking, asked, top_k, conditions).best()

    @override
    def kept(self, ids: Sequence[EntryId]) -> dict[EntryId, KeptVector]:
        return {
            id_: KeptVector(numbers(payload), payload.get(VERSION))
            for id_, payload in self._retrieved(ids, [NUMBERS, VERSION])
        }

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        return {id_: numbers(payload) for id_, payload in self._retrieved(ids, [NUMBERS])}

    @override
    def present(self, ids: Sequence[EntryId]) -> set[EntryId]:
        return {id_ for id_, _ in self._retrieved(ids, [])}

    @override
    def count(self) -> int:
        with self._link.asking(self._link.options.timeout_s) as asking:
            self._opened(asking)
            return asking.client.count(
                self._collection, exact=True, timeout=asking.timeout()
            ).count

    # -- Requests ----------------------------------------------------------

    def _upsert(self, asking: Asking, new: Sequence[tuple[VectorPoint, "array[float]"]]) -> None:
        models = asking.models
        payloads = []
        for point, vector in new:
            payload = self._marks.payload(point.metadata)
            # In hexadecimal: a server's parser of decimals may round the last bit otherwise.
            payload[NUMBERS], payload[NORM] = spelt(vector), norm(vector).hex()
            if point.version is not None:
                payload[VERSION] = point.version
            payloads.append(payload)
        result = asking.client.upsert(
            self._collection,
            models.Batch(
                ids=[str(point.id) for point, _ in new],
                vectors=directions(vector for _, vector in new),
                payloads=payloads,
            ),
            wait=True,
            ordering=models.WriteOrdering.STRONG,
            timeout=asking.timeout(),
        )
        self._require_completed(asking, result)

    def _delete(self, asking: Asking, which: Any) -> None:
        result = asking.client.delete(
            self._collection,
            which,
            wait=True,
            ordering=asking.models.WriteOrdering.STRONG,
            timeout=asking.timeout(),
        )
        self._require_completed(asking, result)
        if self._link.is_local:
            settle(asking.client, self._collection)

    def _require_completed(self, asking: Asking, result: Any) -> None:
        if result.status != asking.models.UpdateStatus.COMPLETED:
            raise StoreUnavailableError(
                store=self._link.options.place,
                problem=f"says {result.status.value} to a write, not completed",
            )

    def _retrieved(
        self, ids: Sequence[EntryId], fields: list[str]
    ) -> list[tuple[EntryId, dict[str, Any]]]:
        with self._link.asking(self._link.options.write_timeout_s) as asking:
            self._opened(asking)
            return self.retrieved(asking, ids, fields)

    def retrieved(
        self, asking: Asking, ids: Sequence[EntryId], fields: list[str]
    ) -> list[tuple[EntryId, dict[str, Any]]]:
        """Return fields of the payloads of those ids that are here."""
        found: list[tuple[EntryId, dict[str, Any]]] = []
        at_once = IDS_AT_ONCE
        if NUMBERS in fields:
            at_once = max(1, min(at_once, REQUEST_NUMBERS_MAX // self._dimensions))
        for some in _batches(list(dict.fromkeys(ids)), at_once):
            records = asking.client.retrieve(
                self._collection,
                list(map(str, some)),
                with_payload=fields or False,
                with_vectors=False,
                consistency=_consistency(asking),
                timeout=asking.timeout(),
            )
            found += [(_id_of(record), record.payload or {}) for record in records]
        return found

    def found(  # what a request is made of
        self,
        asking: Asking,
        direction: list[float],
        limit: int,
        conditions: Sequence[tuple[str, tuple[str, ...]]],
        *,
        fields: list[str],
        at_least: float | None = None,
        exact: bool = False,
    ) -> list[Any]:
        """Return Qdrant's own nearest points, with fields of their payloads."""
        return list(
            asking.client.query_points(
                self._collection,
                query=direction,
                query_filter=_filter(asking, conditions),
                search_params=self._search_params(asking, limit, exact=exact),
                limit=limit,
                with_payload=fields or False,
                with_vectors=False,
                score_threshold=at_least,
                consistency=_consistency(asking),
                timeout=asking.timeout(),
            ).points
        )

    def _search_params(self, asking: Asking, limit: int, *, exact: bool) -> Any:
        options, models = self._link.options, asking.models
        if self._link.is_local:
            return None  # It compares with all, whatever is asked for.
        if exact or options.exact:
            return models.SearchParams(exact=True)
        quantization = None
        if options.quantization != "none":
            quantization = models.QuantizationSearchParams(
                rescore=True, oversampling=options.oversampling
            )
        return models.SearchParams(hnsw_ef=max(options.hnsw_ef, limit), quantization=quantization)

    @property
    def is_exact(self) -> bool:
        """Whether every answer is from a comparison with all."""
        return self._link.is_local or self._link.options.exact

    @property
    def error(self) -> float:
        """Return the most that Qdrant's scores can be away from the true ones."""
        return self._error


class _Search:
    """One query: candidates from Qdrant, true scores, and proof that no better one is missing."""

    def __init__(  # what a query is made of
        self,
        store: QdrantVectorStore,
        asking: Asking,
        asked: "array[float]",
        top_k: int,
        conditions: Sequence[tuple[str, tuple[str, ...]]],
    ) -> None:
        self._store = store
        self._asking = asking
        self._asked = asked
        self._length = norm(asked)
        [self._direction] = directions([asked])
        self._top_k = top_k
        self._conditions = conditions
        self._true: dict[EntryId, VectorMatch] = {}

    def best(self) -> list[VectorMatch]:
        """Return the ``top_k`` best by (score, then id)."""
        wanted = self._top_k + 4 + self._top_k // 16
        limit = min(wanted, FIRST_LIMIT_MAX)
        rough = self._rough(limit, fields=[NUMBERS, NORM, VERSION])
        if len(rough) < min(self._top_k, limit) and not self._store.is_exact:
            # The graph may have lost its way among what the filter leaves: look at all of that.
            rough = self._all_there_is(limit) or rough
        self._score((_id_of(point), point.payload or {}) for point in self._hopeful(rough))
        if len(rough) == limit and not self._is_settled(rough[-1].score):
            self._score_all_that_may_tie(limit)
        return self._sorted()[: self._top_k]

    def _all_there_is(self, limit: int) -> list[Any]:
        """Compare with all; nothing where the server was told to refuse that."""
        try:
            return self._rough(limit, fields=[NUMBERS, NORM, VERSION], exact=True)
        except Exception as error:
            if is_refusal(error):
                return []
            raise

    def _rough(self, limit: int, *, fields: list[str], **more: Any) -> list[Any]:
        return self._store.found(
            self._asking, self._direction, limit, self._conditions, fields=fields, **more
        )

    def _hopeful(self, rough: Sequence[Any]) -> list[Any]:
        """Leave out whose rough score is so low that the first ``top_k`` are surely better."""
        if len(rough) <= self._top_k:
            return list(rough)
        least = rough[self._top_k - 1].score - 2 * self._store.error
        return [point for point in rough if point.score >= least]

    def _is_settled(self, lowest: float) -> bool:
        """Say whether whatever scored below ``lowest`` is surely worse than the best found."""
        if len(self._true) < self._top_k:
            return False
        return lowest + self._store.error < self._cut()

    def _cut(self) -> float:
        return self._sorted()[self._top_k - 1].score

    def _score_all_that_may_tie(self, limit: int) -> None:
        at_least = None
        if len(self._true) >= self._top_k:
            at_least = self._cut() - 2 * self._store.error
        while True:
            limit *= GROWTH
            rough = self._rough(limit, fields=[], at_least=at_least)
            if len(rough) < limit:
                break
            if len(rough) >= self._top_k:
                at_least = rough[self._top_k - 1].score - 2 * self._store.error
                if rough[-1].score < at_least:
                    break
        hopeful = [_id_of(point) for point in self._hopeful(rough)]
        fields = [NUMBERS, NORM, VERSION]
        new = [id_ for id_ in hopeful if id_ not in self._true]
        self._score(self._store.retrieved(self._asking, new, fields))

    def _score(self, found: Iterable[tuple[EntryId, dict[str, Any]]]) -> None:
        for id_, payload in found:
            norms = self._length * float.fromhex(payload[NORM])
            score = cosine(self._asked, numbers(payload), norms=norms)
            self._true[id_] = VectorMatch(id_, score, payload.get(VERSION))

    def _sorted(self) -> list[VectorMatch]:
        return sorted(self._true.values(), key=lambda match: (-match.score, match.id))


def _id_of(point: Any) -> EntryId:
    return EntryId(UUID(str(point.id)))


def _filter(asking: Asking, conditions: Sequence[tuple[str, tuple[str, ...]]]) -> Any:
    if not conditions:
        return None
    models = asking.models
    return models.Filter(
        must=[
            models.FieldCondition(
                key=field,
                match=models.MatchValue(value=values[0])
                if len(values) == 1
                else models.MatchAny(any=list(values)),
            )
            for field, values in conditions
        ]
    )


def _consistency(asking: Asking) -> Any:
    wanted = asking.link.options.read_consistency
    if wanted is None or isinstance(wanted, int):
        return wanted
    return asking.models.ReadConsistencyType(wanted)


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
