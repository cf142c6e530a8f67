"""One request over one connection; everything of the network is imported here and nowhere else.

``httpcore2`` is the transport below the usual HTTP clients: it has no redirects, no proxies from
the environment, no decoding and no cookies that would have to be switched off (adr/0013).  The
module is loaded by the first request; composing a memory imports no HTTP client.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import certifi
import httpcore2
from typing_extensions import override

from remembrancer.adapters.provider.bounded_body import BoundedBody
from remembrancer.adapters.provider.silence import silence
from remembrancer.application.ports.embedding_provider import ProviderError, ProviderFailure
from remembrancer.domain.destination import DEFAULT_PORTS, Destination

_OK = 200
_REDIRECTS = range(300, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request that is ready to go, and how its answer is read."""

    destination: Destination
    proxy: Destination | None
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    answer_bytes_max: int
    tls: ssl.SSLContext = field(repr=False)

    async def run(self, *, timeout_s: float) -> bytes:
        """Send the request once and return the answer's body.

        Raises:
            ProviderError: there is none.
        """
        failure: ProviderError | None = None
        # The deadline is ours and covers everything: a timeout per read never ends a drip.
        with silence(), anyio.move_on_after(timeout_s) as deadline:
            try:
                return await self._answer()
            except ProviderError as error:
                failure = error
            except _NETWORK_ERRORS as error:
                failure = ProviderError(_failure_of(error))
            except BaseException as error:  # noqa: BLE001  # raised again
                # The frames below have the texts and the key in variables, which some reports of
                # an interrupted program print.
                raise error.with_traceback(None) from None
        if failure is None:
            assert deadline.cancelled_caught  # noqa: S101 - the only other way to get here
            failure = ProviderError(ProviderFailure.TIMEOUT)
        # Raised out here, so that nothing hangs on it: a protocol error quotes the answer.
        raise failure.with_traceback(None)

    async def _answer(self) -> bytes:
        backend = _OneConnection()
        try:
            async with (
                self._pool(backend) as pool,
                pool.stream(
                    "POST", self._url(), headers=list(self.headers), content=self.body
                ) as response,
            ):
                return await self._read(response)
        finally:
            await backend.close()

    async def _read(self, response: httpcore2.Response) -> bytes:
        if response.status in _REDIRECTS:
            raise ProviderError(ProviderFailure.REDIRECT, status=response.status)
        if response.status != _OK:
            # The body is not even read: it may echo the key.
            raise ProviderError(ProviderFailure.STATUS, status=response.status)
        answer = BoundedBody(
            encoding=_header(response.headers, b"content-encoding"),
            bytes_max=self.answer_bytes_max,
        )
        async for chunk in response.aiter_stream():
            answer.feed(chunk)
        return answer.whole()

    def _pool(self, backend: "_OneConnection") -> httpcore2.AsyncConnectionPool:
        proxy = None
        if self.proxy is not None:
            proxy_tls = self.tls if self.proxy.scheme == "https" else None
            proxy = httpcore2.Proxy(self.proxy.origin, ssl_context=proxy_tls)
        return httpcore2.AsyncConnectionPool(
            ssl_context=self.tls,
            proxy=proxy,
            max_connections=1,
            max_keepalive_connections=0,
            http2=False,
            retries=0,
            network_backend=backend,
        )

    def _url(self) -> httpcore2.URL:
        return httpcore2.URL(
            scheme=self.destination.scheme,
            host=self.destination.host,
            port=self.destination.port,
            target=self.destination.path,
        )


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context that trusts ``ca_file``, or the Mozilla list that we ship with.

    Made by hand: ``ssl.create_default_context`` writes the session's keys to the file that
    ``SSLKEYLOGFILE`` names and trusts what ``SSL_CERT_FILE`` names.

    Raises:
        ProviderError: ``tls``; the file holds no certificates.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=str(ca_file or certifi.where()))
    except (OSError, ssl.SSLError):
        raise ProviderError(ProviderFailure.TLS) from None
    return context


def host_header(destination: Destination) -> str:
    """Return the Host header's value; the port only where it isn't the scheme's own."""
    host = f"[{destination.host}]" if ":" in destination.host else destination.host
    if destination.port == DEFAULT_PORTS[destination.scheme]:
        return host
    return f"{host}:{destination.port}"


class _OneConnection(httpcore2.AnyIOBackend):
    """Remembers the connection, so that it is closed whatever happens in between.

    Cancelled amid a TLS handshake, the library forgets the socket; it would stay open until
    somebody collects the garbage.
    """

    def __init__(self) -> None:
        self._stream: httpcore2.AsyncNetworkStream | None = None

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self._stream = await super().connect_tcp(
            host, port, timeout, local_address, socket_options
        )
        return self._stream

    async def close(self) -> None:
        """Close the connection if there is one; closing it again changes nothing."""
        if self._stream is not None:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()


_NETWORK_ERRORS = (
    OSError,  # The TLS library's errors are among them.
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
)


def _failure_of(error: Exception) -> ProviderFailure:
    # The library drops the cause; the context still says what went wrong in the handshake.
    cause = error.__context__ if isinstance(error, httpcore2.ConnectError) else error
    if isinstance(cause, ssl.SSLError | anyio.EndOfStream):
        return ProviderFailure.TLS
    if isinstance(error, httpcore2.RemoteProtocolError):
        return ProviderFailure.MALFORMED
    return ProviderFailure.CONNECTION


def _header(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    values = [value for key, value in headers if key.lower() == name]
    return b",".join(values).strip().lower().decode("latin-1")
