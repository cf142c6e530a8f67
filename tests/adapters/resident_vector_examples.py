"""A vector store on SQLite, and vectors of several kinds to put into it."""

from array import array
from uuid import UUID

import numpy as np

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector

DIMENSIONS = 48
SPACE = EmbeddingTuple(
    provider="test",
    model="test",
    model_revision="1",
    dimensions=DIMENSIONS,
    input_preparation="plain@1",
)
EAST = array("f", [1.0] + [0.0] * (DIMENSIONS - 1))


def opened(database: Database) -> SqliteVectorStore:
    indexes = SqliteVectorIndexes(database=database)
    return indexes.store(indexes.begin(SPACE))


def vectors_of_kind(kind: str, count: int, *, seed: int = 1) -> dict[EntryId, Vector]:
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, DIMENSIONS))
    if kind == "clustered":
        rows = 0.1 * rows + random.standard_normal((10, DIMENSIONS))[np.arange(count) % 10]
    elif kind == "nearly the same":
        rows = 1e-6 * rows + random.standard_normal(DIMENSIONS)
    elif kind == "spiked":
        rows[:, 0] *= 10.0 ** random.integers(-8, 8, count)
    ids = [EntryId(UUID(bytes=random.bytes(16))) for _ in range(count)]
    return {
        id_: array("f", row.astype(np.float32).tobytes())
        for id_, row in zip(ids, rows, strict=True)
    }
