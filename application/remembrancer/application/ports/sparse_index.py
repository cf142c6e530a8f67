"""Finding entries by their words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from typing_extensions import override

from remembrancer.application.ports.vector_store import Filter, VectorMatch
from remembrancer.domain.identity import EntryId


class SparseDocument(NamedTuple):
    """A text to be found, under an index id.  ``repr`` shows nothing private."""

    id: EntryId
    text: str
    metadata: Mapping[str, str]

    @override
    def __repr__(self) -> str:
        return f"SparseDocument(id={self.id!r})"


class SparseIndex(Protocol):
    """Keyword search, ranked by BM25 over stemmed words.

    Never fails on a text or question: quotes, operators, symbols, NUL, nothing at all.  Scripts
    without spaces are found by any part of two characters; NFC and NFD, width and accents make
    no difference.  A question of several words finds what holds any of them; a word with
    punctuation inside (``pre-edit``, ``v1.2.3``) finds what holds its parts in that order.
    Filters mean the same as in :class:`VectorStore` and are applied before ``top_k``.
    """

    def upsert_many(self, documents: Sequence[SparseDocument]) -> None:
        """Store documents, replacing those of the same ids.  All or none."""
        ...

    def query(self, text: str, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:  # noqa: A002  # the design's word
        """Return the best ``top_k`` documents (1 or more), by (score, then id), also at the cut.

        Scores are BM25, higher is better and above zero.  A question without anything to search
        for finds nothing.
        """
        ...

    def delete(self, id: EntryId) -> None:  # noqa: A002  # the design's word
        """Drop a document and overwrite its words.  An unknown id is not an error."""
        ...

    def clear(self) -> None:
        """Drop all documents."""
        ...

    def count(self) -> int:
        """Return how many documents are stored."""
        ...
