"""Reading rows from the table into the arrays of a resident copy.

Imported at the first query only, as it imports numpy.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import apsw
import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.int8_codes import coded_rows
from remembrancer.adapters.sqlite.metadata_groups import MetadataGroups
from remembrancer.adapters.sqlite.resident_rows import ResidentRows
from remembrancer.adapters.sqlite.vector_tables import VectorTables
from remembrancer.domain.errors import StoreCorruptError

_BATCH_ROWS = 512
"""Vectors coded at a time, so that the intermediate floats stay in the processor's cache."""
_SCAN_SHARE = 1 / 32
"""Of all vectors; to read more than this one by one takes longer than to read all in a row."""


def load(
    tables: VectorTables, connection: apsw.Connection, dimensions: int, groups: MetadataGroups
) -> tuple[ResidentRows, int]:
    """Read the whole index; an owner's rows side by side."""
    found = tables.rows_after(connection, 0)
    rows = ResidentRows.with_room_for(len(found), dimensions)
    if found:
        ids, keys, spelt = zip(*found, strict=True)
        of_group = _groups(spelt, groups)
        order = np.argsort(groups.order()[of_group], kind="stable")
        places = np.empty(len(found), dtype=np.int64)
        places[order] = np.arange(len(found))
        rows.put(places, ids, keys, of_group)
        _put_vectors(rows, places, ids, tables.all_vectors(connection), tables)
    return rows, len(found)


def append(
    tables: VectorTables,
    connection: apsw.Connection,
    last_id: int,
    held: tuple[ResidentRows, int],
    groups: MetadataGroups,
) -> tuple[ResidentRows, int]:
    """Read the rows above ``last_id`` into the room behind those held."""
    rows, used = held
    found = tables.rows_after(connection, last_id)
    rows = rows.grown(used, len(found))
    places = np.arange(used, used + len(found))
    if found:
        ids, keys, spelt = zip(*found, strict=True)
        if len(found) > used * _SCAN_SHARE:
            vectors: Iterable[tuple[int, bytes]] = (
                (id_, v) for id_, v in tables.all_vectors(connection) if id_ > last_id
            )
        else:
            vectors = zip(ids, tables.vectors(connection, ids), strict=False)
        rows.put(places, ids, keys, _groups(spelt, groups))
        _put_vectors(rows, places, ids, vectors, tables)
    return rows, used + len(found)


def floats(vectors: Sequence[bytes]) -> npt.NDArray[np.float32]:
    """Return float32 rows (n, dimensions)."""
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1)


def _groups(spelt: Sequence[str], groups: MetadataGroups) -> npt.NDArray[np.int32]:
    return np.fromiter(map(groups.number, spelt), np.int32, len(spelt))


def _put_vectors(
    rows: ResidentRows,
    places: npt.NDArray[np.int64],
    ids: Sequence[int],
    vectors: Iterable[tuple[int, bytes]],
    tables: VectorTables,
) -> None:
    read: Iterator[tuple[int, bytes]] = iter(vectors)
    known = np.array(ids, dtype=np.int64)
    put = 0
    while batch := list(islice(read, _BATCH_ROWS)):
        numbers, read_vectors = zip(*batch, strict=True)
        # sqlite-vec gives the slot of a deleted vector to the next one: by slot isn't by number.
        at = np.searchsorted(known, numbers)
        if at.max() == len(known) or (known[at] != numbers).any():
            break
        rows.put_vectors(places[at], coded_rows(floats(read_vectors)))
        put += len(batch)
    if put != len(ids):
        raise StoreCorruptError(
            store=f"vector index {tables.number}", problem="its two tables don't agree"
        )
