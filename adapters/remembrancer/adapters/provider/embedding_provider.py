"""Any OpenAI-compatible ``/v1/embeddings``: hosted, Ollama, vLLM, TEI, LM Studio (adr/0013)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from remembrancer.adapters.provider.secret_source import SecretSource
from remembrancer.application.ports.embedding_provider import (
    EmbeddingProvider,
    ProviderError,
    ProviderFailure,
)
from remembrancer.domain.destination import Destination
from remembrancer.domain.errors import InvalidInputError, SettingsError
from remembrancer.domain.provider_answer import ANSWER_BYTES_MAX

if TYPE_CHECKING:
    import ssl

    from remembrancer.adapters.provider.exchange import Exchange

ENDPOINT = "/embeddings"


class OpenAICompatibleProvider(EmbeddingProvider):
    """One model behind one URL.

    Args:
        url: The endpoint, or the base that ``/embeddings`` is added to, such as
            ``https://api.example.com/v1``.  ``http`` only for this machine.
        model: The name sent as ``model``.
        secret: Where the API key is; it goes into the ``Authorization`` header.
        dimensions: Sent where the model can shorten its vectors; None sends nothing.
        ca_file: Certificates (PEM) to trust instead of the shipped Mozilla list.
        proxy_url: ``http(s)://host:port`` to go through; the environment names none.
        answer_bytes_max: Decoded bytes of an answer that are read at most.

    Raises:
        InvalidInputError: from the constructor; ``url`` or ``proxy_url`` can't be used.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        secret: SecretSource,
        dimensions: int | None = None,
        ca_file: Path | None = None,
        proxy_url: str | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        base = url.rstrip("/")
        self._destination = Destination.parse(base if base.endswith(ENDPOINT) else base + ENDPOINT)
        if self._destination.scheme != "https" and not self._destination.is_loopback:
            raise InvalidInputError(field="url", problem="must be https, except on this machine")
        self._proxy = None if proxy_url is None else Destination.parse(proxy_url)
        self._model = model
        self._secret = secret
        self._dimensions = dimensions
        self._ca_file = ca_file
        self._answer_bytes_max = min(answer_bytes_max, ANSWER_BYTES_MAX)
        self._tls: ssl.SSLContext | None = None

    @property
    @override
    def destination(self) -> str:
        return str(self._destination)

    @override
    def unready(self) -> ProviderFailure | None:
        try:
            self._secret.read()
            self._trust()
        except SettingsError:
            return ProviderFailure.NO_KEY
        except ProviderError as error:
            return error.failure
        return None

    @override
    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        if not timeout_s > 0:  # Also for NaN: nothing is begun that can't be ended.
            raise ProviderError(ProviderFailure.TIMEOUT)
        return await self._exchange(texts, self._trust()).run(timeout_s=timeout_s)

    def __repr__(self) -> str:
        return f"OpenAICompatibleProvider({self.destination}, model={self._model!r})"

    def _trust(self) -> "ssl.SSLContext":
        # The first request loads the HTTP library; composing a memory must not.
        from remembrancer.adapters.provider import exchange  # noqa: PLC0415

        if self._tls is None:
            self._tls = exchange.tls_context(self._ca_file)
        return self._tls

    def _exchange(self, texts: Sequence[str], tls: "ssl.SSLContext") -> "Exchange":
        # Its own function: what is in a variable here is in no frame of what run() lets through.
        from remembrancer.adapters.provider import exchange  # noqa: PLC0415  # as above

        body = self._body(texts)
        return exchange.Exchange(
            destination=self._destination,
            proxy=self._proxy,
            headers=self._headers(exchange.host_header(self._destination), len(body)),
            body=body,
            answer_bytes_max=self._answer_bytes_max,
            tls=tls,
        )

    def _body(self, texts: Sequence[str]) -> bytes:
        asked: dict[str, object] = {
            "model": self._model,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        try:
            return json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            pass  # Raised below: this error holds the texts.
        raise InvalidInputError(field="texts", problem="hold a lone surrogate")

    def _headers(self, host: str, body_bytes: int) -> tuple[tuple[str, str], ...]:
        # Its own function, so that no frame of a failure's traceback has the key in a variable.
        try:
            key = self._secret.read()
        except SettingsError as error:
            raise ProviderError(ProviderFailure.NO_KEY) from error
        return (
            ("Host", host),
            ("User-Agent", "remembrancer"),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(body_bytes)),
            ("Connection", "close"),
            *((("Authorization", f"Bearer {key}"),) if key is not None else ()),
        )
