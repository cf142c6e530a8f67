"""Word search in dictionaries: BM25 as the SQLite adapter counts it (adr/0008)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.ports.sparse_index import SparseDocument, SparseIndex
from remembrancer.application.ports.vector_store import Filter, VectorMatch
from remembrancer.domain.bm25 import (
    STEPS_PER_UNIT,
    affordable,
    in_steps,
    inverse_document_frequency,
    literal_score,
    term_weight,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.search_text import parsed_question, prepared, words

STEMS_KEPT = 65_536
STEMMED_CHARACTERS_MIN = 3
"""Shorter words are their own stems, as in FTS5."""
STEMMED_BYTES_MAX = 64
"""So are longer ones."""

_WHOSE = ("tenant", "owner")


@dataclass(frozen=True, slots=True)
class _Indexed:
    """A document as it is searched."""

    document: SparseDocument
    text: str = field(repr=False)
    """Prepared."""
    stems: tuple[str, ...] = field(repr=False)
    counts: Counter[str] = field(repr=False)


class MemorySparseIndex(SparseIndex):
    """Documents by id, and which of them hold a stem."""

    def __init__(self, *, transactions: MemoryTransactions) -> None:
        self._transactions = transactions
        self._indexed: dict[EntryId, _Indexed] = {}
        self._holders: dict[str, set[EntryId]] = {}
        self._length = 0

    @override
    def upsert_many(self, documents: Sequence[SparseDocument]) -> None:
        with self._transactions.begin():
            for document in documents:
                text = prepared(document.text)
                stems = tuple(map(_stem, words(text)))
                self._put(document.id, _Indexed(document, text, stems, Counter(stems)))

    @override
    def query(self, text: str, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        question = parsed_question(text)
        wanted = filter or {}
        whose = {key: value for key, value in wanted.items() if key in _WHOSE}
        with self._transactions.snapshot():
            if question.phrases:
                phrases = [tuple(map(_stem, phrase)) for phrase in question.phrases]
                scores = self._ranked(phrases, whose)
            else:
                scores = self._holding(question.literals)
            steps = [
                (-in_steps(score), entry_id.int, entry_id)
                for entry_id, score in scores.items()
                if _passes(self._indexed[entry_id].document, wanted)
            ]
        return [
            VectorMatch(entry_id, -negative / STEPS_PER_UNIT)
            for negative, _, entry_id in sorted(steps)[:top_k]
        ]

    @override
    def delete(self, id: EntryId) -> None:
        with self._transactions.begin():
            self._put(id, None)

    @override
    def clear(self) -> None:
        with self._transactions.begin():
            for entry_id in list(self._indexed):
                self._put(entry_id, None)

    @override
    def count(self) -> int:
        with self._transactions.snapshot():
            return len(self._indexed)

    def _put(self, entry_id: EntryId, new: _Indexed | None) -> None:
        """Let ``new`` stand under an id, until the transaction is rolled back."""
        old = self._exchange(entry_id, new)
        self._transactions.on_rollback(lambda: self._undo(entry_id, old))

    def _undo(self, entry_id: EntryId, old: _Indexed | None) -> None:
        self._exchange(entry_id, old)

    def _exchange(self, entry_id: EntryId, new: _Indexed | None) -> _Indexed | None:
        old = self._indexed.pop(entry_id, None)
        if old is not None:
            self._length -= len(old.stems)
            for stem in old.counts:
                self._holders[stem].discard(entry_id)
                if not self._holders[stem]:
                    del self._holders[stem]
        if new is not None:
            self._length += len(new.stems)
            self._indexed[entry_id] = new
            for stem in new.counts:
                self._holders.setdefault(stem, set()).add(entry_id)
        return old

    def _ranked(self, phrases: Sequence[tuple[str, ...]], whose: Filter) -> dict[EntryId, float]:
        collection = {
            entry_id
            for entry_id, indexed in self._indexed.items()
            if _passes(indexed.document, whose)
        }
        found = [
            {
                entry_id: occurrences
                for entry_id in self._candidates(phrase) & collection
                if (occurrences := _occurrences(phrase, self._indexed[entry_id]))
            }
            for phrase in phrases
        ]
        scores: dict[EntryId, float] = {}
        for place in affordable([len(holders) for holders in found], documents=len(collection)):
            holders = found[place]
            weight = inverse_document_frequency(documents=len(collection), holding=len(holders))
            for entry_id, occurrences in holders.items():
                score = weight * term_weight(
                    occurrences=occurrences,
                    length=len(self._indexed[entry_id].stems),
                    mean_length=self._length / len(self._indexed),
                )
                scores[entry_id] = scores.get(entry_id, 0.0) + score
        return scores

    def _candidates(self, phrase: tuple[str, ...]) -> set[EntryId]:
        """Return the documents that hold all stems of a phrase, in whatever order."""
        return set.intersection(*(self._holders.get(stem, set()) for stem in phrase))

    def _holding(self, literals: Sequence[str]) -> dict[EntryId, float]:
        counted = (
            (entry_id, sum(map(indexed.text.count, literals)))
            for entry_id, indexed in self._indexed.items()
        )
        return {
            entry_id: literal_score(occurrences)
            for entry_id, occurrences in counted
            if occurrences
        }


def _passes(document: SparseDocument, filter: Filter) -> bool:  # noqa: A002  # The port's word.
    return all(
        document.metadata.get(key) == value
        if isinstance(value, str)
        else document.metadata.get(key) in value
        for key, value in filter.items()
    )


def _occurrences(phrase: tuple[str, ...], indexed: _Indexed) -> int:
    if len(phrase) == 1:
        return indexed.counts[phrase[0]]
    stems, length = indexed.stems, len(phrase)
    return sum(
        stems[place : place + length] == phrase
        for place, stem in enumerate(stems)
        if stem == phrase[0]
    )


@lru_cache(maxsize=STEMS_KEPT)
def _stem(word: str) -> str:
    if len(word) < STEMMED_CHARACTERS_MIN or len(word.encode()) > STEMMED_BYTES_MAX:
        return word
    stem: str = _stemmer().stemWord(word)
    return stem


@cache
def _stemmer() -> Any:
    # Half the languages of Europe come with it; only who keeps entries in memory pays for them.
    import snowballstemmer  # noqa: PLC0415

    return snowballstemmer.stemmer("porter")
