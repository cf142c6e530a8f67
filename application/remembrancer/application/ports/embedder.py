"""Texts into vectors, in this process."""

from collections.abc import Sequence
from typing import Protocol

from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.vector import Vector


class Embedder(Protocol):
    """An in-process model: sends nothing, spends nothing, needs no admission (design 4.5).

    The same text gives the same vector in every call of one process.
    """

    @property
    def embedding_tuple(self) -> EmbeddingTuple:
        """The space its vectors lie in; known without loading the model."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return a vector for each text, in order; None where the model has no usable one."""
        ...

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a question, or None where the model has no usable one."""
        ...
