"""How a question is asked of the tables in ``sparse_index.sql`` (adr/0008)."""

import json
import math
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import apsw

from remembrancer.application.ports.vector_store import Filter, VectorMatch
from remembrancer.domain.bm25 import (
    STEPS_PER_UNIT,
    affordable,
    in_steps,
    inverse_document_frequency,
    literal_score,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.search_text import Question

LABELS = ("tenant", "owner", "scope", "kind", "sensitivity", "state")
"""Metadata with columns of its own; the first two say whose a document is."""
SERIAL_BITS = 32
"""Low bits of a document's number; the others are its owner's number."""
LITERAL_SCAN_MAX = 20_000
"""Documents read for a question of punctuation, the newest of each owner first."""

LOOKED_UP_PER_RESULT = 4
"""Of the best documents so many, for each that is wanted, have their labels looked up at first."""

_ROWS_MAX = 2**62
_FTS5_IDF_MIN = 1e-6
"""What ``bm25()`` takes where its own inverse document frequency isn't above zero."""

_OWNERS = "SELECT number, documents FROM sparse_owner"
_LABEL_NUMBERS = "SELECT number FROM sparse_label"
# CROSS JOIN: the words' index goes first.
_DOCUMENT = " CROSS JOIN sparse_document ON sparse_document.number = sparse_words.rowid"


@dataclass(frozen=True, slots=True)
class _Reach:
    """Which documents may be found, as SQL over ``sparse_words``."""

    owned: str
    """The condition that keeps the asked owners' documents: what words are weighed by."""
    labels: frozenset[int] | None
    """The labels that pass; None where all do."""
    labelled: str
    """The same as SQL on ``sparse_document``, beginning with AND; may be empty."""
    conditions: str
    """What else must hold, beginning with AND; may be empty."""
    bindings: dict[str, Any]
    documents: int
    """How many the asked owners have."""
    total: int


def matches(
    connection: apsw.Connection,
    question: Question,
    top_k: int,
    filter: Filter,  # noqa: A002  # The port's word.
) -> list[VectorMatch]:
    """Return the best ``top_k`` by (score, then id), also at the cut."""
    reach = _reach(connection, filter)
    if reach is None:
        return []
    if question.phrases:
        return _ranked(connection, question.phrases, top_k, reach)
    return _holding(connection, question.literals, top_k, reach)


def _reach(
    connection: apsw.Connection,
    filter: Filter,  # noqa: A002  # The port's word.
) -> _Reach | None:
    """Turn a filter into SQL; None where nothing can match."""
    values = {
        key: json.dumps([value] if isinstance(value, str) else list(value))
        for key, value in filter.items()
    }
    everybody: list[Any] = connection.execute(_OWNERS).fetchall()
    asked: list[Any] = connection.execute(*_narrowed(_OWNERS, values, LABELS[:2])).fetchall()
    documents = sum(count for _, count in asked)
    if not documents:
        return None
    numbers = sorted(number for number, _ in asked)
    bindings: dict[str, Any] = {
        "low": numbers[0] << SERIAL_BITS,
        "high": ((numbers[-1] + 1) << SERIAL_BITS) - 1,
    }
    owned = "sparse_words.rowid BETWEEN :low AND :high"
    if 1 < len(numbers) < len(everybody):
        bindings["owners"] = json.dumps(numbers)
        owned += f" AND sparse_words.rowid >> {SERIAL_BITS} IN {_listed('owners')}"
    labelled, conditions = "", ""
    labels = _labels(connection, numbers, values)
    if labels:
        bindings["labels"] = json.dumps(labels)
        labelled = f" AND sparse_document.label IN {_listed('labels')}"
    elif labels is not None:
        return None
    for place, key in enumerate(key for key in values if key not in LABELS):
        bindings |= {f"key_{place}": key, f"values_{place}": values[key]}
        conditions += (
            " AND EXISTS (SELECT 1 FROM sparse_metadata"  # noqa: S608  # Names of ours; values are bound.
            " WHERE document = sparse_words.rowid"
            f" AND key = :key_{place} AND value IN {_listed(f'values_{place}')})"
        )
    return _Reach(
        owned=owned,
        labels=None if labels is None else frozenset(labels),
        labelled=labelled,
        conditions=conditions,
        bindings=bindings,
        documents=documents,
        total=sum(count for _, count in everybody),
    )


def _labels(
    connection: apsw.Connection, owners: list[int], values: dict[str, str]
) -> list[int] | None:
    """Return the labels that pass, or None where all of the owners' do."""
    if not any(key in values for key in LABELS[2:]):
        return None
    whose = {"owner_number": json.dumps(owners)}
    chosen: list[Any] = connection.execute(
        *_narrowed(_LABEL_NUMBERS, values | whose, ("owner_number", *LABELS[2:]))
    ).fetchall()
    every = connection.execute(*_narrowed(_LABEL_NUMBERS, whose, ("owner_number",))).fetchall()
    return None if len(chosen) == len(every) else [number for (number,) in chosen]


def _narrowed(
    select: str, values: dict[str, str], columns: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Return a SELECT with a condition for each column that ``values`` names, and its bindings."""
    named = [column for column in columns if column in values]
    conditions = " AND ".join(f"{column} IN {_listed(column)}" for column in named)
    return (
        f"{select} WHERE {conditions}" if named else select,
        {column: values[column] for column in named},
    )


def _listed(name: str) -> str:
    return f"(SELECT value FROM json_each(:{name}))"  # noqa: S608  # Names of ours; values are bound.


def _weighed(
    connection: apsw.Connection, phrases: Sequence[tuple[str, ...]], reach: _Reach
) -> list[tuple[str, float]]:
    """Return each phrase to look for, with the factor for ``bm25()``."""
    found: list[tuple[str, int, int]] = []
    everywhere = "SELECT count(*) FROM sparse_words WHERE sparse_words MATCH :match"
    here = f"{everywhere} AND {reach.owned}"
    for phrase in phrases:
        match = '"' + " ".join(phrase) + '"'  # Words hold no quotes.
        in_all: int = connection.execute(everywhere, {"match": match}).get
        holding = in_all
        if in_all and reach.documents != reach.total:
            holding = connection.execute(here, {**reach.bindings, "match": match}).get
        if holding:
            found.append((match, in_all, holding))
    weighed = []
    for place in affordable([holding for _, _, holding in found], documents=reach.documents):
        match, in_all, holding = found[place]
        theirs = math.log((reach.total - in_all + 0.5) / (in_all + 0.5))
        ours = inverse_document_frequency(documents=reach.documents, holding=holding)
        # bm25() is negative: better is smaller.
        weighed.append((match, -ours / (theirs if theirs > 0.0 else _FTS5_IDF_MIN)))
    return weighed


def _ranked(
    connection: apsw.Connection,
    phrases: Sequence[tuple[str, ...]],
    top_k: int,
    reach: _Reach,
) -> list[VectorMatch]:
    weighed = _weighed(connection, phrases, reach)
    if not weighed:
        return []
    bindings = dict(reach.bindings)
    parts = []
    for place, (match, factor) in enumerate(weighed):
        bindings |= {f"match_{place}": match, f"factor_{place}": factor}
        parts.append(
            "SELECT sparse_words.rowid AS number,"  # noqa: S608  # Names of ours; values are bound.
            f" bm25(sparse_words) * :factor_{place} AS score"
            f" FROM sparse_words WHERE sparse_words MATCH :match_{place}"
            f" AND {reach.owned}{reach.conditions}"
        )
    # A compound of two or more is never flattened, which bm25() wouldn't survive.
    parts.append("SELECT 0, 0.0 WHERE 0")
    ranked = (
        "SELECT number,"  # noqa: S608  # Names of ours; values are bound.
        f" max(1, CAST(sum(score) * {STEPS_PER_UNIT} + 0.5 AS INTEGER)) AS rank"
        f" FROM ({' UNION ALL '.join(parts)}) GROUP BY number"
    )
    return [
        VectorMatch(entry_id, steps / STEPS_PER_UNIT)
        for entry_id, steps in _best(connection, ranked, bindings, top_k, reach.labels)
    ]


def _holding(
    connection: apsw.Connection, literals: Sequence[str], top_k: int, reach: _Reach
) -> list[VectorMatch]:
    """Return the best of those documents that hold a literal, as far as is looked."""
    bindings = {**reach.bindings, "scanned": LITERAL_SCAN_MAX}
    counts = []
    for place, literal in enumerate(literals):
        bindings[f"literal_{place}"] = literal
        counts.append(
            f"(length(text) - length(replace(text, :literal_{place}, ''))) / {len(literal)}"
        )
    held = (
        f"SELECT number, {' + '.join(counts)} AS rank"  # noqa: S608  # Names of ours; values are bound.
        " FROM (SELECT sparse_words.rowid AS number, sparse_text.text AS text"
        f" FROM sparse_words{_DOCUMENT}{reach.labelled}"
        " CROSS JOIN sparse_text ON sparse_text.number = sparse_document.text"
        f" WHERE {reach.owned}{reach.conditions}"
        " ORDER BY sparse_words.rowid DESC LIMIT :scanned) WHERE rank > 0"
    )
    return [
        VectorMatch(entry_id, in_steps(literal_score(occurrences)) / STEPS_PER_UNIT)
        for entry_id, occurrences in _best(connection, held, bindings, top_k)
    ]


def _best(
    connection: apsw.Connection,
    found: str,
    bindings: dict[str, Any],
    top_k: int,
    labels: frozenset[int] | None = None,
) -> list[tuple[EntryId, int]]:
    """Return the best of the (number, rank) that ``found`` selects, higher ranks first."""
    # Best first, so that labels and ids are looked up for few, and few are put in order; only
    # where these don't do, all are.
    best_first = (
        "SELECT id, label, rank"  # noqa: S608  # Names of ours; values are bound.
        f" FROM (SELECT number, rank FROM ({found}) ORDER BY rank DESC LIMIT :limit) AS found"
        " CROSS JOIN sparse_document ON sparse_document.number = found.number"
    )
    best: list[tuple[int, bytes]] = []
    for limit in (min(LOOKED_UP_PER_RESULT * top_k, _ROWS_MAX), -1):
        with closing(connection.execute(best_first, {**bindings, "limit": limit})) as rows:
            best, all_seen = _cut(rows, top_k, limit, labels)
        if all_seen:
            break
    # Ids order by their numbers, which is the order of their bytes.
    return [(EntryId(UUID(bytes=id_)), -worse) for worse, id_ in sorted(best)[:top_k]]


def _cut(
    rows: Iterable[Any], top_k: int, limit: int, labels: frozenset[int] | None
) -> tuple[list[tuple[int, bytes]], bool]:
    """Read ``rows`` up to the last that ties at the cut.

    Returns:
        (minus rank, id) of those whose label passes, and whether none that counts is missing.
    """
    best: list[tuple[int, bytes]] = []
    seen = 0
    for id_, label, rank in rows:
        seen += 1
        if len(best) >= top_k and -rank > best[-1][0]:
            return best, True
        if labels is None or label in labels:
            best.append((-rank, id_))
    return best, seen != limit
