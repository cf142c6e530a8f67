"""That the SQLite vector store leaves no byte of what was deleted, replaced or dropped."""

from array import array
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.adapters.resident_vector_examples import (
    DIMENSIONS,
    EAST,
    SPACE,
    opened,
    vectors_of_kind,
)

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.application.ports import VectorPoint
from remembrancer.contracts.erasure import bytes_under
from remembrancer.domain.vector import Vector

if TYPE_CHECKING:
    from remembrancer.domain.identity import EntryId


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        yield database


@pytest.fixture
def store(database: Database) -> SqliteVectorStore:
    return opened(database)


def test_no_byte_of_a_deleted_vector_stays(
    store: SqliteVectorStore, database: Database, tmp_path: Path
) -> None:
    """Case 13: also of those that were replaced, among many that were moved about."""
    random = Random(5)  # noqa: S311 - the same on every run, no secret
    here: dict[EntryId, Vector] = {}
    gone: list[Vector] = []
    for seed in range(6):
        new = vectors_of_kind("random", 600, seed=seed)
        store.upsert_many(
            [VectorPoint(id_, vector, {"subject:canary": "yes"}) for id_, vector in new.items()]
        )
        here |= new
        store.query(EAST, 5)
        for id_ in random.sample(sorted(here), len(here) * 4 // 5):
            gone.append(here.pop(id_))
            if random.random() < 0.2:
                here[id_] = array("f", (random.gauss() for _ in range(DIMENSIONS)))
                store.upsert(id_, here[id_], {})
            else:
                store.delete(id_)

    assert database.scrub()
    kept = windows(bytes_under(tmp_path))

    assert all(start_of(vector) in kept for vector in here.values())
    assert not any(window in kept for vector in gone for window in pieces(vector))


def test_no_byte_of_dropped_metadata_stays(
    store: SqliteVectorStore, database: Database, tmp_path: Path
) -> None:
    random = Random(6)  # noqa: S311 - the same on every run, no secret
    ids = list(vectors_of_kind("random", 1_500))
    for start in range(0, 1_500, 300):
        store.upsert_many(
            [
                VectorPoint(id_, EAST, {f"subject:canary{id_.hex}": "x" * random.randrange(80)})
                for id_ in ids[start : start + 300]
            ]
        )
        for id_ in random.sample(ids[: start + 300], (start + 300) // 2):
            store.delete(id_)
    for id_ in ids:
        store.delete(id_)

    assert database.scrub()

    assert b"canary" not in bytes_under(tmp_path)


def test_a_dropped_index_leaves_nothing(database: Database, tmp_path: Path) -> None:
    indexes = SqliteVectorIndexes(database=database)
    index = indexes.begin(SPACE)
    vectors = vectors_of_kind("random", 300)
    indexes.store(index).upsert_many(
        [VectorPoint(id_, vector, {"subject:canary": "1"}) for id_, vector in vectors.items()]
    )

    indexes.drop(index)

    assert database.scrub()
    kept = bytes_under(tmp_path)
    assert b"canary" not in kept
    assert not any(start_of(vector) in kept for vector in vectors.values())


def start_of(vector: Vector) -> bytes:
    return bytes(array("f", vector)[:4])


def pieces(vector: Vector) -> list[bytes]:
    whole = bytes(array("f", vector))
    return [whole[start : start + 16] for start in range(0, len(whole), 16)]


def windows(data: bytes) -> set[bytes]:
    return {data[start : start + 16] for start in range(len(data) - 15)}
