"""How a question is asked of the postings (adr/0027).

What a word weighs, and how long a document is beside others, comes from the documents of the
owners that are asked: row security shows no others, and nothing of theirs shows in a score.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from remembrancer.adapters.postgres.connection import Connection, together
from remembrancer.adapters.postgres.labels import Conditions
from remembrancer.adapters.postgres.sparse_terms import occurrences, term_of
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.domain.bm25 import (
    K1,
    STEPS_PER_UNIT,
    B,
    affordable,
    in_steps,
    inverse_document_frequency,
    literal_score,
    term_weight,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.search_text import Question

LITERAL_SCAN_MAX = 20_000
"""Documents read for a question of punctuation, the newest first."""

_ROWS_MAX = 2**62
_COLLECTION = (
    "SELECT coalesce(sum(documents), 0), coalesce(sum(length), 0) FROM sparse_owners AS one"
    " WHERE true"
)
_HOLDING = (
    "SELECT term, count(*) FROM sparse_postings AS one WHERE term = ANY(%(terms)s) {whose}"
    " GROUP BY term"
)
# The domain's term_weight, operation by operation, so that it rounds alike.
_SCORED = (
    "SELECT one.id AS id, looked.weight * (one.occurrences::float8 * %(k1_1)s::float8"
    " / (one.occurrences::float8 + %(k1)s::float8"
    " * (%(without_b)s::float8 + %(b)s::float8 * one.length::float8 / %(mean)s::float8))) AS score"
    " FROM unnest(%(terms)s::text[], %(weights)s::float8[]) AS looked (term, weight)"
    " JOIN sparse_postings AS one ON one.term = looked.term WHERE true {whose}"
)
_BEST = (
    "SELECT ranked.id, ranked.steps FROM (SELECT id,"
    " greatest(1, floor(sum(score) * %(steps)s::float8 + 0.5::float8))::bigint AS steps"
    " FROM ({scored}) AS found GROUP BY id) AS ranked"
    " JOIN sparse_documents AS one ON one.id = ranked.id WHERE true {whose}{labelled}"
    " ORDER BY ranked.steps DESC, ranked.id LIMIT %(top_k)s"
)
_PHRASES = "SELECT * FROM unnest(%(ids)s::uuid[], %(scores)s::float8[]) AS held (id, score)"
_LITERAL = (
    "SELECT id, held FROM (SELECT id, {counts} AS held FROM (SELECT one.id, one.text"
    " FROM sparse_documents AS one WHERE true {whose}{labelled}"
    " ORDER BY one.number DESC LIMIT %(scanned)s) AS newest) AS counted"
    " WHERE held > 0 ORDER BY held DESC, id LIMIT %(top_k)s"
)


@dataclass(frozen=True, slots=True)
class _Collection:
    """The documents of the owners that are asked."""

    documents: int
    length: int

    @property
    def mean_length(self) -> float:
        return self.length / self.documents


@dataclass(frozen=True, slots=True)
class _Hit:
    """A document with a phrase in it."""

    id: Any
    occurrences: int
    length: int


def matches(
    connection: Connection, question: Question, top_k: int, reach: Conditions
) -> list[VectorMatch]:
    """Return the best ``top_k`` by (score, then id), also at the cut."""
    if question.phrases:
        phrases = [tuple(map(term_of, phrase)) for phrase in question.phrases]
        return _ranked(connection, phrases, top_k, reach)
    return _holding_literals(connection, question.literals, top_k, reach)


def _ranked(
    connection: Connection, phrases: Sequence[tuple[str, ...]], top_k: int, reach: Conditions
) -> list[VectorMatch]:
    terms = sorted({term for phrase in phrases for term in phrase})
    collection, holding = _counted(connection, terms, reach)
    if not collection.documents:
        return []
    hits = {
        phrase: _hits(connection, phrase, holding, reach)
        for phrase in phrases
        if len(phrase) > 1 and all(term in holding for term in phrase)
    }
    # As often as a question names it: a stem may be that of two of its words.
    held = [
        holding.get(phrase[0], 0) if len(phrase) == 1 else len(hits.get(phrase, ()))
        for phrase in phrases
    ]
    chosen = affordable(held, documents=collection.documents)
    words: list[tuple[str, float]] = []
    scores: list[tuple[Any, float]] = []
    for place in chosen:
        phrase = phrases[place]
        weight = inverse_document_frequency(documents=collection.documents, holding=held[place])
        if len(phrase) == 1:
            words.append((phrase[0], weight))
        else:
            scores += _scores(hits.get(phrase, ()), weight, collection)
    return _best(connection, words, scores, top_k, reach, collection)


def _counted(
    connection: Connection, terms: list[str], reach: Conditions
) -> tuple[_Collection, dict[str, int]]:
    """Return how much there is, and how many documents hold each term; in one round trip."""
    values = {**reach.values, "terms": terms}
    with together(connection):
        all_of_them = connection.execute(_COLLECTION + reach.whose, values)
        holders = connection.execute(_filled(_HOLDING, reach), values)
        row: Any = all_of_them.fetchone()
        holding: Iterable[Any] = holders.fetchall()
    return _Collection(int(row[0]), int(row[1])), dict(holding)


def _hits(
    connection: Connection, phrase: tuple[str, ...], holding: dict[str, int], reach: Conditions
) -> list[_Hit]:
    """Return the documents in which the terms of a phrase follow each other."""
    distinct = list(dict.fromkeys(phrase))
    rarest_first = sorted(distinct, key=lambda term: (holding[term], term))
    values: dict[str, Any] = dict(reach.values)
    joins, places = "", {term: f"one{place or ''}" for place, term in enumerate(rarest_first)}
    for place, term in enumerate(rarest_first):
        values[f"term_{place}"] = term
        if place:
            joins += (
                f" JOIN sparse_postings AS one{place} ON one{place}.tenant = one.tenant"
                f" AND one{place}.owner = one.owner AND one{place}.id = one.id"
                f" AND one{place}.term = %(term_{place})s"
            )
    selected = ", ".join(f"{places[term]}.positions" for term in distinct)
    statement = (
        f"SELECT one.id, one.length, {selected} FROM sparse_postings AS one{joins}"  # noqa: S608  # Names of ours; values are bound.
        f" WHERE one.term = %(term_0)s{reach.whose}"
    )
    rows: Iterable[Any] = connection.cursor(binary=True).execute(statement, values)
    found = ((row[0], occurrences(phrase, row[2:]), row[1]) for row in rows)
    return [_Hit(id_, count, length) for id_, count, length in found if count]


def _scores(
    hits: Iterable[_Hit], weight: float, collection: _Collection
) -> list[tuple[Any, float]]:
    return [
        (
            hit.id,
            weight
            * term_weight(
                occurrences=hit.occurrences,
                length=hit.length,
                mean_length=collection.mean_length,
            ),
        )
        for hit in hits
    ]


def _best(
    connection: Connection,
    words: Sequence[tuple[str, float]],
    scores: Sequence[tuple[Any, float]],
    top_k: int,
    reach: Conditions,
    collection: _Collection,
) -> list[VectorMatch]:
    if not words and not scores:
        return []
    values = {
        **reach.values,
        "k1": K1,
        "k1_1": K1 + 1.0,
        "b": B,
        "without_b": 1.0 - B,
        "mean": collection.mean_length,
        "steps": STEPS_PER_UNIT,
        "terms": [term for term, _ in words],
        "weights": [weight for _, weight in words],
        "ids": [id_ for id_, _ in scores],
        "scores": [score for _, score in scores],
        "top_k": min(top_k, _ROWS_MAX),
    }
    parts = ([_filled(_SCORED, reach)] if words else []) + ([_PHRASES] if scores else [])
    statement = _filled(_BEST, reach, scored=" UNION ALL ".join(parts))
    rows: Iterable[Any] = connection.execute(statement, values)
    return [VectorMatch(EntryId(id_), steps / STEPS_PER_UNIT) for id_, steps in rows]


def _holding_literals(
    connection: Connection, literals: Sequence[str], top_k: int, reach: Conditions
) -> list[VectorMatch]:
    """Return the best of those documents that hold a literal, as far as is looked."""
    values = {**reach.values, "scanned": LITERAL_SCAN_MAX, "top_k": min(top_k, _ROWS_MAX)}
    counts = []
    for place, literal in enumerate(literals):
        values[f"literal_{place}"] = literal
        counts.append(
            f"(length(text) - length(replace(text, %(literal_{place})s, ''))) / {len(literal)}"
        )
    statement = _filled(_LITERAL, reach, counts=" + ".join(counts))
    rows: Iterable[Any] = connection.execute(statement, values)
    return [
        VectorMatch(EntryId(id_), in_steps(literal_score(held)) / STEPS_PER_UNIT)
        for id_, held in rows
    ]


def _filled(template: str, reach: Conditions, **parts: str) -> str:
    """Put conditions in their places; values are bound, names are ours."""
    return template.format(whose=reach.whose, labelled=reach.labelled, **parts)
