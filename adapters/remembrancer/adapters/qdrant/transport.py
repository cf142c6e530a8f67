"""HTTP with one deadline for everything.

The client's own timeouts are for each phase and each read: an answer that drips in would never
time out.  Here every wait on the socket ends with the call's deadline.  No proxy, no redirect, no
retry.  Imported when a client is made, as it loads an HTTP client.
"""

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpcore
import httpx
from typing_extensions import override

CONNECTIONS_MAX = 64
KEPT_ALIVE_MAX = 16
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
READ_BYTES = 2**20
"""Most that is read at once; answers with numbers are long, and each read has its price."""
KEEP_ALIVE_S = 2.0
"""Shorter than servers keep an idle connection, so that none is used as it is being closed."""

Remaining = Callable[[], float]
"""Seconds until the calling thread's deadline."""


class DeadlineTransport(httpx.BaseTransport):
    """Sends each request once, over pooled connections that know the deadline."""

    def __init__(self, *, ssl_context: ssl.SSLContext | None, remaining: Remaining) -> None:
        self._remaining = remaining
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=CONNECTIONS_MAX,
            max_keepalive_connections=KEPT_ALIVE_MAX,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=_Backend(remaining),
        )

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        wait_s = _left(self._remaining, None)
        answer = self._pool.handle_request(
            httpcore.Request(
                method=request.method.encode(),
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions={"timeout": {"pool": wait_s}},
            )
        )
        return httpx.Response(
            status_code=answer.status, headers=answer.headers, stream=_Body(answer)
        )

    def answered(
        self,
        method: str,
        address: httpx.URL,
        target: str,
        *,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
    ) -> tuple[int, bytes]:
        """Send one request without what a whole client does; return the status and the body."""
        answer = self._pool.request(
            method,
            httpcore.URL(
                scheme=address.raw_scheme,
                host=address.raw_host,
                port=address.port,
                target=target.encode(),
            ),
            headers=headers,
            content=content,
            extensions={"timeout": {"pool": _left(self._remaining, None)}},
        )
        return answer.status, answer.content

    @override
    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    @override
    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    @override
    def close(self) -> None:
        self._answer.close()


class _Backend(httpcore.SyncBackend):
    def __init__(self, remaining: Remaining) -> None:
        self._remaining = remaining

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        wait_s = _left(self._remaining, timeout)
        stream = super().connect_tcp(host, port, wait_s, local_address, socket_options)
        return _Stream(stream, self._remaining)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, remaining: Remaining) -> None:
        self._stream = stream
        self._remaining = remaining

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._acknowledge_at_once()
        wait_s = _left(self._remaining, timeout)
        return self._stream.read(max(max_bytes, READ_BYTES), wait_s)

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._remaining, timeout))

    @override
    def close(self) -> None:
        self._stream.close()

    @override
    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        wait_s = _left(self._remaining, timeout)
        return _Stream(
            self._stream.start_tls(ssl_context, server_hostname, wait_s), self._remaining
        )

    @override
    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _acknowledge_at_once(self) -> None:
        """Keep the server from waiting 40 ms for us between an answer's head and its body.

        It sends them apart, and the second only once the first was acknowledged, which a kept
        connection puts off.  The system forgets the option again, so it is set for each read.
        """
        if _QUICKACK is not None:
            with suppress(OSError):
                self._stream.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)


def _left(remaining: Remaining, timeout: float | None) -> float:
    left = remaining()
    if left <= 0:
        raise httpcore.ReadTimeout("the deadline of the whole call has passed")
    return left if timeout is None else min(left, timeout)
