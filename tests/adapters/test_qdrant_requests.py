"""What is said to a server and how its answers are read, before endpoints that write it down.

A server with data is asked by the contract suites, where ``REMEMBRANCER_TEST_QDRANT_URL`` is set.
"""

import json
from array import array
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc as wire  # type: ignore[import-untyped]  # its stubs are a package of their own
import numpy as np
import pytest
from qdrant_client import grpc
from qdrant_client.grpc.points_service_pb2_grpc import (
    PointsServicer,
    add_PointsServicer_to_server,
)
from typing_extensions import override

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.qdrant.link import QdrantLink
from remembrancer.adapters.qdrant.options import Consistency, QdrantOptions
from remembrancer.adapters.qdrant.payload import spelt
from remembrancer.adapters.qdrant.requests import COMPLETED, Batch, Point, Requests, Wanted
from remembrancer.contracts.vector_examples import FIRST, SECOND
from remembrancer.domain.errors import StoreUnavailableError

NUMBERS = np.array([[0.1, -2.5, 1e-44, 3e38]], np.float32)
NORM = (3e38).hex()
DIRECTION = np.array([[0.6, -0.8, 1e-12, 0.1]], np.float32)
WANTED = Wanted(
    direction=DIRECTION,
    limit=7,
    conditions=[("owner", ("ana",)), ("scope", ("a", "b"))],
    params={"hnsw_ef": 128, "quantization": {"rescore": True, "oversampling": 2.0}},
    with_numbers=True,
    at_least=0.25,
)
BATCH = Batch([FIRST], DIRECTION, [{"owner": "ana", "marks": ["m", "n"], "version": 3}])
ANSWERED = [
    Point(FIRST, 0.5, NUMBERS.tobytes(), NORM, 3),
    Point(SECOND, 0.25, NUMBERS.tobytes(), NORM, None),
]


@dataclass
class Heard(PointsServicer):
    """Writes requests down, and answers as it was told."""

    status: str = "completed"
    unfit: bool = False
    requests: list[Any] = field(default_factory=list)

    @override
    def Query(self, request: Any, _context: object) -> Any:
        self.requests.append(request)
        found = [
            grpc.ScoredPoint(id=_id(one), score=one.score, payload=_payload(one))
            for one in ANSWERED
        ]
        return grpc.QueryResponse(result=found)

    @override
    def Get(self, request: Any, _context: object) -> Any:
        self.requests.append(request)
        return grpc.GetResponse(result=[grpc.RetrievedPoint(id=_id(ANSWERED[0]))])

    @override
    def Upsert(self, request: Any, _context: object) -> Any:
        self.requests.append(request)
        status = grpc.UpdateStatus.Value(self.status.capitalize())
        return grpc.PointsOperationResponse(result=grpc.UpdateResult(status=status))


@contextmanager
def by_grpc(heard: Heard, consistency: Consistency | None = None) -> Generator[Requests]:
    with ThreadPoolExecutor() as threads:
        server = wire.server(threads)
        add_PointsServicer_to_server(heard, server)  # type: ignore[no-untyped-call]  # generated
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        options = QdrantOptions(
            url="http://127.0.0.1:1", grpc=True, grpc_port=port, read_consistency=consistency
        )
        try:
            with _asked(options) as requests:
                yield requests
        finally:
            server.stop(0).wait()


@contextmanager
def by_http(heard: Heard, consistency: Consistency | None = None) -> Generator[Requests]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            heard.requests.append((self.path, dict(self.headers), json.loads(body)))
            points = [
                {"id": str(one.id), "score": one.score, "payload": _plain(one)} for one in ANSWERED
            ]
            result: Any = {"points": points}
            if self.command == "PUT":
                result = {"status": heard.status}
            elif "query" not in self.path:
                result = [{"id": str(FIRST)}]
            elif heard.unfit:
                result = "none of these"
            answer = json.dumps({"result": result}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_PUT(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            with _asked(QdrantOptions(url=url, read_consistency=consistency)) as requests:
                yield requests
        finally:
            server.shutdown()


@contextmanager
def _asked(options: QdrantOptions) -> Generator[Requests]:
    link = QdrantLink(options=options, clock=SystemClock())
    with link.asking(10) as asking:
        yield asking.requests
    link.close()


both = pytest.mark.parametrize("way", [by_http, by_grpc], ids=["http", "grpc"])


@both
def test_the_nearest_come_back_with_their_numbers_to_the_last_bit(way: Any) -> None:
    with way(Heard()) as requests:
        found = requests.nearest("some", WANTED)

    assert found == ANSWERED


@both
def test_points_that_were_only_looked_for_come_back_without(way: Any) -> None:
    with way(Heard()) as requests:
        found = requests.retrieved("some", [FIRST, SECOND], with_numbers=False)

    assert found == [Point(FIRST, 0.0, b"", "", None)]


@both
@pytest.mark.parametrize("status", ["completed", "acknowledged"])
def test_what_is_said_to_a_write_is_told(way: Any, status: str) -> None:
    with way(Heard(status)) as requests:
        said = requests.upsert("some", BATCH)

    assert (said == COMPLETED) == (status == "completed")
    assert said.lower() == status


def test_a_question_by_grpc_says_what_is_wanted() -> None:
    heard = Heard()

    with by_grpc(heard, "majority") as requests:
        requests.nearest("some", WANTED)

    [asked] = heard.requests
    owner, scope = (one.field for one in asked.filter.must)
    assert list(asked.query.nearest.dense.data) == DIRECTION[0].tolist()
    assert (asked.collection_name, asked.limit, asked.score_threshold) == ("some", 7, 0.25)
    assert (owner.key, owner.match.keyword) == ("owner", "ana")
    assert (scope.key, list(scope.match.keywords.strings)) == ("scope", ["a", "b"])
    assert (asked.params.hnsw_ef, asked.params.quantization.oversampling) == (128, 2.0)
    assert asked.read_consistency.type == grpc.ReadConsistencyType.Majority


def test_a_question_by_http_says_what_is_wanted() -> None:
    heard = Heard()

    with by_http(heard, 2) as requests:
        requests.nearest("some", WANTED)

    [(path, headers, asked)] = heard.requests
    assert path.startswith("/collections/some/points/query?timeout=")
    assert path.endswith("&consistency=2")
    assert headers["accept-encoding"] == "identity"
    assert asked["query"] == [0.600000024, -0.800000012, 0.0, 0.100000001]
    assert (asked["limit"], asked["score_threshold"]) == (7, 0.25)
    assert asked["filter"]["must"] == [
        {"key": "owner", "match": {"value": "ana"}},
        {"key": "scope", "match": {"any": ["a", "b"]}},
    ]


def test_a_write_by_grpc_waits_orders_strongly_and_keeps_every_bit() -> None:
    heard = Heard()

    with by_grpc(heard) as requests:
        requests.upsert("some", BATCH)

    [asked] = heard.requests
    [point] = asked.points
    assert (asked.wait, asked.ordering.type) == (True, grpc.WriteOrderingType.Strong)
    assert point.id.uuid == str(FIRST)
    assert list(point.vectors.vector.dense.data) == DIRECTION[0].tolist()
    assert point.payload["owner"].string_value == "ana"
    assert [one.string_value for one in point.payload["marks"].list_value.values] == ["m", "n"]
    assert point.payload["version"].integer_value == 3


def test_a_write_by_http_waits_and_orders_strongly() -> None:
    heard = Heard()

    with by_http(heard) as requests:
        requests.upsert("some", BATCH)

    [(path, _, asked)] = heard.requests
    assert path.endswith("&wait=true&ordering=strong")
    assert asked["batch"]["ids"] == [str(FIRST)]
    assert asked["batch"]["payloads"] == BATCH.payloads


def test_an_answer_of_another_kind_is_not_qdrants() -> None:
    heard = Heard(unfit=True)

    with pytest.raises(StoreUnavailableError, match="isn't Qdrant"), by_http(heard) as requests:
        requests.nearest("some", WANTED)


def _id(point: Point) -> Any:
    return grpc.PointId(uuid=str(point.id))


def _plain(point: Point) -> dict[str, Any]:
    plain = {"numbers": spelt(array("f", NUMBERS[0])), "norm": NORM}
    return plain if point.version is None else {**plain, "version": point.version}


def _payload(point: Point) -> dict[str, Any]:
    return {
        key: grpc.Value(integer_value=value)
        if isinstance(value, int)
        else grpc.Value(string_value=value)
        for key, value in _plain(point).items()
    }
