"""Requests in protocol buffers, by the stubs of Qdrant's client (``client.grpc_points``)."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import ConfigDict, TypeAdapter
from qdrant_client import grpc
from typing_extensions import override

from remembrancer.adapters.qdrant.options import Consistency
from remembrancer.adapters.qdrant.payload import NORM, NUMBERS, READ_FIELDS, VERSION
from remembrancer.adapters.qdrant.requests import (
    COMPLETED,
    Batch,
    Conditions,
    Point,
    Requests,
    Wanted,
)
from remembrancer.domain.identity import EntryId

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from remembrancer.adapters.qdrant.rows import Rows

_FLOAT_BYTES = 4
# Through JSON, as pydantic reads ids and base64 there several times faster than Python does.
_TEXTS = TypeAdapter(list[str])
_IDS = TypeAdapter(list[UUID])
_NUMBERS = TypeAdapter(list[bytes], config=ConfigDict(val_json_bytes="base64"))
_NOTHING = grpc.WithPayloadSelector(enable=False)
_FIELDS = grpc.WithPayloadSelector(include=grpc.PayloadIncludeSelector(fields=READ_FIELDS))


class GrpcRequests(Requests):
    """Speaks to a server by gRPC."""

    def __init__(
        self,
        *,
        client: "QdrantClient",
        timeout: Callable[[], int],
        remaining: Callable[[], float],
        consistency: Consistency | None,
    ) -> None:
        """Ask nothing.

        ``timeout`` gives the whole seconds that the server may take, ``remaining`` what is left
        until the deadline.
        """
        self._client = client
        self._timeout = timeout
        self._remaining = remaining
        self._reading = _consistency(consistency)

    @override
    def nearest(self, collection: str, wanted: Wanted) -> list[Point]:
        [direction] = map(grpc.DenseVector.FromString, _packed(wanted.direction))
        request = grpc.QueryPoints(
            collection_name=collection,
            query=grpc.Query(nearest=grpc.VectorInput(dense=direction)),
            filter=_filter(wanted.conditions),
            params=grpc.SearchParams(**wanted.params),
            limit=wanted.limit,
            with_payload=_FIELDS if wanted.with_numbers else _NOTHING,
            score_threshold=wanted.at_least,
            read_consistency=self._reading,
            timeout=self._timeout(),
        )
        answer = self._client.grpc_points.Query(request, timeout=self._remaining())
        scores = [one.score for one in answer.result]
        return _points(answer.result, scores, with_numbers=wanted.with_numbers)

    @override
    def retrieved(
        self, collection: str, ids: Sequence[EntryId], *, with_numbers: bool
    ) -> list[Point]:
        request = grpc.GetPoints(
            collection_name=collection,
            ids=[grpc.PointId(uuid=str(one)) for one in ids],
            with_payload=_FIELDS if with_numbers else _NOTHING,
            with_vectors=grpc.WithVectorsSelector(enable=False),
            read_consistency=self._reading,
            timeout=self._timeout(),
        )
        answer = self._client.grpc_points.Get(request, timeout=self._remaining())
        return _points(answer.result, [0.0] * len(answer.result), with_numbers=with_numbers)

    @override
    def upsert(self, collection: str, batch: Batch) -> str:
        request = grpc.UpsertPoints(
            collection_name=collection,
            wait=True,
            ordering=grpc.WriteOrdering(type=grpc.WriteOrderingType.Strong),
            timeout=self._timeout(),
        )
        packed = _packed(batch.directions)
        for id_, direction, payload in zip(batch.ids, packed, batch.payloads, strict=True):
            # Filled where it stands: a message that is given another one copies it.
            point = request.points.add()
            point.id.uuid = str(id_)
            point.vectors.vector.dense.MergeFromString(direction)
            for key, value in payload.items():
                _fill(point.payload[key], value)
        answer = self._client.grpc_points.Upsert(request, timeout=self._remaining())
        status = answer.result.status
        if status == grpc.UpdateStatus.Completed:
            return COMPLETED
        return str(grpc.UpdateStatus.Name(status))


def _filter(conditions: Conditions) -> Any:
    if not conditions:
        return None
    return grpc.Filter(
        must=[
            grpc.Condition(field=grpc.FieldCondition(key=field, match=_match(values)))
            for field, values in conditions
        ]
    )


def _match(values: Sequence[str]) -> Any:
    if len(values) == 1:
        return grpc.Match(keyword=values[0])
    return grpc.Match(keywords=grpc.RepeatedStrings(strings=values))


def _consistency(wanted: Consistency | None) -> Any:
    if wanted is None:
        return None
    if isinstance(wanted, int):
        return grpc.ReadConsistency(factor=wanted)
    return grpc.ReadConsistency(type=grpc.ReadConsistencyType.Value(wanted.capitalize()))


def _packed(directions: "Rows") -> Iterator[bytes]:
    """Return each row as a written ``DenseVector``: its float32 bytes behind tag and length.

    So no number becomes an object of Python's, which is most of the time that a message takes.
    """
    dimensions = directions.shape[1]
    any_of_that_length = grpc.DenseVector(data=[0.0] * dimensions).SerializeToString()
    head = any_of_that_length[: -_FLOAT_BYTES * dimensions]
    return (head + row.tobytes() for row in directions.astype("<f4"))


def _fill(empty: Any, plain: str | int | Sequence[str]) -> None:
    """Put a payload's value into a message of its field."""
    if isinstance(plain, str):
        empty.string_value = plain
    elif isinstance(plain, int):
        empty.integer_value = plain
    else:
        empty.list_value.values.extend(grpc.Value(string_value=one) for one in plain)


def _points(found: Sequence[Any], scores: Sequence[float], *, with_numbers: bool) -> list[Point]:
    ids = map(EntryId, _IDS.validate_json(_TEXTS.dump_json([one.id.uuid for one in found])))
    if not with_numbers:
        return [Point(id_, score, b"", "", None) for id_, score in zip(ids, scores, strict=True)]
    payloads = [one.payload for one in found]
    spelt = _TEXTS.dump_json([payload[NUMBERS].string_value for payload in payloads])
    return [
        Point(
            id_,
            score,
            numbers,
            payload[NORM].string_value,
            payload[VERSION].integer_value if VERSION in payload else None,
        )
        for id_, score, numbers, payload in zip(
            ids, scores, _NUMBERS.validate_json(spelt), payloads, strict=True
        )
    ]
