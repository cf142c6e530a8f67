"""The way to Qdrant: who may write its folder, what a server may cost in time, what leaves."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.qdrant_servers import in_folder, index_of, place_at

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.qdrant.link import QdrantLink
from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.payload import spelt
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.vector_examples import EAST, FIRST, SECOND, put
from remembrancer.contracts.vector_indexes import SPACE
from remembrancer.domain.errors import (
    SettingsError,
    StoreClosedError,
    StoreForbiddenError,
    StoreUnavailableError,
)

CANARY = "canarykey8471"
CANARY_VECTOR = [0.71, 0.62, 0.53, 0.44]
INDEX = index_of(SPACE)
FOUND_NOTHING = b'{"result": {"points": []}, "status": "ok", "time": 0}'
COLLECTION = json.dumps(
    {
        "result": {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "payload_schema": {},
            "config": {
                "params": {"vectors": {"size": 4, "distance": "Dot"}},
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
                "metadata": {
                    "remembrancer": 1,
                    "embedding_tuple": SPACE.model_dump(mode="json"),
                },
            },
        },
        "status": "ok",
        "time": 0,
    }
).encode()


# -- A folder ----------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "qdrant").mkdir()
    (tmp_path / "qdrant").chmod(mode)

    with place_at(in_folder(tmp_path)) as place, pytest.raises(SettingsError, match="others"):
        place.make(INDEX)


def test_a_file_in_it_that_others_can_write_is_refused(tmp_path: Path) -> None:
    with place_at(in_folder(tmp_path)) as place:
        place.make(INDEX)
    (tmp_path / "qdrant").chmod(0o755)
    [storage] = (tmp_path / "qdrant").rglob("storage.sqlite")
    storage.chmod(0o666)

    with place_at(in_folder(tmp_path)) as place, pytest.raises(SettingsError, match="others"):
        place.store(INDEX).count()


def test_a_folder_above_it_that_others_can_write_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "shared"
    above.mkdir()
    above.chmod(0o777)

    with place_at(in_folder(above)) as place, pytest.raises(SettingsError, match="shared"):
        place.make(INDEX)


def test_a_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    with place_at(in_folder(tmp_path)) as place:
        place.make(INDEX)

    assert stat.S_IMODE((tmp_path / "qdrant").stat().st_mode) == 0o700


def test_a_folder_in_no_folder_is_refused(tmp_path: Path) -> None:
    with (
        place_at(in_folder(tmp_path / "nowhere")) as place,
        pytest.raises(SettingsError, match="does not exist"),
    ):
        place.make(INDEX)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "qdrant").write_text("")

    with place_at(in_folder(tmp_path)) as place, pytest.raises(SettingsError, match="folder"):
        place.make(INDEX)


def test_a_folder_in_use_is_unavailable_to_another_process(tmp_path: Path) -> None:
    with place_at(in_folder(tmp_path)) as place, place_at(in_folder(tmp_path)) as other:
        place.make(INDEX)

        with pytest.raises(StoreUnavailableError, match="another process"):
            other.store(INDEX).count()


def test_no_byte_of_a_deleted_vector_is_left_in_the_folder(tmp_path: Path) -> None:
    with place_at(in_folder(tmp_path)) as place:
        place.make(INDEX)
        store = place.store(INDEX)
        put(store, {FIRST: CANARY_VECTOR, SECOND: EAST})
        store.upsert(FIRST, CANARY_VECTOR, {"subject:canarybird": "1"})
        before = bytes_under(tmp_path)
        numbers = spelt(array("f", CANARY_VECTOR)).encode()
        assert numbers in before

        store.delete(FIRST)

        assert numbers not in bytes_under(tmp_path)
        assert b"canarybird" not in before


def test_a_closed_place_says_so(tmp_path: Path) -> None:
    with place_at(in_folder(tmp_path)) as place:
        place.make(INDEX)

    with pytest.raises(StoreClosedError):
        place.store(INDEX).count()


# -- A server ----------------------------------------------------------------


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Generator[int]:
    """Listen on a loopback port; ``serve`` gets each connection, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with suppress(OSError):
                serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for connection in connections:
                connection.close()


def silent(connection: socket.socket) -> None:
    connection.recv(65_536)


def dripping(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.2)


def answering(head: bytes, body: bytes = b"{}") -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        while connection.recv(65_536):
            length = str(len(body)).encode()
            connection.sendall(
                b"HTTP/1.1 " + head + b"\r\nContent-Length: " + length + b"\r\n\r\n" + body
            )

    return serve


@pytest.mark.parametrize(("serve", "grpc"), [(silent, False), (dripping, False), (silent, True)])
def test_a_query_ends_with_its_deadline(
    serve: Callable[[socket.socket], None], *, grpc: bool
) -> None:
    with listening(serve) as port, place_at(_at(port, timeout_s=1, grpc=grpc)) as place:
        place.store(INDEX)._link._opened()
        began = time.monotonic()

        with pytest.raises(StoreUnavailableError):
            place.store(INDEX).query(EAST, 5)

        assert time.monotonic() - began < 2


def test_nobody_there_is_unavailable() -> None:
    with place_at(_at(_free_port())) as place, pytest.raises(StoreUnavailableError):
        place.store(INDEX).query(EAST, 5)


def test_nobody_there_is_unavailable_by_grpc_too() -> None:
    options = QdrantOptions(url="http://127.0.0.1:1", grpc=True, grpc_port=_free_port())
    with place_at(options) as place, pytest.raises(StoreUnavailableError):
        place.store(INDEX).query(EAST, 5)


@pytest.mark.parametrize("status", [b"401 Unauthorized", b"403 Forbidden"])
def test_a_refused_key_is_read_again_by_the_next_call(status: bytes) -> None:
    keys = iter(["old", "new", "newest"])
    asked = []

    def key() -> str:
        asked.append(next(keys))
        return asked[-1]

    with listening(answering(status)) as port, place_at(_at(port, api_key=key)) as place:
        for _ in range(2):
            with pytest.raises(StoreForbiddenError):
                place.store(INDEX).query(EAST, 5)

    assert asked == ["old", "new"]


@pytest.mark.parametrize(
    "serve",
    [
        answering(b"500 Internal Server Error", CANARY.encode()),
        answering(b"200 OK", CANARY.encode()),
        answering(b"404 Not Found", CANARY.encode()),
        answering(b"307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/"),
    ],
)
def test_an_unfit_answer_is_unavailable_and_shows_nothing(
    serve: Callable[[socket.socket], None],
) -> None:
    with listening(serve) as port, place_at(_at(port, api_key=lambda: CANARY)) as place:
        with pytest.raises(StoreUnavailableError) as caught:
            place.store(INDEX).query(EAST, 5)

        assert CANARY not in f"{caught.value!r} {caught.value.__cause__!r} {place!r}"
        assert caught.value.__cause__ is None


def test_the_key_goes_in_its_header_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    def serve(connection: socket.socket) -> None:
        while request := _whole(connection):
            heard.append(request)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")

    with (
        listening(serve) as port,
        place_at(_at(port, api_key=lambda: CANARY)) as place,
        pytest.raises(StoreUnavailableError),
    ):
        place.store(INDEX).count()

    [request] = heard
    assert request.startswith(b"GET /collections/")
    assert request.count(CANARY.encode()) == 1
    assert f"api-key: {CANARY}".encode() in request


def test_a_server_that_allows_no_exact_search_answers_by_its_graph() -> None:
    asked: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        while request := _whole(connection):
            asked.append(request)
            status, body = b"200 OK", COLLECTION if request.startswith(b"GET") else FOUND_NOTHING
            if b'"exact":true' in request.replace(b" ", b""):
                status, body = b"400 Bad Request", b'{"status": {"error": "not allowed"}}'
            length = str(len(body)).encode()
            head = b"HTTP/1.1 " + status + b"\r\nContent-Length: " + length + b"\r\n\r\n"
            connection.sendall(head + body)

    with listening(serve) as port, place_at(_at(port)) as place:
        found = place.store(INDEX).query(EAST, 5)

    assert found == []
    assert len(asked) == 3


def test_a_certificate_file_that_is_none_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    options = QdrantOptions(url="https://127.0.0.1:1", ca_file=tmp_path / "ca.pem")

    with place_at(options) as place, pytest.raises(SettingsError, match="ca_file"):
        place.store(INDEX).count()


# -- Processes ---------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_a_client_of_its_own() -> None:
    script = f"""
import os, sys
from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.qdrant.link import QdrantLink
from remembrancer.adapters.qdrant.options import QdrantOptions
options = QdrantOptions(url="http://127.0.0.1:{_free_port()}")
link = QdrantLink(options=options, clock=SystemClock())
with link.asking(1) as asking:
    mine = asking.client
if os.fork() == 0:
    with link.asking(1) as asking:
        os._exit(0 if asking.client is not mine else 1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""

    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == 0


def test_nothing_of_the_client_is_loaded_before_it_is_asked(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.qdrant.link import QdrantLink
from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.vector_place import QdrantVectorPlace
from remembrancer.contracts.vector_indexes import SPACE
link = QdrantLink(options=QdrantOptions(path=Path({str(tmp_path)!r})), clock=SystemClock())
QdrantVectorPlace(link=link, secret=lambda: bytes(32))
link.close()
sys.exit("qdrant_client" in sys.modules or "numpy" in sys.modules)
"""

    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == 0


def test_a_closed_link_opens_nothing(tmp_path: Path) -> None:
    link = QdrantLink(options=in_folder(tmp_path), clock=SystemClock())
    link.close()

    with pytest.raises(StoreClosedError), link.asking(1):
        pass


def _whole(connection: socket.socket) -> bytes:
    """Read one request to its end; nothing where the other side hung up."""
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65_536)
        if not part:
            return b""
        request += part
    head, _, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while length is not None and len(body) < int(length[1]):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def _at(port: int, **changes: Any) -> QdrantOptions:
    plain: dict[str, Any] = {"url": f"http://127.0.0.1:{port}", "grpc_port": port, "timeout_s": 5}
    return QdrantOptions(**plain | changes)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
