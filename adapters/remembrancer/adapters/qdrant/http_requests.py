"""Requests in JSON, over the connections of Qdrant's client.

Written and read whole by pydantic's JSON, which reads base64 and ids on its way; the HTTP client
above the connections is left out, as its headers, cookies and redirects take half a millisecond.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar
from uuid import UUID

import httpx
import numpy as np
from pydantic import ConfigDict, TypeAdapter
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from typing_extensions import TypedDict, override

from remembrancer.adapters.qdrant.options import Consistency
from remembrancer.adapters.qdrant.payload import READ_FIELDS
from remembrancer.adapters.qdrant.requests import (
    Batch,
    Conditions,
    Point,
    Requests,
    Wanted,
)
from remembrancer.adapters.qdrant.transport import DeadlineTransport
from remembrancer.domain.identity import EntryId

if TYPE_CHECKING:
    from remembrancer.adapters.qdrant.rows import Rows

DECIMALS = 9
"""Of a direction's numbers: half as long as all, and off by less than float32 itself is."""
_OK = 200


class _Payload(TypedDict):
    __pydantic_config__ = ConfigDict(val_json_bytes="base64")  # type: ignore[misc]  # pydantic's way

    numbers: bytes
    norm: str
    version: NotRequired[int]


class _Point(TypedDict):
    id: UUID
    score: NotRequired[float]
    payload: NotRequired[_Payload | None]


class _Points(TypedDict):
    points: list[_Point]


class _Nearest(TypedDict):
    result: _Points


class _Retrieved(TypedDict):
    result: list[_Point]


class _Update(TypedDict):
    status: str


class _Written(TypedDict):
    result: _Update


_BODY = TypeAdapter(Mapping[str, Any])
_NEAREST = TypeAdapter(_Nearest)
_RETRIEVED = TypeAdapter(_Retrieved)
_WRITTEN = TypeAdapter(_Written)
_Answer = TypeVar("_Answer")


class HttpRequests(Requests):
    """Speaks to a server by HTTP."""

    def __init__(
        self,
        *,
        transport: DeadlineTransport,
        address: str,
        headers: Mapping[str, str],
        timeout: Callable[[], int],
        consistency: Consistency | None,
    ) -> None:
        """Ask nothing.

        The transport keeps the deadline; ``timeout`` gives the whole seconds of it that are left
        for the server.
        """
        self._transport = transport
        self._address = httpx.URL(address)
        all_headers = {**headers, "content-type": "application/json"}
        self._headers = [(name.encode(), value.encode()) for name, value in all_headers.items()]
        self._timeout = timeout
        self._reading = "" if consistency is None else f"&consistency={consistency}"

    def __repr__(self) -> str:
        return f"HttpRequests({self._address})"

    @override
    def nearest(self, collection: str, wanted: Wanted) -> list[Point]:
        body: dict[str, Any] = {
            "query": _decimals(wanted.direction)[0],
            "limit": wanted.limit,
            "params": wanted.params,
            "with_payload": READ_FIELDS if wanted.with_numbers else False,
        }
        if wanted.conditions:
            body["filter"] = filter_of(wanted.conditions)
        if wanted.at_least is not None:
            body["score_threshold"] = wanted.at_least
        path = f"{collection}/points/query"
        answer = self._answer(_NEAREST, "POST", path, self._reading, body)
        return list(map(_point, answer["result"]["points"]))

    @override
    def retrieved(
        self, collection: str, ids: Sequence[EntryId], *, with_numbers: bool
    ) -> list[Point]:
        body = {"ids": ids, "with_payload": READ_FIELDS if with_numbers else False}
        answer = self._answer(_RETRIEVED, "POST", f"{collection}/points", self._reading, body)
        return list(map(_point, answer["result"]))

    @override
    def upsert(self, collection: str, batch: Batch) -> str:
        body = {
            "batch": {
                "ids": batch.ids,
                "vectors": _decimals(batch.directions),
                "payloads": batch.payloads,
            }
        }
        waiting = "&wait=true&ordering=strong"
        answer = self._answer(_WRITTEN, "PUT", f"{collection}/points", waiting, body)
        return answer["result"]["status"]

    def _answer(
        self,
        expected: TypeAdapter[_Answer],
        method: str,
        path: str,
        more: str,
        body: Mapping[str, Any],
    ) -> _Answer:
        """Send one request; raise what the client would raise."""
        target = f"{self._address.path.rstrip('/')}/collections/{path}?timeout={self._timeout()}"
        content = _BODY.dump_json(body)
        try:
            status, answer = self._transport.answered(
                method, self._address, target + more, headers=self._headers, content=content
            )
        except Exception as error:
            raise ResponseHandlingException(error) from error
        if status != _OK:
            raise UnexpectedResponse(status, "", answer, httpx.Headers())
        return expected.validate_json(answer)


def filter_of(conditions: Conditions) -> dict[str, Any]:
    """Return conditions as Qdrant's JSON has them."""
    return {
        "must": [
            {
                "key": field,
                "match": {"value": values[0]} if len(values) == 1 else {"any": values},
            }
            for field, values in conditions
        ]
    }


def _point(one: _Point) -> Point:
    id_, score = EntryId(one["id"]), one.get("score", 0.0)
    payload = one.get("payload")
    if payload is None:
        return Point(id_, score, b"", "", None)
    return Point(id_, score, payload["numbers"], payload["norm"], payload.get("version"))


def _decimals(directions: "Rows") -> list[list[float]]:
    found: list[list[float]] = directions.astype(np.float64).round(DECIMALS).tolist()
    return found
