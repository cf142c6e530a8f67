"""Vectors from the tables in which sqlite-vec keeps them: all of an index, or a few by number.

sqlite-vec looks every vector up by itself, some 4 us each and more; its chunks hold several, and
reading those takes a seventh of the time.  Their layout isn't promised to anybody, so nothing here
is trusted.  Of all vectors, a chunk of other lengths, or a first vector that sqlite-vec itself
tells differently, ends the reading, and the caller, who counts what came, reads by number instead.
Of a few, the caller sees whether they are what it knows of them.

Imported at the first query only, as it imports numpy.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import apsw
import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.int8_codes import Singles
from remembrancer.adapters.sqlite.vector_tables import VectorTables
from remembrancer.domain.errors import StoreCorruptError

Batch = tuple[npt.NDArray[np.int64], Singles]
"""Numbers (n) and their vectors (n, dimensions)."""

BATCH_ROWS = 512
"""Vectors at a time, so that what is computed from them stays in the processor's cache."""
_ID_BYTES, _FLOAT_BYTES, _BYTE_BITS = 8, 4, 8
_Chunk = tuple[int, bytes, bytes, bytes]


@dataclass(frozen=True, slots=True)
class KeptVectors:
    """Vectors by number, as one transaction sees them."""

    tables: VectorTables
    connection: apsw.Connection
    dimensions: int

    def in_place(self, ids: Sequence[int]) -> Singles | None:
        """Return what lies where sqlite-vec kept these vectors (n, dimensions); at least one.

        Nothing, if the layout is another.  It takes a sixth less than :meth:`told`; most of both
        is that SQLite walks from page to page through a chunk.
        """
        size = _FLOAT_BYTES * self.dimensions
        vectors = bytearray(len(ids) * size)
        try:
            places = self.tables.places(self.connection, ids)
            if len(places) != len(ids):
                return None
            with self.tables.chunk_vectors(self.connection, places[0][0]) as blob:
                for number, (chunk, place) in enumerate(places):
                    blob.reopen(chunk)
                    blob.seek(place * size)
                    blob.read_into(vectors, number * size, size)
        except (apsw.SQLError, TypeError, ValueError):  # No such table, row, number or length.
            return None
        return np.frombuffer(vectors, dtype=np.float32).reshape(len(ids), -1)

    def told(self, ids: Sequence[int]) -> Singles:
        """Return these vectors (n, dimensions) as sqlite-vec tells them; at least one.

        Raises:
            StoreCorruptError: it doesn't know one, or in another length.
        """
        vectors = self.tables.vectors(self.connection, ids)
        size = _FLOAT_BYTES * self.dimensions
        if len(vectors) != len(ids) or any(len(vector or b"") != size for vector in vectors):
            raise StoreCorruptError(store="vector index", problem="a vector is missing or short")
        return floats(vectors)


def by_chunk(
    tables: VectorTables, connection: apsw.Connection, dimensions: int
) -> Iterator[Batch]:
    """Iterate over all vectors, in no order; fewer, if the layout is not the known one."""
    try:
        chunks = tables.chunks(connection)
    except apsw.SQLError:
        return
    batches = (_batch(some, dimensions) for some in _several(chunks))
    first = next(batches, None)
    if first is not None and _told_the_same(tables, connection, first):
        yield first
        for batch in batches:
            if batch is None:
                return
            yield batch


def by_number(vectors: Iterable[tuple[int, bytes]]) -> Iterator[Batch]:
    """Iterate in batches over what sqlite-vec tells, one by one."""
    read = iter(vectors)
    while some := list(islice(read, BATCH_ROWS)):
        numbers, rows = zip(*some, strict=True)
        yield np.array(numbers, dtype=np.int64), floats(rows)


def floats(vectors: Iterable[bytes]) -> Singles:
    """Return float32 rows (n, dimensions) of at least one vector."""
    several = list(vectors)
    return np.frombuffer(b"".join(several), dtype=np.float32).reshape(len(several), -1)


def _several(chunks: Iterable[_Chunk]) -> Iterator[list[_Chunk]]:
    read = iter(chunks)
    for first in read:
        yield [first, *islice(read, max(0, BATCH_ROWS // max(1, first[0]) - 1))]


def _batch(chunks: list[_Chunk], dimensions: int) -> Batch | None:
    for size, validity, ids, vectors in chunks:
        known = (size // _BYTE_BITS, size * _ID_BYTES, size * _FLOAT_BYTES * dimensions)
        if (len(validity), len(ids), len(vectors)) != known:
            return None
    valid = np.frombuffer(b"".join(chunk[1] for chunk in chunks), dtype=np.uint8)
    here = np.flatnonzero(np.unpackbits(valid, bitorder="little"))
    ids_ = np.frombuffer(b"".join(chunk[2] for chunk in chunks), dtype=np.int64)
    rows = np.frombuffer(b"".join(chunk[3] for chunk in chunks), dtype=np.float32)
    return ids_[here], rows.reshape(-1, dimensions)[here]


def _told_the_same(tables: VectorTables, connection: apsw.Connection, batch: Batch) -> bool:
    numbers, rows = batch
    if not len(numbers):
        return True
    return tables.vectors(connection, [int(numbers[0])]) == [rows[0].tobytes()]
