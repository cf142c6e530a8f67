"""Which Qdrant a test runs against: a folder always, a server where one is named.

``REMEMBRANCER_TEST_QDRANT_URL`` (and ``..._API_KEY``, ``..._GRPC_PORT``) name a server; each
suite then runs against it by HTTP and by gRPC too, in collections of its own, which it removes.
``REMEMBRANCER_TEST_QDRANT_TLS_URL`` (and ``..._TLS_GRPC_PORT``, ``..._TLS_CA_FILE``) name one that
speaks TLS, with the same key.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.qdrant.link import QdrantLink
from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.vector_place import QdrantVectorPlace
from remembrancer.application.ports import IndexState, VectorIndex
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import StoreUnavailableError

URL = os.environ.get("REMEMBRANCER_TEST_QDRANT_URL")
API_KEY = os.environ.get("REMEMBRANCER_TEST_QDRANT_API_KEY")
GRPC_PORT = int(os.environ.get("REMEMBRANCER_TEST_QDRANT_GRPC_PORT", "6334"))
TLS_URL = os.environ.get("REMEMBRANCER_TEST_QDRANT_TLS_URL")
TLS_GRPC_PORT = int(os.environ.get("REMEMBRANCER_TEST_QDRANT_TLS_GRPC_PORT", "6334"))
TLS_CA_FILE = os.environ.get("REMEMBRANCER_TEST_QDRANT_TLS_CA_FILE")
SECRET = bytes(range(32))
PREFIX = f"remembrancer-test-{os.getpid()}"
"""Of this process's collections on a server."""


def in_folder(folder: Path) -> QdrantOptions:
    """Return how to reach a folder of this process."""
    return QdrantOptions(path=folder / "qdrant", timeout_s=60)


def on_server(*, grpc: bool) -> QdrantOptions:
    """Return how to reach the server."""
    return QdrantOptions(
        url=URL,
        grpc=grpc,
        grpc_port=GRPC_PORT,
        api_key=lambda: API_KEY,
        timeout_s=60,
        prefix=PREFIX,
    )


def remove_what_was_left(options: QdrantOptions | None = None) -> None:
    """Remove all collections that this process has made on the server, or on another one."""
    if options is None and URL is None:
        return
    link = QdrantLink(options=options or on_server(grpc=False), clock=SystemClock())
    with link.asking(60) as asking:
        for one in asking.client.get_collections().collections:
            if one.name.startswith(f"{PREFIX}_"):
                asking.client.delete_collection(one.name)
    link.close()


@contextmanager
def place_at(
    options: QdrantOptions, secret: bytes = SECRET, *, swept: bool = False
) -> Generator[QdrantVectorPlace]:
    """Open a place; with ``swept`` its collections go at the end."""
    link = QdrantLink(options=options, clock=SystemClock())
    place = QdrantVectorPlace(link=link, secret=lambda: secret)
    try:
        yield place
    finally:
        if swept:
            with suppress(StoreUnavailableError):
                place.sweep(())
        link.close()


def fresh_secret() -> bytes:
    """Return a secret of a memory of its own, so that tests never share collections."""
    return token_hex(32).encode()


def index_of(space: EmbeddingTuple, number: int = 1, position: int = 0) -> VectorIndex:
    """Return an index that Qdrant keeps."""
    return VectorIndex(
        number=number,
        embedding_tuple=space,
        state=IndexState.BUILDING,
        position=position,
        place="qdrant",
    )
