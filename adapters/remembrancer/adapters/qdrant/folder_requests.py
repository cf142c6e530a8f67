"""Requests to a folder of this machine, by the methods of Qdrant's client."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from qdrant_client import models
from typing_extensions import override

from remembrancer.adapters.qdrant.http_requests import filter_of
from remembrancer.adapters.qdrant.payload import NORM, NUMBERS, READ_FIELDS, VERSION, read
from remembrancer.adapters.qdrant.requests import Batch, Payload, Point, Requests, Wanted
from remembrancer.domain.identity import EntryId

if TYPE_CHECKING:
    from qdrant_client import QdrantClient


class FolderRequests(Requests):
    """Asks a client in local mode, which compares with all and waits for nobody."""

    def __init__(self, *, client: "QdrantClient") -> None:
        self._client = client

    @override
    def nearest(self, collection: str, wanted: Wanted) -> list[Point]:
        conditions = models.Filter.model_validate(filter_of(wanted.conditions))
        answer = self._client.query_points(
            collection,
            query=wanted.direction.tolist()[0],
            query_filter=conditions if wanted.conditions else None,
            limit=wanted.limit,
            with_payload=list(READ_FIELDS) if wanted.with_numbers else False,
            with_vectors=False,
            score_threshold=wanted.at_least,
        )
        return [_point(one.id, one.score, one.payload) for one in answer.points]

    @override
    def retrieved(
        self, collection: str, ids: Sequence[EntryId], *, with_numbers: bool
    ) -> list[Point]:
        records = self._client.retrieve(
            collection,
            list(map(str, ids)),
            with_payload=list(READ_FIELDS) if with_numbers else False,
            with_vectors=False,
        )
        return [_point(one.id, 0.0, one.payload) for one in records]

    @override
    def upsert(self, collection: str, batch: Batch) -> str:
        points = models.Batch(
            ids=list(map(str, batch.ids)),
            vectors=batch.directions.tolist(),
            payloads=[dict(payload) for payload in batch.payloads],
        )
        return str(self._client.upsert(collection, points).status.value)


def _point(id_: object, score: float, payload: Payload | None) -> Point:
    known = EntryId(UUID(str(id_)))
    if not payload:
        return Point(known, score, b"", "", None)
    return Point(known, score, read(payload[NUMBERS]), payload[NORM], payload.get(VERSION))
