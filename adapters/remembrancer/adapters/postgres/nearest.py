"""The nearest vectors: exactly, by all that pass a filter, or roughly, by an HNSW index.

pgvector sums in float32.  So it is asked a little past the cut, by as much as such a sum can be
off, and what comes back is scored as the domain does, to the last bit (adr/0028).
"""

from dataclasses import dataclass, field
from typing import Any

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.labels import Conditions
from remembrancer.adapters.postgres.vector_wire import from_wire, scaled, to_wire, vectors_cursor
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, cosine, norm

FLOAT32_ERROR = 2.0**-24
"""Half a step of a float32 number near 1."""
READ_MAX = 20_000
"""Vectors of an owner up to which all are read, although an approximate index is there."""
SCANNED_MAX = 40_000
"""Places of the approximate index that are looked at for a filter, before all vectors are."""
ROUGH_MAX = 400
"""More results than this aren't asked of an approximate index."""
HNSW_DIMENSIONS_MAX = 4_000
"""The most that an HNSW index takes of half-precision numbers."""

_ROWS_MAX = 2**62
# What comes back is fetched by its place: by its key it was looked for in another index, once
# among all of the owner's for each, in a table that was never analysed.
_NEAREST = """
    WITH near AS MATERIALIZED (
        SELECT one.ctid AS place, one.extreme,
            one.embedding OPERATOR({schema}.<=>) %(asked)s::{schema}.vector AS distance
        FROM vectors AS one WHERE one.index_number = %(number)s{whose}{labelled}
    ),
    cut AS (
        SELECT max(distance) AS distance FROM (
            SELECT distance FROM near WHERE NOT extreme ORDER BY distance LIMIT %(top_k)s
        ) AS best
    )
    SELECT kept.id, kept.embedding FROM near
    JOIN vectors AS kept ON kept.ctid = near.place
    WHERE near.extreme OR near.distance <= (SELECT distance FROM cut) + %(slack)s
"""
_MANY = """
    SELECT count(*) FROM (
        SELECT FROM vectors AS one WHERE one.index_number = %(number)s{whose} LIMIT %(read_max)s
    ) AS counted
"""
_APPROXIMATE = """
    SELECT FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = 'vectors'::regclass AND relname = %s AND indisvalid
"""
_SCAN = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
    " set_config('hnsw.max_scan_tuples', %s, true), set_config('hnsw.ef_search', %s, true),"
    " set_config('enable_sort', %s, true)"
)
# The number is written out, for the planner to see that the index covers it.
_ROUGHLY = """
    SELECT one.id, one.embedding FROM vectors AS one
    WHERE one.index_number = {number}{whose}{labelled}
    ORDER BY {halved} OPERATOR({schema}.<=>)
        %(asked)s::{schema}.vector::{schema}.halfvec({dimensions})
    LIMIT %(top_k)s
"""
_EXTREME = """
    SELECT one.id, one.embedding FROM vectors AS one
    WHERE one.index_number = %(number)s AND one.extreme{whose}{labelled}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A question, and where it is asked."""

    connection: Connection
    schema: str
    """Of pgvector."""
    number: int
    """Of the vector index."""
    asked: Vector = field(repr=False)
    top_k: int
    reach: Conditions = field(repr=False)

    def values(self, **more: Any) -> dict[str, Any]:
        """Return what statements are given."""
        asked = to_wire(scaled(self.asked, norm(self.asked)))
        return {**self.reach.values, "number": self.number, "asked": asked, **more}

    def filled(self, template: str, **names: Any) -> str:
        """Put names and conditions in their places; values are bound."""
        return template.format(
            schema=self.schema, whose=self.reach.whose, labelled=self.reach.labelled, **names
        )


def approximate_index(number: int) -> str:
    """Return the name of the HNSW index of a vector index."""
    return f"vectors_near_{number}"


def halved(schema: str, dimensions: int, *, table: str = "") -> str:
    """Return the expression that an HNSW index is made of: half-precision numbers, length 1."""
    return f"({schema}.l2_normalize({table}embedding)::{schema}.halfvec({dimensions}))"


def nearest(searched: Searched) -> list[VectorMatch]:
    """Return the best, of all vectors that pass the filter."""
    # A sum of D products is off by D halves of a step, each of the two lengths by half as much,
    # and the question by one more; both the cut and a row may be off.
    slack = 2 * (2 * len(searched.asked) + 8) * FLOAT32_ERROR
    rows = vectors_cursor(searched.connection).execute(
        searched.filled(_NEAREST),
        searched.values(top_k=min(searched.top_k, _ROWS_MAX), slack=2 * slack),
    )
    return _rescored(searched, rows.fetchall())


def nearest_roughly(searched: Searched) -> list[VectorMatch] | None:
    """Return about the best, by the approximate index; None where all vectors should be read.

    That is so where there is no such index, few vectors are to be read, or the index didn't find
    as many as were asked for: a filter may leave none of those that are near.
    """
    connection, dimensions = searched.connection, len(searched.asked)
    if searched.top_k > ROUGH_MAX:
        return None
    if not connection.execute(_APPROXIMATE, (approximate_index(searched.number),)).rowcount:
        return None
    many: Any = connection.execute(
        searched.filled(_MANY), searched.values(read_max=READ_MAX + 1)
    ).fetchone()
    if many[0] <= READ_MAX:
        return None
    # More than are wanted, because half-precision numbers order them a little differently.
    wanted = 2 * searched.top_k + 20
    statement = searched.filled(
        _ROUGHLY,
        number=searched.number,
        dimensions=dimensions,
        halved=halved(searched.schema, dimensions, table="one."),
    )
    connection.execute(_SCAN, (str(SCANNED_MAX), str(min(1_000, 2 * wanted)), "off"))
    cursor = vectors_cursor(connection)
    found = cursor.execute(statement, searched.values(top_k=wanted)).fetchall()
    connection.execute(_SCAN, ("20000", "40", "on"))
    if len(found) < wanted:
        return None
    found += cursor.execute(searched.filled(_EXTREME), searched.values()).fetchall()
    return _rescored(searched, list(dict(found).items()))


def _rescored(searched: Searched, rows: list[tuple[Any, ...]]) -> list[VectorMatch]:
    length = norm(searched.asked)
    known: dict[bytes, float] = {}
    found = []
    for id_, stored in rows:
        score = known.get(stored)
        if score is None:
            vector = from_wire(stored)
            score = known[stored] = cosine(searched.asked, vector, norms=length * norm(vector))
        found.append((-score, id_))
    found.sort()
    return [VectorMatch(EntryId(id_), -score) for score, id_ in found[: searched.top_k]]
