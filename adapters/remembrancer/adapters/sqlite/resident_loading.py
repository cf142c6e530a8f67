"""Reading rows from the table into the arrays of a resident copy.

Imported at the first query only, as it imports numpy.
"""

from collections.abc import Iterable, Sequence

import apsw
import numpy as np
import numpy.typing as npt

from remembrancer.adapters.sqlite.int8_codes import coded_rows
from remembrancer.adapters.sqlite.metadata_groups import MetadataGroups
from remembrancer.adapters.sqlite.resident_rows import KEY_BYTES, ResidentRows
from remembrancer.adapters.sqlite.vector_chunks import Batch, by_chunk, by_number
from remembrancer.adapters.sqlite.vector_tables import Row, VectorTables
from remembrancer.domain.errors import StoreCorruptError

_SCAN_SHARE = 1 / 32
"""Of all vectors; to read more than this one by one takes longer than to read all in a row."""


def load(
    tables: VectorTables, connection: apsw.Connection, dimensions: int, groups: MetadataGroups
) -> tuple[ResidentRows, int]:
    """Read the whole index; an owner's rows side by side."""
    found = tables.rows_after(connection, 0)
    rows = ResidentRows.with_room_for(len(found), dimensions)
    if found:
        ids, keys, spelt = _read(found, tables)
        of_group = _groups(spelt, groups, tables)
        order = np.argsort(groups.order()[of_group], kind="stable")
        places = np.empty(len(found), dtype=np.int64)
        places[order] = np.arange(len(found))
        rows.put(places, ids, keys, of_group)
        _put_vectors(rows, (places, ids), tables, connection)
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
        ids, keys, spelt = _read(found, tables)
        rows.put(places, ids, keys, _groups(spelt, groups, tables))
        if len(found) > used * _SCAN_SHARE:
            _put_vectors(rows, (places, ids), tables, connection)
        else:
            vectors = zip(ids, tables.vectors(connection, ids), strict=False)
            _require(_put(rows, places, ids, by_number(vectors)), tables)
    return rows, used + len(found)


def _read(
    found: Sequence[Row], tables: VectorTables
) -> tuple[Sequence[int], Sequence[bytes], Sequence[str]]:
    ids, keys, spelt = zip(*found, strict=True)
    whole = None not in keys and len(b"".join(keys)) == KEY_BYTES * len(keys)
    _require(whole and None not in spelt, tables)
    return ids, keys, spelt


def _groups(
    spelt: Sequence[str], groups: MetadataGroups, tables: VectorTables
) -> npt.NDArray[np.int32]:
    try:
        return np.fromiter(map(groups.number, spelt), np.int32, len(spelt))
    except ValueError:
        pass
    # Not chained: the error of a JSON decoder holds the whole document.
    raise _disagreement(tables)


def _put_vectors(
    rows: ResidentRows,
    wanted: tuple[npt.NDArray[np.int64], Sequence[int]],
    tables: VectorTables,
    connection: apsw.Connection,
) -> None:
    places, ids = wanted
    dimensions = rows.codes.shape[1]
    if not _put(rows, places, ids, by_chunk(tables, connection, dimensions)):
        told = by_number(tables.all_vectors(connection))
        _require(_put(rows, places, ids, told), tables)


def _put(
    rows: ResidentRows,
    places: npt.NDArray[np.int64],
    ids: Sequence[int],
    batches: Iterable[Batch],
) -> bool:
    """Put the vectors of ``ids`` (ascending) in their places; say whether all of them came."""
    known = np.array(ids, dtype=np.int64)
    came = 0
    for numbers, vectors in batches:
        # sqlite-vec gives the slot of a deleted vector to the next one: by slot isn't by number.
        at = np.searchsorted(known, numbers)
        at[at == len(known)] = 0
        wanted = known[at] == numbers
        if wanted.any():
            coded = coded_rows(vectors[wanted])
            if not np.isfinite(coded.residuals).all():
                return False  # Nobody wrote a vector without a direction.
            rows.put_vectors(places[at[wanted]], coded)
            came += int(wanted.sum())
    return came == len(known)


def _require(complete: bool, tables: VectorTables) -> None:  # noqa: FBT001 - read as a sentence
    if not complete:
        raise _disagreement(tables)


def _disagreement(tables: VectorTables) -> StoreCorruptError:
    return StoreCorruptError(
        store=f"vector index {tables.number}",
        problem="its tables don't agree (reindexing makes it anew)",
    )
