"""The two tables of one vector index, and every statement on them.

``vector_N`` is sqlite-vec's: a number and a vector.  ``vector_row_N`` says what a number stands
for.  A number is given once and its vector never changes: replacing a vector means to retire its
row and to add one.  So the largest number and the largest ``gone`` name a state of the index, and
what was committed since another state is read by two ranges.

Retired rows stay, emptied: SQLite leaves stale copies of a row behind when it moves it between
pages, which it does after deletions but not when a row only becomes shorter (adr/0003).
sqlite-vec overwrites the bytes of a vector that it deletes (tested).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

CHUNK_ROWS = 8
"""Vectors a blob; sqlite-vec takes no fewer.  SQLite walks through a blob page by page: a vector
is read by its number in 5 us, from the default of 1,024 in 90.  Inserting is faster too
(adr/0007)."""

DIMENSIONS_MAX = 8_192
"""The most that sqlite-vec takes."""

_CREATE = f"""
CREATE VIRTUAL TABLE vector_{{number}} USING vec0(
    id INTEGER PRIMARY KEY,
    embedding float[{{dimensions}}] distance_metric=cosine,
    chunk_size={CHUNK_ROWS}
);

CREATE TABLE vector_row_{{number}} (
    id INTEGER PRIMARY KEY, -- 1, 2, 3 ...; no row is ever deleted, so none is given twice
    key BLOB UNIQUE, -- the entry id, 16 bytes; NULL once gone, as is
    metadata TEXT, -- canonical JSON
    gone INTEGER -- counts the retirements; NULL while the vector is here
) STRICT;

CREATE INDEX vector_row_{{number}}_gone
ON vector_row_{{number}} (gone) WHERE gone IS NOT NULL;
"""
_DROP = """
DROP TABLE vector_{number};
DROP TABLE vector_row_{number};
"""


class State(NamedTuple):
    """Names what an index holds; a later commit has a larger one."""

    last_id: int
    last_gone: int


Row = tuple[int, bytes, str]
"""A number, the key that it stands for and its metadata in canonical JSON."""


@dataclass(frozen=True, slots=True)
class VectorTables:
    """The tables of the index ``number``.  Every method runs in the caller's transaction."""

    number: int

    def create(self, connection: apsw.Connection, dimensions: int) -> None:
        """Make the tables, empty."""
        connection.execute(_CREATE.format(number=self.number, dimensions=dimensions))

    def drop(self, connection: apsw.Connection) -> None:
        """Destroy the tables; secure_delete overwrites their pages."""
        connection.execute(_DROP.format(number=self.number))

    def exist(self, connection: apsw.Connection) -> bool:
        """Say whether the index is there; another process may have dropped it."""
        return connection.table_exists("main", f"vector_row_{self.number}")

    def state(self, connection: apsw.Connection) -> State:
        """Return the state that this transaction sees; some 5 us."""
        [(last_id, last_gone)] = connection.execute(
            _sql(
                "SELECT (SELECT max(id) FROM vector_row_{n}),"
                " (SELECT max(gone) FROM vector_row_{n} WHERE gone IS NOT NULL)",
                self.number,
            )
        )
        return State(last_id or 0, last_gone or 0)

    def count(self, connection: apsw.Connection) -> int:
        """Return how many vectors are here; numbers have no gaps."""
        gone: int = connection.execute(
            _sql("SELECT count(*) FROM vector_row_{n} WHERE gone IS NOT NULL", self.number)
        ).get
        return self.state(connection).last_id - gone

    # -- Writing -----------------------------------------------------------

    def add(
        self, connection: apsw.Connection, rows: Sequence[Row], vectors: Sequence[bytes]
    ) -> None:
        """Add vectors (float32 bytes) under new numbers."""
        connection.executemany(
            _sql("INSERT INTO vector_row_{n} VALUES (?, ?, ?, NULL)", self.number), rows
        )
        connection.executemany(
            _sql("INSERT INTO vector_{n} (id, embedding) VALUES (?, ?)", self.number),
            [(row[0], vector) for row, vector in zip(rows, vectors, strict=True)],
        )

    def retire(self, connection: apsw.Connection, ids: Sequence[int]) -> None:
        """Destroy vectors and what their rows say; the numbers stay taken."""
        if not ids:
            return
        gone = self.state(connection).last_gone + 1
        connection.executemany(
            _sql(
                "UPDATE vector_row_{n} SET key = NULL, metadata = NULL, gone = ? WHERE id = ?",
                self.number,
            ),
            [(gone, id_) for id_ in ids],
        )
        connection.executemany(
            _sql("DELETE FROM vector_{n} WHERE id = ?", self.number), [(id_,) for id_ in ids]
        )

    # -- Reading -----------------------------------------------------------

    def ids(self, connection: apsw.Connection, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Return the numbers of those keys that are here."""
        return dict(
            connection.executemany(
                _sql("SELECT key, id FROM vector_row_{n} WHERE key = ?", self.number),
                [(key,) for key in keys],
            )
        )

    def all_ids(self, connection: apsw.Connection) -> list[int]:
        """Return the numbers of all vectors here."""
        return [
            id_
            for (id_,) in connection.execute(
                _sql("SELECT id FROM vector_row_{n} WHERE gone IS NULL", self.number)
            )
        ]

    def rows_after(self, connection: apsw.Connection, last_id: int) -> list[Row]:
        """Return the rows that are here with numbers above ``last_id``, in their order."""
        found: Any = connection.execute(
            _sql(
                "SELECT id, key, metadata FROM vector_row_{n} WHERE id > ? AND gone IS NULL",
                self.number,
            ),
            (last_id,),
        )
        rows: list[Row] = found.fetchall()
        return rows

    def gone_after(self, connection: apsw.Connection, last_gone: int) -> list[tuple[int, int]]:
        """Return (id, gone) of the rows retired since ``last_gone``."""
        found: Any = connection.execute(
            _sql("SELECT id, gone FROM vector_row_{n} WHERE gone > ?", self.number), (last_gone,)
        )
        gone: list[tuple[int, int]] = found.fetchall()
        return gone

    def vectors(self, connection: apsw.Connection, ids: Iterable[int]) -> list[bytes]:
        """Return the vectors of these numbers, in this order, less those that aren't here."""
        # One look-up each: sqlite-vec answers `id IN (...)` by reading the whole table.
        return [
            vector
            for (vector,) in connection.executemany(
                _sql("SELECT embedding FROM vector_{n} WHERE id = ?", self.number),
                [(id_,) for id_ in ids],
            )
        ]

    def places(self, connection: apsw.Connection, ids: Iterable[int]) -> list[tuple[int, int]]:
        """Return, from sqlite-vec's own tables, each vector's chunk and its place in that."""
        found: Any = connection.executemany(
            _sql(
                "SELECT chunk_id, chunk_offset FROM vector_{n}_rowids WHERE rowid = ?", self.number
            ),
            [(id_,) for id_ in ids],
        )
        places: list[tuple[int, int]] = found.fetchall()
        return places

    def chunk_vectors(self, connection: apsw.Connection, chunk: int) -> apsw.Blob:
        """Open, among sqlite-vec's own, the vectors of a chunk; to be closed."""
        return connection.blob_open(
            "main", _sql("vector_{n}_vector_chunks00", self.number), "vectors", chunk, False
        )

    def chunks(self, connection: apsw.Connection) -> Iterable[tuple[int, bytes, bytes, bytes]]:
        """Iterate over sqlite-vec's own tables: size, which are valid, numbers, vectors."""
        return connection.execute(
            _sql(
                "SELECT chunk.size, chunk.validity, chunk.rowids, held.vectors"
                " FROM vector_{n}_chunks AS chunk"
                " JOIN vector_{n}_vector_chunks00 AS held ON held.rowid = chunk.chunk_id",
                self.number,
            )
        )

    def all_vectors(self, connection: apsw.Connection) -> Iterable[tuple[int, bytes]]:
        """Iterate over all numbers and vectors, in no order."""
        return connection.execute(_sql("SELECT id, embedding FROM vector_{n}", self.number))


@lru_cache(maxsize=256)
def _sql(template: str, number: int) -> str:
    return template.format(n=number)
