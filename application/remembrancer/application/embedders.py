"""Which embedders this process has; the active index decides which one is asked."""

from collections.abc import Iterable

from remembrancer.application.ports import Embedder
from remembrancer.domain.embedding_tuple import EmbeddingTuple


class Embedders:
    """The in-process embedders by the space of their vectors.

    The first one given is preferred: a store that has no index yet gets one of its space.  A
    store whose index is of a space that nobody here can embed into is asked by keywords alone;
    vectors of two spaces never meet.
    """

    def __init__(self, embedders: Iterable[Embedder]) -> None:
        self._by_space: dict[EmbeddingTuple, Embedder] = {}
        self._asked_last: tuple[EmbeddingTuple, Embedder | None] | None = None
        for embedder in embedders:
            self.add(embedder)

    @property
    def preferred(self) -> Embedder | None:
        """The first embedder, if there is any."""
        return next(iter(self._by_space.values()), None)

    def add(self, embedder: Embedder) -> None:
        """Make one more embedder known."""
        self._by_space.setdefault(embedder.embedding_tuple, embedder)
        self._asked_last = None

    def of(self, embedding_tuple: EmbeddingTuple) -> Embedder | None:
        """Return the embedder of exactly this space, if it is here."""
        # Twice in each write, mostly of the same one: a look-up hashes and compares tuples.
        last = self._asked_last
        if last is None or last[0] is not embedding_tuple:
            last = self._asked_last = embedding_tuple, self._by_space.get(embedding_tuple)
        return last[1]
