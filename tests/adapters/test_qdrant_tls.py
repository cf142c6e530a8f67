"""Qdrant over TLS: whose certificate is taken, and what is said where it isn't.

Before endpoints that speak the protocols and know nothing, so that any answer of theirs shows that
they were trusted.  A server with data is asked in ``tests/composition/test_qdrant_tls.py``.
"""

import ssl
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from tests.adapters.postgres_tls import Authority
from tests.adapters.qdrant_servers import index_of, place_at

from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.contracts.vector_indexes import SPACE
from remembrancer.domain.errors import StoreUnavailableError

INDEX = index_of(SPACE)
Endpoint = Callable[[Path, Path], AbstractContextManager[int]]
"""Serves with a certificate and a key on a port."""


@contextmanager
def by_http(certificate: Path, key: Path) -> Generator[int]:
    """Serve HTTP that has nothing: each answer is 404."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Silent) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a refused handshake
        # The handshake belongs to the connection's thread, not to the one that accepts.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class _Silent(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def by_grpc(certificate: Path, key: Path) -> Generator[int]:
    """Serve gRPC that implements nothing."""
    with ThreadPoolExecutor() as threads:
        server = grpc.server(threads)
        credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
        port = server.add_secure_port("127.0.0.1:0", credentials)
        server.start()
        try:
            yield port
        finally:
            server.stop(0).wait()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.mark.parametrize(
    ("serve", "answer"),
    [(by_http, "no such collection"), (by_grpc, "UNIMPLEMENTED")],
    ids=["http", "grpc"],
)
def test_who_was_signed_by_the_named_authority_is_trusted(
    authority: Authority, serve: Endpoint, answer: str
) -> None:
    with serve(*authority.issued("localhost")) as port:
        said = _said_at("localhost", port, authority.certificate, grpc=serve is by_grpc)

    assert answer in said


@pytest.mark.parametrize("serve", [by_http, by_grpc], ids=["http", "grpc"])
@pytest.mark.parametrize("is_named", [True, False])
def test_who_was_signed_by_another_is_not(
    authority: Authority, tmp_path: Path, serve: Endpoint, *, is_named: bool
) -> None:
    other = Authority(tmp_path, "other").certificate if is_named else None

    with serve(*authority.issued("localhost")) as port:
        said = _said_at("localhost", port, other, grpc=serve is by_grpc)

    assert "certificate isn't trusted" in said
    assert "ca_file" in said


@pytest.mark.parametrize("serve", [by_http, by_grpc], ids=["http", "grpc"])
def test_who_has_a_certificate_for_another_name_is_not(
    authority: Authority, serve: Endpoint
) -> None:
    with serve(*authority.issued("qdrant.example")) as port:
        said = _said_at("localhost", port, authority.certificate, grpc=serve is by_grpc)

    assert "certificate isn't trusted" in said
    assert "mismatch" in said


def _said_at(host: str, port: int, ca_file: Path | None, *, grpc: bool) -> str:
    """Return what a request there ends with; these endpoints can't serve any."""
    options = QdrantOptions(
        url=f"https://{host}:{port}", grpc=grpc, grpc_port=port, ca_file=ca_file, timeout_s=10
    )
    with place_at(options) as place, pytest.raises(StoreUnavailableError) as caught:
        place.store(INDEX).count()
    return str(caught.value)
