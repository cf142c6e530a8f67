"""Snapshots are asked over and over while other processes write, roll back and clear."""

import subprocess
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from uuid import UUID

import apsw
import pytest

from remembrancer.adapters.sqlite import resident_vectors
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.application.ports import VectorMatch
from remembrancer.contracts.vector_examples import brute_force
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId

SPACE = EmbeddingTuple(
    provider="test", model="test", model_revision="1", dimensions=4, input_preparation="plain@1"
)
TRANSACTIONS = 60
WRITER = """
import sys
from pathlib import Path
from random import Random
from uuid import UUID
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes

random = Random(int(sys.argv[2]))
with Database.open(Path(sys.argv[1]), busy_timeout_s=30) as database:
    indexes = SqliteVectorIndexes(database=database)
    store = indexes.store(indexes.all()[0])
    for _ in range(int(sys.argv[3])):
        try:
            with database.write():
                for _ in range(random.randint(1, 9)):
                    id_, vector = UUID(int=random.randrange(60)), [random.gauss() for _ in "1234"]
                    chance = random.random()
                    if chance < 0.6:
                        store.upsert(id_, vector, {"owner": random.choice("ab")})
                    elif chance < 0.98:
                        store.delete(id_)
                    else:
                        store.clear()
                    if chance < 0.1:
                        store.query(vector, 3)
                if random.random() < 0.3:
                    raise KeyError
        except KeyError:
            pass
"""


def test_every_snapshot_gets_its_own_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_vectors, "GONE_ROWS_MIN", 20)
    path = tmp_path / "memory.db"
    with Database.open(path, busy_timeout_s=30) as database, ThreadPoolExecutor(3) as threads:
        indexes = SqliteVectorIndexes(database=database)
        store = indexes.store(indexes.begin(SPACE))
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(path), str(seed), str(TRANSACTIONS)]
            )
            for seed in (1, 2)
        ]

        def ask(seed: int) -> int:
            random, asked = Random(seed), 0  # noqa: S311 - reproducible, no secret
            while any(writer.poll() is None for writer in writers):
                with database.read() as connection:
                    for _ in range(random.randint(1, 4)):
                        found, expected = answers(store, connection, random)
                        assert found == expected
                        asked += 1
            return asked

        counts = list(threads.map(ask, range(3)))

    assert [writer.returncode for writer in writers] == [0, 0]
    assert min(counts) > 0


def answers(
    store: SqliteVectorStore, connection: apsw.Connection, random: Random
) -> tuple[list[VectorMatch], list[VectorMatch]]:
    """Return what the store finds, and what it should in this snapshot."""
    vectors, labels = {}, {}
    for key, owner, vector in connection.execute(
        "SELECT key, metadata ->> 'owner', embedding FROM vector_row_1 JOIN vector_1 USING (id)"
    ):
        id_ = EntryId(UUID(bytes=key))
        vectors[id_], labels[id_] = array("f", vector), {"owner": owner}
    query = array("f", (random.gauss() for _ in range(SPACE.dimensions)))
    top_k = random.choice([1, 5, 60])
    wanted = {"owner": random.choice([("a", "b"), ("a",)])}
    return store.query(query, top_k, wanted), brute_force(vectors, labels, query, top_k, wanted)
