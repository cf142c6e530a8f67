"""The way to Qdrant: one client a process, made when it is first needed."""

import os
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remembrancer.adapters.qdrant.local_folder import kept_clean, made_safe, require_free
from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.translation import translated
from remembrancer.application.ports.clock import Clock
from remembrancer.domain.errors import (
    SettingsError,
    StoreClosedError,
    StoreForbiddenError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from remembrancer.adapters.qdrant.requests import Requests

_NO_COMPRESSION = 1
"""gRPC's set of the ways to compress that holds none but *identity*."""
_SENT_AHEAD_BYTES = 2**22
"""What a server may send before gRPC asks for more: a hundred vectors would need four goes."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A client for one call, which has a deadline."""

    client: "QdrantClient"
    models: Any
    """The client's types of requests; loaded with it."""
    link: "QdrantLink"

    requests: "Requests"
    """The same client's three frequent requests."""

    def timeout(self) -> int:
        """Return :meth:`QdrantLink.timeout`."""
        return self.link.timeout()


class QdrantLink:
    """Makes the client, bounds what is asked of it, and translates what it raises.

    A forked child makes a client of its own.  Local mode isn't made for threads: one at a time.
    """

    def __init__(self, *, options: QdrantOptions, clock: Clock) -> None:
        self.options = options
        self._clock = clock
        self._closed = False
        self._begin_anew()

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this process, which no other may use."""
        return self.options.url is None

    @contextmanager
    def asking(self, timeout_s: float) -> Generator[Asking]:
        """Give a client whose calls in this block take ``timeout_s`` together.

        Raises:
            StoreUnavailableError: no answer in time, or an unfit one.
            StoreForbiddenError: the API key was refused.
            SettingsError: the folder may be written by others, or a file can't be read.
        """
        if self._pid != os.getpid():
            self._begin_anew()
        before = self._deadline()
        try:
            with self._one_at_a_time(timeout_s):
                client, requests = self._opened()
                from qdrant_client import models  # noqa: PLC0415  # loaded with the client

                # From here on: making a client loads much and asks nobody.
                self._local.deadline = self._clock.monotonic() + timeout_s
                yield Asking(client, models, self, requests)
        except Exception as error:
            found = translated(error, store=self.options.place)
            if found is None:
                raise
            if isinstance(found, StoreForbiddenError):
                self._let_go()  # The key may have been changed: the next call reads it again.
            raise found from None
        finally:
            self._local.deadline = before

    def remaining(self) -> float:
        """Return the seconds until this thread's deadline."""
        deadline = self._deadline()
        if deadline is None:
            return self.options.write_timeout_s  # A call of the client's own, outside of ours.
        return deadline - self._clock.monotonic()

    def timeout(self) -> int:
        """Return what is left, in the whole seconds that Qdrant takes.

        Raises:
            StoreUnavailableError: nothing is.
        """
        left = self.remaining()
        if left <= 0:
            raise StoreUnavailableError(store=self.options.place, problem="no answer in time")
        # The server's; over HTTP the transport keeps the exact time.
        return max(1, int(left))

    def close(self) -> None:
        """Close the client, if this process has made one."""
        self._closed = True
        if self._pid == os.getpid():
            self._let_go()

    # -- Inside ------------------------------------------------------------

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._local = threading.local()
        self._turn = threading.RLock()
        self._making = threading.Lock()
        self._open: tuple[QdrantClient, Requests] | None = None

    def _deadline(self) -> float | None:
        return getattr(self._local, "deadline", None)

    @contextmanager
    def _one_at_a_time(self, timeout_s: float) -> Generator[None]:
        if not self.is_local:
            yield
            return
        if not self._turn.acquire(timeout=timeout_s):
            raise StoreUnavailableError(store=self.options.place, problem="others are using it")
        try:
            yield
        finally:
            self._turn.release()

    def _opened(self) -> "tuple[QdrantClient, Requests]":
        with self._making:
            if self._closed:
                raise StoreClosedError
            if self._open is None:
                self._open = self._local_client() if self.is_local else self._remote_client()
            return self._open

    def _let_go(self) -> None:
        with self._making:
            opened, self._open = self._open, None
        if opened is not None:
            with suppress(OSError, RuntimeError):
                opened[0].close()

    def _local_client(self) -> "tuple[QdrantClient, Requests]":
        if self.options.path is None:
            raise SettingsError(setting="vector_store", problem="needs a url or a path")
        path = made_safe(self.options.path)
        require_free(path)
        from qdrant_client import QdrantClient  # noqa: PLC0415  # 2.4 s

        from remembrancer.adapters.qdrant import folder_requests  # noqa: PLC0415  # as above

        client = QdrantClient(path=str(path), force_disable_check_same_thread=True)
        for collection in client.get_collections().collections:
            kept_clean(client, collection.name)
        return client, folder_requests.FolderRequests(client=client)

    def _remote_client(self) -> "tuple[QdrantClient, Requests]":
        from qdrant_client import QdrantClient  # noqa: PLC0415  # 2.4 s

        from remembrancer.adapters.qdrant import (  # noqa: PLC0415  # as above
            grpc_requests,
            http_requests,
            transport,
        )

        options, headers = self.options, self._headers()
        context = self._ssl_context()
        connections = transport.DeadlineTransport(ssl_context=context, remaining=self.remaining)
        client = QdrantClient(
            url=options.url,
            prefer_grpc=options.grpc,
            grpc_port=options.grpc_port,
            grpc_options=self._grpc_options(),
            headers=headers,
            # Of gRPC calls that take none of their own, such as a look at a collection.
            timeout=options.timeout_s,
            check_compatibility=False,  # It sends the key to a further address, in a thread.
            trust_env=False,
            transport=connections,
        )
        if options.grpc:
            return client, grpc_requests.GrpcRequests(
                client=client,
                timeout=self.timeout,
                remaining=self.remaining,
                consistency=options.read_consistency,
            )
        return client, http_requests.HttpRequests(
            transport=connections,
            address=client.http.client.host,
            headers=headers,
            timeout=self.timeout,
            consistency=options.read_consistency,
        )

    def _headers(self) -> dict[str, str]:
        # Numbers hardly shrink, and a server takes longer to try than to send them (adr/0019).
        headers = {} if self.options.grpc else {"accept-encoding": "identity"}
        key = self.options.api_key()
        if key is not None:
            # As a header of our own: the client warns of keys over plain HTTP, which settings
            # allow on the loopback alone.
            headers["api-key"] = key
        return headers

    def _grpc_options(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "grpc.enable_http_proxy": 0,
            "grpc.compression_enabled_algorithms_bitset": _NO_COMPRESSION,  # As for HTTP.
            "grpc.http2.lookahead_bytes": _SENT_AHEAD_BYTES,
        }
        if self._is_tls() and self.options.ca_file is not None:
            found["root_certificates"] = self.options.ca_file.read_bytes()
        return found

    def _is_tls(self) -> bool:
        return self.options.url is not None and self.options.url.startswith("https://")

    def _ssl_context(self) -> ssl.SSLContext | None:
        if not self._is_tls():
            return None
        file = self.options.ca_file
        try:
            return ssl.create_default_context(cafile=None if file is None else str(file))
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                setting="vector_store.ca_file", problem="can't be read as certificates"
            ) from error
