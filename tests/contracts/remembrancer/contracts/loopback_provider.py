"""A real embeddings server on this machine that can misbehave in every way.

Plain sockets and threads, so that a behaviour decides on every byte and on when it is sent.
``with LoopbackProvider(behaviour) as server:`` listens on 127.0.0.1; ``server.url`` is the base
that an OpenAI-compatible client takes, ``server.requests`` what arrived.  A behaviour is any
callable that takes a :class:`Received` and may write to its connection; when it returns, the
connection is closed.  The behaviours here cover what providers were seen to do.
"""

import hashlib
import json
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

HEAD_BYTES_MAX = 65_536
LISTEN_BACKLOG = 64
PATIENCE_S = 10.0
"""After this long without a byte, a connection is given up, so that no test hangs."""


@dataclass(kw_only=True)
class Received:
    """A request as it arrived, and the connection that it came on."""

    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    connection: socket.socket = field(repr=False)
    stopping: threading.Event = field(repr=False)

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)

    @property
    def texts(self) -> list[str]:
        """What is to be embedded."""
        return list(self.json["input"])

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than the server lives."""
        self.stopping.wait(seconds)


Behaviour = Callable[[Received], None]


class LoopbackProvider:
    """Serves one behaviour, or a different one for each request (the last one stays)."""

    def __init__(
        self, *behaviours: Behaviour, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.requests: list[Received] = []
        self.arrived = threading.Event()
        """Set once a complete request is there."""
        self.gone = threading.Event()
        """Set once a client has closed a connection that :func:`silent` was holding."""
        self._behaviours = behaviours or (honest(),)
        self._tls = tls
        self._host = host
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._connections = 0
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """The base URL, to which clients add ``/embeddings``."""
        return f"{'http' if self._tls is None else 'https'}://{self._host}:{self.port}/v1"

    @property
    def connections(self) -> int:
        """How many connections were made, with or without a request on them."""
        return self._connections

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=LISTEN_BACKLOG)
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        # A thread that waits in accept() doesn't notice that its socket is closed.
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._listener.close()

    def _start(self, work: Callable[..., None], *values: object) -> None:
        thread = threading.Thread(target=work, args=values, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stopping.is_set():
                connection.close()
                return
            self._connections += 1
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                received = self._receive(connection)
                if received is not None:
                    with self._lock:
                        self.requests.append(received)
                        place = min(len(self.requests), len(self._behaviours)) - 1
                    self.arrived.set()
                    self._behaviours[place](received)
        except OSError:
            self.gone.set()  # Clients that hang up are what is being tested.
        finally:
            connection.close()

    def _receive(self, connection: socket.socket) -> Received | None:
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = connection.recv(HEAD_BYTES_MAX)
            if not chunk or len(data) > HEAD_BYTES_MAX:
                self.gone.set()
                return None
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (each.partition(":") for each in fields)
        }
        while len(body) < int(headers.get("content-length", "0")):
            chunk = connection.recv(HEAD_BYTES_MAX)
            if not chunk:
                self.gone.set()
                return None
            body += chunk
        method, target, _ = line.split(" ", 2)
        return Received(
            method=method,
            target=target,
            headers=headers,
            body=body,
            connection=connection,
            stopping=self._stopping,
        )


# -- What an answer says ---------------------------------------------------------------------


def vector_for(text: str, dimensions: int) -> list[float]:
    """Return a vector that depends on the text alone; never zero."""
    bits = hashlib.shake_256(text.encode()).digest(dimensions * 2)
    return [(value + 1) / 65_537 for (value,) in struct.iter_unpack("<H", bits)]


def answer_for(
    texts: Sequence[str], *, model: str, dimensions: int = 8, tokens: object = None
) -> dict[str, Any]:
    """Return an honest answer: one vector a text, one token a word unless ``tokens`` says."""
    used = sum(max(1, len(text.split())) for text in texts) if tokens is None else tokens
    return {
        "object": "list",
        "model": model,
        "data": [
            {"object": "embedding", "index": index, "embedding": vector_for(text, dimensions)}
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def http_answer(
    body: bytes, *, status: str = "200 OK", headers: Sequence[tuple[str, str]] = ()
) -> bytes:
    """Return a complete HTTP answer."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


# -- Behaviours ------------------------------------------------------------------------------


def honest(
    *, dimensions: int = 8, change: Callable[[dict[str, Any]], object] | None = None
) -> Behaviour:
    """Answer as asked; ``change`` may turn the answer into a lie (in place, or by another)."""

    def behave(request: Received) -> None:
        answer: object = answer_for(
            request.texts, model=request.json["model"], dimensions=dimensions
        )
        if change is not None:
            changed = change(answer)  # type: ignore[arg-type] # it was made two lines above
            answer = answer if changed is None else changed
        # NaN is written as such: that is one of the lies.
        request.connection.sendall(http_answer(json.dumps(answer).encode()))

    return behave


def status(code: int, *, echo_key: bool = True) -> Behaviour:
    """Answer with ``code`` and, as providers do, with the key that was sent."""

    def behave(request: Received) -> None:
        said = request.headers.get("authorization", "") if echo_key else ""
        body = json.dumps({"error": {"message": f"bad key: {said}"}}).encode()
        request.connection.sendall(
            http_answer(body, status=f"{code} Said No", headers=[("X-Echo", said)])
        )

    return behave


def redirect(code: int, location: str) -> Behaviour:
    """Send the client elsewhere."""

    def behave(request: Received) -> None:
        request.connection.sendall(
            http_answer(b"", status=f"{code} Elsewhere", headers=[("Location", location)])
        )

    return behave


def silent(seconds: float = PATIENCE_S) -> Behaviour:
    """Say nothing, until the client hangs up or ``seconds`` have passed; then answer."""

    def behave(request: Received) -> None:
        request.connection.settimeout(seconds)
        try:
            if not request.connection.recv(1):
                raise ConnectionResetError  # Read as "gone" by the server.
        except TimeoutError:
            honest()(request)

    return behave


def drip(*, every_s: float, dimensions: int = 8) -> Behaviour:
    """Answer honestly, one byte at a time."""

    def behave(request: Received) -> None:
        answer = answer_for(request.texts, model=request.json["model"], dimensions=dimensions)
        for byte in http_answer(json.dumps(answer).encode()):
            if request.stopping.is_set():
                return
            request.connection.sendall(bytes([byte]))
            request.pause(every_s)

    return behave


def raw(*parts: bytes) -> Behaviour:
    """Write exactly these bytes."""

    def behave(request: Received) -> None:
        for part in parts:
            request.connection.sendall(part)

    return behave


def cut_off(kept_bytes: int = 40) -> Behaviour:
    """Promise a whole answer and stop after ``kept_bytes`` of its body."""

    def behave(request: Received) -> None:
        answer = answer_for(request.texts, model=request.json["model"])
        whole = http_answer(json.dumps(answer).encode())
        head = whole.index(b"\r\n\r\n") + 4
        request.connection.sendall(whole[: head + kept_bytes])

    return behave


def reset() -> Behaviour:
    """Break the connection without a word (RST)."""

    def behave(request: Received) -> None:
        linger_not = struct.pack("ii", 1, 0)
        request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)

    return behave


def endless(*, encoding: str = "identity", piece: bytes = b" " * 65_536) -> Behaviour:
    """Send body until the client hangs up, in chunks, without saying how much."""

    def behave(request: Received) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nTransfer-Encoding: chunked"
        request.connection.sendall(head.encode() + b"\r\n\r\n")
        while not request.stopping.is_set():
            request.connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    return behave


def packed(body: bytes | None = None, *, encoding: str = "gzip") -> Behaviour:
    """Answer with a gzip body although ``identity`` was asked for."""

    def behave(request: Received) -> None:
        content = body
        if content is None:
            answer = answer_for(request.texts, model=request.json["model"])
            content = b"".join(gzipped([json.dumps(answer).encode()]))
        request.connection.sendall(http_answer(content, headers=[("Content-Encoding", encoding)]))

    return behave


def bomb(unfolded_bytes: int) -> bytes:
    """Return a gzip body of ``unfolded_bytes`` blanks, about a thousandth in size."""
    mebibyte = b" " * 1_048_576
    return b"".join(gzipped(mebibyte for _ in range(unfolded_bytes // len(mebibyte))))


def gzipped(parts: "Iterator[bytes] | Sequence[bytes]") -> Iterator[bytes]:
    """Pack parts as one gzip stream, without holding them all."""
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()
