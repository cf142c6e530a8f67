"""What the SQLite vector store promises beyond the port: its copy, other processes, imports."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import apsw
import pytest
from tests.adapters.resident_vector_examples import DIMENSIONS, EAST, opened, vectors_of_kind

from remembrancer.adapters.sqlite import resident_vectors
from remembrancer.adapters.sqlite.code_scan import numpy_kernel
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_chunks import KeptVectors
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.adapters.sqlite.vector_tables import VectorTables
from remembrancer.application.ports import VectorPoint
from remembrancer.contracts.vector_examples import brute_force, put, random_vectors
from remembrancer.contracts.vector_store_in_transactions import in_another_thread
from remembrancer.domain.errors import StoreCorruptError, StoreUnavailableError
from remembrancer.domain.identity import EntryId

if TYPE_CHECKING:
    from remembrancer.adapters.sqlite.int8_codes import Singles
    from remembrancer.domain.vector import Vector

OTHER_PROCESS = """
import sys
from array import array
from pathlib import Path
from uuid import UUID
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes

with Database.open(Path(sys.argv[1])) as database:
    indexes = SqliteVectorIndexes(database=database)
    [index] = indexes.all()
    store = indexes.store(index)
    exec(sys.argv[2])
assert "numpy" not in sys.modules
"""
FIRST, SECOND, THIRD = (EntryId(UUID(int=number)) for number in (1, 2, 3))

Chunk = tuple[int, bytes, bytes, bytes]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        yield database


@pytest.fixture
def store(database: Database) -> SqliteVectorStore:
    return opened(database)


# -- Exactness -------------------------------------------------------------


@pytest.mark.parametrize("top_k", [1, 10, 300])
@pytest.mark.parametrize("kind", ["random", "clustered", "nearly the same", "spiked"])
@pytest.mark.parametrize("kernel", ["fastest", "numpy"])
def test_finds_exactly_what_brute_force_finds(
    store: SqliteVectorStore, kind: str, top_k: int, kernel: str
) -> None:
    vectors = vectors_of_kind(kind, 2_500)
    put(store, vectors)
    if kernel == "numpy":
        store._copy()._scan._kernel = numpy_kernel

    for asked in list(vectors.values())[:3]:
        assert store.query(asked, top_k) == brute_force(vectors, {}, asked, top_k, {})


def test_few_rows_are_read_from_the_table_and_those_in_place(
    store: SqliteVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = vectors_of_kind("random", 5_000)
    put(store, vectors)
    store.query(EAST, 10)
    read: list[int] = []
    in_place = KeptVectors.in_place

    def counted(self: KeptVectors, ids: Sequence[int]) -> "Singles | None":
        read.extend(ids)
        return in_place(self, ids)

    monkeypatch.setattr(KeptVectors, "in_place", counted)
    monkeypatch.delattr(VectorTables, "vectors")
    store.query(next(iter(vectors.values())), 10)

    assert 10 <= len(read) <= 60


# -- The copy --------------------------------------------------------------


@pytest.mark.parametrize("chunks", ["missing", "of another length", "of other vectors"])
def test_chunks_in_an_unknown_layout_are_not_trusted(
    store: SqliteVectorStore, monkeypatch: pytest.MonkeyPatch, chunks: str
) -> None:
    vectors = vectors_of_kind("random", 100)
    put(store, vectors)
    read = VectorTables.chunks

    def other(self: VectorTables, connection: apsw.Connection) -> list[Chunk]:
        if chunks == "missing":
            raise apsw.SQLError
        return [
            (size, valid, ids, floats[4:] + (floats[:4] if chunks == "of other vectors" else b""))
            for size, valid, ids, floats in read(self, connection)
        ]

    monkeypatch.setattr(VectorTables, "chunks", other)

    assert store.query(EAST, 9) == brute_force(vectors, {}, EAST, 9, {})


@pytest.mark.parametrize("top_k", [9, 200])
@pytest.mark.parametrize("places", ["missing", "some", "foreign", "beyond the end", "no numbers"])
def test_vectors_that_are_not_in_their_places_are_asked_for(
    store: SqliteVectorStore, monkeypatch: pytest.MonkeyPatch, places: str, top_k: int
) -> None:
    vectors = vectors_of_kind("random", 100)
    put(store, vectors)
    read = VectorTables.places

    def other(self: VectorTables, connection: apsw.Connection, ids: Sequence[int]) -> Any:
        if places == "missing":
            raise apsw.SQLError
        found = read(self, connection, ids)
        return {
            "some": found[1:],
            "foreign": [*found[1:], found[0]],
            "beyond the end": [(chunk, place + 8) for chunk, place in found],
            "no numbers": [(None, place) for _, place in found],
        }[places]

    monkeypatch.setattr(VectorTables, "places", other)

    assert store.query(EAST, top_k) == brute_force(vectors, {}, EAST, top_k, {})


@pytest.mark.parametrize("rows", ["16", "8"])
def test_an_index_of_any_chunk_size_is_read(
    store: SqliteVectorStore, database: Database, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    with database.write() as connection:
        connection.execute("DROP TABLE vector_1")
        connection.execute(
            "CREATE VIRTUAL TABLE vector_1 USING vec0(id INTEGER PRIMARY KEY,"
            f" embedding float[{DIMENSIONS}] distance_metric=cosine, chunk_size={rows})"
        )
    vectors = vectors_of_kind("random", 100)
    put(store, vectors)
    monkeypatch.delattr(KeptVectors, "told")

    assert store.query(EAST, 9) == brute_force(vectors, {}, EAST, 9, {})


@pytest.mark.parametrize("number", ["00000000", "ffffffff", "0000807f"])
def test_a_vector_damaged_since_it_was_copied_is_told(
    store: SqliteVectorStore, database: Database, number: str
) -> None:
    put(store, random_vectors(20, dimensions=DIMENSIONS))
    store.query(EAST, 5)
    with database.write() as connection:
        connection.execute(
            "UPDATE vector_1_vector_chunks00 SET vectors ="
            " unhex(replace(hex(zeroblob(length(vectors) / 4)), '00', ?))",
            (number,),
        )

    with pytest.raises(StoreCorruptError):
        store.query(EAST, 5)


def test_a_vector_without_its_row_is_damage(store: SqliteVectorStore, database: Database) -> None:
    put(store, random_vectors(100, dimensions=DIMENSIONS))
    with database.write() as connection:
        connection.execute("DELETE FROM vector_1 WHERE id = 50")

    with pytest.raises(StoreCorruptError):
        store.query(EAST, 5)


def test_the_copy_takes_less_than_half_of_the_floats(store: SqliteVectorStore) -> None:
    put(store, random_vectors(100, dimensions=DIMENSIONS))
    store.query(EAST, 1)

    held = store._copy()._held

    assert held is not None
    assert held.rows.bytes_a_row - DIMENSIONS < 60
    assert (held.rows.bytes_a_row - DIMENSIONS + 384) < 0.5 * 4 * 384


def test_an_owners_rows_stand_side_by_side(store: SqliteVectorStore) -> None:
    points = [
        VectorPoint(id_, vector, {"tenant": "t", "owner": f"o{number % 5}", "kind": "note"})
        for number, (id_, vector) in enumerate(random_vectors(500, dimensions=DIMENSIONS).items())
    ]
    store.upsert_many(points)

    store.query(EAST, 1, {"owner": "o3", "tenant": "t"})

    held = store._copy()._held
    assert held is not None
    [selected] = held.selections.values()
    assert isinstance(selected, slice)
    assert selected.stop - selected.start == 100


def test_the_copy_follows_small_and_large_changes(store: SqliteVectorStore) -> None:
    vectors: dict[EntryId, Vector] = {}
    random = Random(9)  # noqa: S311 - the same on every run, no secret
    for added in (1, 3, 400, 2, 3_000, 1, 7_000, 5):
        new = vectors_of_kind("random", added, seed=added)
        put(store, new)
        vectors |= new
        for id_ in random.sample(sorted(vectors), len(vectors) // 20):
            store.delete(id_)
            del vectors[id_]

        assert store.query(EAST, 20) == brute_force(vectors, {}, EAST, 20, {})


def test_many_retired_rows_are_left_behind(
    store: SqliteVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_vectors, "GONE_ROWS_MIN", 10)
    vectors = vectors_of_kind("random", 100)
    put(store, vectors)
    store.query(EAST, 1)
    for id_ in list(vectors)[:60]:
        store.delete(id_)
        del vectors[id_]
    store.query(EAST, 1)
    put(store, {FIRST: EAST})
    vectors[FIRST] = EAST

    found = store.query(EAST, 50)

    assert found == brute_force(vectors, {}, EAST, 50, {})
    assert store._copy().rows_held == 41


def test_a_snapshot_from_before_the_copy_was_made_is_answered(
    store: SqliteVectorStore, database: Database, tmp_path: Path
) -> None:
    put(store, {FIRST: EAST, SECOND: EAST})
    with database.read():
        assert store.count() == 2
        in_another_process(tmp_path, "store.delete(UUID(int=1))")
        with Database.open(tmp_path / "memory.db") as other:
            other_store = opened(other)
            assert [match.id for match in other_store.query(EAST, 5)] == [SECOND]
            store._copies = other_store._copies

        found = store.query(EAST, 5)

    assert [match.id for match in found] == [FIRST, SECOND]
    assert [match.id for match in store.query(EAST, 5)] == [SECOND]


def test_a_row_that_came_and_went_unseen_is_found_by_a_snapshot_that_has_it(
    store: SqliteVectorStore, database: Database
) -> None:
    put(store, {FIRST: EAST})
    store.query(EAST, 5)
    put(store, {SECOND: EAST})
    with database.read():
        assert store.count() == 2
        in_another_thread(lambda: store.delete(SECOND))
        assert len(in_another_thread(lambda: store.query(EAST, 5))) == 1

        found = store.query(EAST, 5)

    assert [match.id for match in found] == [FIRST, SECOND]


def test_a_failed_reading_leaves_the_copy_as_it_was(
    store: SqliteVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, {FIRST: EAST, SECOND: EAST})
    store.query(EAST, 5)
    put(store, {THIRD: EAST})
    store.delete(SECOND)
    with monkeypatch.context() as broken:
        broken.setattr(resident_vectors, "append", failing)
        with pytest.raises(MemoryError):
            store.query(EAST, 5)

    found = store.query(EAST, 5)

    assert [match.id for match in found] == [FIRST, THIRD]


# -- Other processes -------------------------------------------------------


def test_another_process_is_seen_by_the_next_query(
    store: SqliteVectorStore, tmp_path: Path
) -> None:
    put(store, {FIRST: EAST, SECOND: EAST})
    store.query(EAST, 5)

    in_another_process(
        tmp_path,
        "store.delete(UUID(int=1)); store.upsert(UUID(int=3), [1.0] + [0.0] * 47, {'a': 'b'})",
    )

    assert [match.id for match in store.query(EAST, 5)] == [SECOND, THIRD]
    assert [match.id for match in store.query(EAST, 5, {"a": "b"})] == [THIRD]


def test_a_clearing_by_another_process_is_seen(store: SqliteVectorStore, tmp_path: Path) -> None:
    put(store, random_vectors(50, dimensions=DIMENSIONS))
    store.query(EAST, 5)

    in_another_process(tmp_path, "store.clear()")

    assert store.query(EAST, 5) == []


def test_a_dropping_by_another_process_is_told(store: SqliteVectorStore, tmp_path: Path) -> None:
    put(store, {FIRST: EAST})
    store.query(EAST, 5)

    in_another_process(tmp_path, "indexes.drop(index)")

    with pytest.raises(StoreUnavailableError):
        store.query(EAST, 5)


def test_a_forked_child_asks_and_writes(store: SqliteVectorStore) -> None:
    put(store, vectors_of_kind("random", 3_000))
    store.query(EAST, 5)

    child = os.fork()
    if child == 0:
        try:
            store.upsert(FIRST, EAST, {})
            os._exit(0 if store.query(EAST, 1)[0].id == FIRST else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert store.query(EAST, 1)[0].id == FIRST


def test_writing_imports_no_numpy(store: SqliteVectorStore, tmp_path: Path) -> None:
    in_another_process(
        tmp_path,
        "store.upsert(UUID(int=3), array('f', [1.0] * 48), {}); store.delete(UUID(int=3));"
        "store.count(); store.vectors([UUID(int=3)]); indexes.active()",
    )

    assert store.count() == 0


# -- Helpers ---------------------------------------------------------------


def in_another_process(folder: Path, statements: str) -> None:
    command = [sys.executable, "-c", OTHER_PROCESS, str(folder / "memory.db"), statements]
    subprocess.run(command, check=True)


def failing(*_: object) -> None:
    raise MemoryError
