"""What every embedding provider must do with a server that may do anything.

Subclass, say how to make one, and every promise of the port runs against a real server on this
machine::

    class TestMyProvider(EmbeddingProviderContract):
        def provider_for(self, url, *, key):
            return MyProvider(url=url, key=key)

Waits are real but short: each test passes its own deadline.
"""

import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from remembrancer.application.ports.embedding_provider import (
    EmbeddingProvider,
    ProviderError,
    ProviderFailure,
)
from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.loopback_provider import Behaviour, LoopbackProvider
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.provider_answer import ANSWER_BYTES_MAX

ENOUGH_S = 5.0
SHORT_S = 0.25
TEXTS = ("the cellar key hangs behind the clock", "who waters the ferns")


class EmbeddingProviderContract(ABC):
    """One request, one bounded answer, nothing else."""

    @abstractmethod
    def provider_for(self, url: str, *, key: str) -> EmbeddingProvider:
        """Return a provider for the base ``url`` that authorises with ``key``."""

    # -- What is sent --------------------------------------------------------------------

    def test_sends_the_texts_and_gives_the_answer_as_it_came(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            body = self.asked(server, key=api_key)

        assert json.loads(body)["data"][1]["embedding"] == pytest.approx(
            server_side.vector_for(TEXTS[1], 8)
        )
        assert [request.texts for request in server.requests] == [list(TEXTS)]

    def test_sends_nothing_but_texts_model_and_form(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            self.asked(server, key=api_key)

        (request,) = server.requests
        assert set(request.json) - {"dimensions"} == {"model", "input", "encoding_format"}
        assert request.json["encoding_format"] == "float"

    def test_authorises_with_the_key_in_a_header_only(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            self.asked(server, key=api_key)

        (request,) = server.requests
        assert request.headers["authorization"] == f"Bearer {api_key}"
        assert api_key not in request.target
        assert api_key.encode() not in request.body

    def test_asks_for_an_unpacked_answer(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            self.asked(server, key=api_key)

        assert server.requests[0].headers["accept-encoding"] == "identity"

    def test_names_the_destination_that_it_uses(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            provider = self.provider_for(server.url, key=api_key)
            anyio.run(lambda: provider.request(TEXTS, timeout_s=ENOUGH_S))

            assert provider.destination == f"http://127.0.0.1:{server.port}/v1/embeddings"
        assert server.requests[0].target == "/v1/embeddings"

    def test_keeps_no_connection_for_the_next_call(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            provider = self.provider_for(server.url, key=api_key)
            for _ in range(3):
                anyio.run(lambda: provider.request(TEXTS, timeout_s=ENOUGH_S))

        assert server.connections == 3

    def test_refuses_a_lone_surrogate_before_anything_is_sent(self, api_key: str) -> None:
        with LoopbackProvider() as server, pytest.raises(InvalidInputError) as refusal:
            self.asked(server, key=api_key, texts=("half a \ud83d pair",))

        assert server.connections == 0
        assert "half" not in every_word_of(refusal.value)

    def test_sends_nothing_when_no_time_is_left(self, api_key: str) -> None:
        with LoopbackProvider() as server, pytest.raises(ProviderError) as failure:
            self.asked(server, key=api_key, timeout_s=0.0)

        assert failure.value.failure is ProviderFailure.TIMEOUT
        assert server.requests == []

    # -- One attempt, whatever happens ---------------------------------------------------

    @pytest.mark.parametrize("code", [400, 401, 408, 409, 425, 429, 500, 502, 503, 504])
    def test_a_status_is_final_after_one_request(self, api_key: str, code: int) -> None:
        with LoopbackProvider(server_side.status(code)) as server:
            failure = self.failed(server, key=api_key)

        assert (failure.failure, failure.status) == (ProviderFailure.STATUS, code)
        assert failure.reason == f"status_{code}"
        assert len(server.requests) == server.connections == 1

    @pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
    def test_a_redirect_is_not_followed(self, api_key: str, code: int) -> None:
        with (
            LoopbackProvider() as elsewhere,
            LoopbackProvider(server_side.redirect(code, elsewhere.url + "/embeddings")) as server,
        ):
            failure = self.failed(server, key=api_key)

        assert failure.failure is ProviderFailure.REDIRECT
        assert len(server.requests) == 1
        assert elsewhere.connections == 0

    @pytest.mark.parametrize(
        ("behaviour", "expected"),
        [
            pytest.param(server_side.reset(), ProviderFailure.CONNECTION, id="reset"),
            pytest.param(server_side.raw(), ProviderFailure.MALFORMED, id="hung-up"),
            pytest.param(server_side.cut_off(), ProviderFailure.MALFORMED, id="cut-off"),
            pytest.param(
                server_side.raw(b"220 mail\r\n\r\n"), ProviderFailure.MALFORMED, id="smtp"
            ),
            pytest.param(
                server_side.packed(b"no gzip"), ProviderFailure.MALFORMED, id="unpackable"
            ),
            pytest.param(
                server_side.packed(encoding="br"), ProviderFailure.MALFORMED, id="other-packing"
            ),
            pytest.param(
                server_side.packed(server_side.bomb(1 << 20)[:300]),
                ProviderFailure.MALFORMED,
                id="half-a-gzip",
            ),
        ],
    )
    def test_a_broken_answer_is_final_after_one_request(
        self, api_key: str, behaviour: Behaviour, expected: ProviderFailure
    ) -> None:
        with LoopbackProvider(behaviour) as server:
            failure = self.failed(server, key=api_key)

        assert failure.failure is expected
        assert len(server.requests) == server.connections == 1

    def test_a_closed_port_is_a_connection_failure(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            url = server.url
        provider = self.provider_for(url, key=api_key)

        with pytest.raises(ProviderError) as failure:
            anyio.run(lambda: provider.request(TEXTS, timeout_s=ENOUGH_S))

        assert failure.value.failure is ProviderFailure.CONNECTION

    # -- Answers are carried, not judged -------------------------------------------------

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda said: said.update(usage={"prompt_tokens": -5}), id="usage"),
            pytest.param(lambda said: said["data"].reverse(), id="shuffled"),
            pytest.param(lambda said: said["data"].pop(), id="shortened"),
            pytest.param(lambda said: said["data"].append(said["data"][0]), id="repeated"),
            pytest.param(lambda said: said["data"][0].update(embedding=[float("nan")]), id="nan"),
            pytest.param(lambda _: [], id="another-shape"),
        ],
    )
    def test_a_lie_is_handed_on_for_validation(
        self, api_key: str, change: Callable[[dict[str, Any]], object]
    ) -> None:
        with LoopbackProvider(server_side.honest(change=change)) as server:
            body = self.asked(server, key=api_key)

        assert isinstance(body, bytes)
        assert len(server.requests) == 1

    def test_a_packed_answer_is_unpacked_within_the_cap(self, api_key: str) -> None:
        with LoopbackProvider(server_side.packed()) as server:
            body = self.asked(server, key=api_key)

        assert len(json.loads(body)["data"]) == len(TEXTS)

    def test_an_endless_answer_is_left_at_the_cap(self, api_key: str) -> None:
        with LoopbackProvider(server_side.endless()) as server:
            failure = self.failed(server, key=api_key)

            assert server.gone.wait(ENOUGH_S)
        assert failure.failure is ProviderFailure.TOO_LARGE

    def test_the_largest_answer_allowed_is_read(self, api_key: str) -> None:
        body = b" " * ANSWER_BYTES_MAX

        with LoopbackProvider(server_side.raw(server_side.http_answer(body))) as server:
            assert self.asked(server, key=api_key) == body

    def test_one_byte_more_is_too_large(self, api_key: str) -> None:
        body = b" " * (ANSWER_BYTES_MAX + 1)

        with LoopbackProvider(server_side.raw(server_side.http_answer(body))) as server:
            failure = self.failed(server, key=api_key)

        assert failure.failure is ProviderFailure.TOO_LARGE

    # -- The deadline and cancellation ---------------------------------------------------

    @pytest.mark.parametrize(
        "behaviour",
        [
            pytest.param(server_side.silent(), id="silent"),
            pytest.param(server_side.drip(every_s=0.02), id="drip"),
        ],
    )
    def test_the_deadline_covers_the_last_byte(self, api_key: str, behaviour: Behaviour) -> None:
        with LoopbackProvider(behaviour) as server:
            began = time.monotonic()
            failure = self.failed(server, key=api_key, timeout_s=SHORT_S)

            took_s = time.monotonic() - began
            assert server.gone.wait(ENOUGH_S)
        assert failure.failure is ProviderFailure.TIMEOUT
        assert SHORT_S <= took_s < 8 * SHORT_S
        assert len(server.requests) == 1

    def test_cancelling_closes_the_connection_at_once(self, api_key: str) -> None:
        with LoopbackProvider(server_side.silent()) as server:
            cancelled = self.cancelled_once_it_arrived(server, key=api_key)

            assert server.gone.wait(ENOUGH_S)
        assert cancelled
        assert len(server.requests) == 1

    # -- Nothing private comes out -------------------------------------------------------

    @pytest.mark.parametrize(
        "behaviour",
        [
            pytest.param(server_side.status(401), id="401"),
            pytest.param(server_side.status(500), id="500"),
            pytest.param(server_side.redirect(307, "http://127.0.0.1:9/"), id="307"),
            pytest.param(server_side.cut_off(), id="cut-off"),
            pytest.param(server_side.reset(), id="reset"),
        ],
    )
    def test_no_failure_holds_key_or_text(
        self, api_key: str, behaviour: Behaviour, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)

        with LoopbackProvider(behaviour) as server:
            failure = self.failed(server, key=api_key)

        said = every_word_of(failure) + caplog.text
        assert not [secret for secret in (api_key, *TEXTS) if secret in said]

    def test_a_protocol_error_quotes_nothing(
        self, api_key: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        echo = f"HTTP/1.1 200 OK\r\n{api_key}\r\n\r\n".encode()

        with LoopbackProvider(server_side.raw(echo)) as server:
            failure = self.failed(server, key=api_key)

        assert api_key not in every_word_of(failure) + caplog.text

    def test_a_provider_with_all_it_needs_is_ready(self, api_key: str) -> None:
        with LoopbackProvider() as server:
            unready = self.provider_for(server.url, key=api_key).unready()

            assert unready is None
            assert server.connections == 0  # Whether anybody is there, only a request shows.

    def test_a_provider_shows_no_key(self, api_key: str) -> None:
        provider = self.provider_for("http://127.0.0.1:9/v1", key=api_key)

        assert api_key not in repr(provider) + str(provider) + provider.destination

    # -- How the tests ask ---------------------------------------------------------------

    @pytest.fixture
    def api_key(self) -> str:
        """A key that never stood in a file."""
        return "key-" + "".join(chr(97 + value % 26) for value in range(40))

    def asked(
        self,
        server: LoopbackProvider,
        *,
        key: str,
        texts: tuple[str, ...] = TEXTS,
        timeout_s: float = ENOUGH_S,
    ) -> bytes:
        """Ask once and return the body."""
        provider = self.provider_for(server.url, key=key)
        return anyio.run(lambda: provider.request(texts, timeout_s=timeout_s))

    def failed(
        self, server: LoopbackProvider, *, key: str, timeout_s: float = ENOUGH_S
    ) -> ProviderError:
        """Ask once and return the failure."""
        with pytest.raises(ProviderError) as failure:
            self.asked(server, key=key, timeout_s=timeout_s)
        return failure.value

    def cancelled_once_it_arrived(self, server: LoopbackProvider, *, key: str) -> bool:
        """Ask, cancel from outside as soon as the request is there; True if it was cancelled."""
        provider = self.provider_for(server.url, key=key)

        async def watch(scope: anyio.CancelScope) -> None:
            await anyio.to_thread.run_sync(server.arrived.wait, ENOUGH_S)
            scope.cancel()

        async def ask() -> bool:
            async with anyio.create_task_group() as group:
                with anyio.CancelScope() as scope:
                    group.start_soon(watch, scope)
                    await provider.request(TEXTS, timeout_s=ENOUGH_S)
            return scope.cancelled_caught

        return anyio.run(ask)


def every_word_of(error: BaseException) -> str:
    """Return all that an error, and whatever hangs on it, could show somebody."""
    said: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        said += [str(each), repr(each), repr(vars(each)), repr(each.args)]
        waiting += [each.__cause__, each.__context__]
    return "\n".join(said)
