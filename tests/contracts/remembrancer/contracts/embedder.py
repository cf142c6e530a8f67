"""What every in-process embedder promises, and one for tests.

Enrol an adapter by subclassing :class:`EmbedderContract`::

    class TestMyEmbedder(EmbedderContract):
        def embedder(self) -> Embedder:
            return MyEmbedder()
"""

import hashlib
import math
import re
import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence

import pytest
from typing_extensions import override

from remembrancer.application.ports.embedder import Embedder
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.vector import Vector, checked_vector, cosine, norm

TEXTS = (
    "The invoice service retries three times before it gives up.",
    "naïve café, coöperate",
    "速度 と 品質",
    "rocket \N{ROCKET} launch at 9:00",
    "v1.2.3 of pre-edit moves 4 GB/s",
    "a  text\n\nwith\todd   spaces ",
    "one",
)
THREADS = 8


class EmbedderContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the embedder."""

    @abstractmethod
    def embedder(self) -> Embedder:
        """Make an embedder; two of them name the same space."""

    def test_its_space_is_known_and_the_same_each_time(self) -> None:
        first, second = self.embedder(), self.embedder()

        assert first.embedding_tuple == second.embedding_tuple
        assert first.embedding_tuple.digest == second.embedding_tuple.digest

    def test_vectors_fit_their_space(self) -> None:
        embedder = self.embedder()

        vectors = embedder.embed_documents(TEXTS)

        assert len(vectors) == len(TEXTS)
        for vector in vectors:
            assert vector is not None
            checked_vector(vector, embedder.embedding_tuple.dimensions)

    def test_no_texts_give_no_vectors(self) -> None:
        assert self.embedder().embed_documents([]) == []

    @pytest.mark.parametrize("text", ["", " ", "\n\t ", "\N{IDEOGRAPHIC SPACE}"])
    def test_a_text_that_says_nothing_has_no_vector(self, text: str) -> None:
        embedder = self.embedder()

        assert embedder.embed_query(text) is None
        assert embedder.embed_documents([text, TEXTS[0]])[0] is None

    def test_a_text_has_one_vector_alone_and_among_others(self) -> None:
        embedder = self.embedder()

        alone = [_bytes(embedder.embed_documents([text])[0]) for text in TEXTS]

        assert [*map(_bytes, embedder.embed_documents(TEXTS))] == alone
        assert [*map(_bytes, embedder.embed_documents(TEXTS[::-1]))] == alone[::-1]
        assert [*map(_bytes, self.embedder().embed_documents(TEXTS * 40))] == alone * 40

    def test_threads_get_the_same_vectors(self) -> None:
        embedder = self.embedder()
        answers: list[list[bytes]] = []
        together = threading.Barrier(THREADS)

        def embed() -> None:
            together.wait()
            answers.append([_bytes(vector) for vector in embedder.embed_documents(TEXTS)])

        threads = [threading.Thread(target=embed) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert answers == [[*map(_bytes, self.embedder().embed_documents(TEXTS))]] * THREADS

    def test_a_text_is_most_like_itself(self) -> None:
        embedder = self.embedder()
        documents = embedder.embed_documents(TEXTS)

        for place, text in enumerate(TEXTS):
            question = embedder.embed_query(text)
            scores = [_cosine(question, document) for document in documents]

            assert scores[place] == max(scores)

    @pytest.mark.parametrize("unit", ["memory ", "x", "記", " ", "\n"], ids=ascii)
    def test_a_text_of_a_mebibyte_is_no_trouble(self, unit: str) -> None:
        embedder = self.embedder()
        text = unit * (1_048_570 // len(unit.encode())) + "end"

        vector = embedder.embed_query(text)

        assert vector is not None
        checked_vector(vector, embedder.embedding_tuple.dimensions)

    def test_a_lone_surrogate_raises_nothing(self) -> None:
        self.embedder().embed_query("half \ud83d of a pair")

    def test_shows_no_text_in_its_repr(self) -> None:
        embedder = self.embedder()
        embedder.embed_query("canarybird")

        assert "canarybird" not in repr(embedder)


class HashingEmbedder(Embedder):
    """For tests: words hashed to signed places, standard library only.

    Texts that share words are alike, others are not; the same on every machine.
    """

    def __init__(
        self, *, dimensions: int = 64, model: str = "hashing", revision: str = "1"
    ) -> None:
        self._tuple = EmbeddingTuple(
            provider="test",
            model=model,
            model_revision=revision,
            dimensions=dimensions,
            input_preparation="words@1",
        )

    @property
    @override
    def embedding_tuple(self) -> EmbeddingTuple:
        return self._tuple

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self._embed(text) for text in texts]

    @override
    def embed_query(self, text: str) -> Vector | None:
        return self._embed(text)

    def _embed(self, text: str) -> "array[float] | None":
        vector = array("f", bytes(4 * self._tuple.dimensions))
        for word in re.findall(r"\w+", text.casefold()) or text.split():
            spelled = f"{self._tuple.model} {word}".encode(errors="replace")
            place = int.from_bytes(hashlib.blake2b(spelled, digest_size=8).digest(), "little")
            sign = 1.0 if place & 1 else -1.0
            vector[(place >> 1) % self._tuple.dimensions] += sign
        # Words may cancel each other out: such a text has no direction.
        return vector if any(vector) else None


def _bytes(vector: Vector | None) -> bytes:
    assert vector is not None
    return array("f", vector).tobytes()


def _cosine(one: Vector | None, other: Vector | None) -> float:
    assert one is not None
    assert other is not None
    score = cosine(one, other, norms=norm(one) * norm(other))
    assert math.isfinite(score)
    return score
