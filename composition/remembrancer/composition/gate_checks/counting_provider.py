"""A provider inside the process: it answers, counts, and tells what arrived.  Nothing leaves."""

import hashlib
import json
import struct
from collections.abc import Awaitable, Callable, Sequence

from typing_extensions import override

from remembrancer.application.ports.embedding_provider import EmbeddingProvider
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.money import Pricing

Behaviour = Callable[[Sequence[str]], Awaitable[bytes]]

DESTINATION = "https://rehearsal.invalid/v1/embeddings"
"""A name that can never resolve (RFC 6761)."""


class CountingProvider(EmbeddingProvider):
    """Answers honestly unless ``behaviour`` is another."""

    def __init__(self, configuration: Configuration, behaviour: Behaviour | None = None) -> None:
        self._configuration = configuration
        self.behaviour: Behaviour = behaviour or self.honest
        self.texts: list[str] = []
        """Everything that arrived."""
        self.requests = 0
        self.arrived: Callable[[Sequence[str]], None] = lambda _: None
        """Called as a request arrives."""

    @property
    @override
    def destination(self) -> str:
        return DESTINATION

    @override
    async def request(self, texts: Sequence[str], *, timeout_s: float) -> bytes:
        self.requests += 1
        self.texts += texts
        self.arrived(texts)
        return await self.behaviour(texts)

    async def honest(self, texts: Sequence[str]) -> bytes:
        """Answer as asked, one token a word."""
        return answer(self._configuration, texts, sum(len(text.split()) for text in texts))

    async def greedy(self, texts: Sequence[str]) -> bytes:
        """Answer as asked, and count all the tokens that the texts can have been."""
        return answer(self._configuration, texts, usage_bound(self._configuration.pricing, texts))


def usage_bound(pricing: Pricing, texts: Sequence[str]) -> int:
    """Return the most tokens that ``texts`` can be counted as."""
    return pricing.tokens_bound([len(text.encode()) for text in texts])


def answer(configuration: Configuration, texts: Sequence[str], usage_tokens: int) -> bytes:
    """Return an answer as OpenAI-compatible servers give it."""
    space = configuration.embedding_tuple
    data = [
        {"index": index, "embedding": vector_for(text, space.dimensions)}
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": usage_tokens, "total_tokens": usage_tokens}
    return json.dumps({"model": space.model, "data": data, "usage": usage}).encode()


def vector_for(text: str, dimensions: int) -> list[float]:
    """Return a vector that depends on the text alone; never zero."""
    drawn = hashlib.shake_256(text.encode()).digest(2 * dimensions)
    return [(value + 1) / 65_537 for (value,) in struct.iter_unpack("<H", drawn)]
