"""Every vector store gives the same answers: same sets, same order, same scores to the last bit.

The suite runs a short slice; ``make crash`` runs 20,000 entries and 500 questions.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from tests.adapters.postgres_server import server
from tests.adapters.qdrant_servers import (
    URL,
    fresh_secret,
    in_folder,
    index_of,
    on_server,
    place_at,
)

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_store import MemoryVectorStore
from remembrancer.adapters.postgres.database import Database as PostgresDatabase
from remembrancer.adapters.postgres.vector_indexes import PostgresVectorIndexes
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.application.ports import VectorPoint, VectorStore
from remembrancer.application.ports.vector_store import Filter
from remembrancer.contracts.vector_indexes import SPACE
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector

DIMENSIONS = 48
WIDE = SPACE.model_copy(update={"dimensions": DIMENSIONS})
OWNERS = [f"owner{number}" for number in range(8)]
SCOPES = ["project/a", "project/b", "notes"]
SENSITIVITIES = ["public", "internal", "confidential"]
SUBJECTS = ["subject:ana", "subject:ben", "subject:c'd\"e"]


@dataclass(frozen=True)
class Question:
    """What is asked of every store."""

    vector: Vector
    top_k: int
    wanted: Filter


def points(count: int, chance: Random) -> list[VectorPoint]:
    """Return entries in heaps, some the same as another, or that one made longer or shorter."""
    found: list[VectorPoint] = []
    heaps = [[chance.gauss() for _ in range(DIMENSIONS)] for _ in range(count // 40 + 1)]
    for _ in range(count):
        heap = chance.choice(heaps)
        vector = array("f", (number + 0.4 * chance.gauss() for number in heap))
        if found and chance.random() < 0.1:
            other = chance.choice(found).vector
            vector = array("f", (number * chance.choice([1.0, 0.5, 4.0]) for number in other[:]))
        if found and chance.random() < 0.1:
            factor = chance.choice([1.0, 0.25, 8.0])
            vector = array("f", (number * factor for number in chance.choice(found).vector))
        metadata = {
            "tenant": chance.choice(["acme", "acme-corp"]),
            "owner": chance.choice(OWNERS),
            "scope": chance.choice(SCOPES),
            "sensitivity": chance.choice(SENSITIVITIES),
            "state": "current" if chance.random() < 0.9 else "superseded",
        }
        metadata.update((subject, "1") for subject in SUBJECTS if chance.random() < 0.1)
        found.append(VectorPoint(EntryId(UUID(int=chance.getrandbits(128))), vector, metadata))
    return found


def questions(stored: Sequence[VectorPoint], chance: Random) -> Iterator[Question]:
    """Yield what recall might ask, near to something that is there or far from all."""
    while True:
        vector = chance.choice(stored).vector
        if chance.random() < 0.7:
            vector = array("f", (number + 0.3 * chance.gauss() for number in vector))
        wanted: dict[str, str | tuple[str, ...]] = {"tenant": "acme"}
        if chance.random() < 0.8:
            wanted["owner"] = chance.choice(OWNERS)
        if chance.random() < 0.5:
            wanted["scope"] = tuple(chance.sample(SCOPES, 2))
        if chance.random() < 0.5:
            wanted["sensitivity"] = ("public", "internal")
        if chance.random() < 0.5:
            wanted["state"] = ("current",)
        if chance.random() < 0.2:
            wanted[chance.choice(SUBJECTS)] = ("1",)
        yield Question(vector, chance.choice([1, 5, 10, 100]), wanted)


def stores(folder: Path, stack: ExitStack) -> dict[str, VectorStore]:
    """Open one of each kind, empty."""
    database = stack.enter_context(Database.open(folder / "memory.db"))
    indexes = SqliteVectorIndexes(database=database)
    found: dict[str, VectorStore] = {
        "memory": MemoryVectorStore(
            transactions=MemoryTransactions(), number=1, dimensions=DIMENSIONS
        ),
        "sqlite-vec": indexes.store(indexes.begin(WIDE)),
    }
    fresh = stack.enter_context(server().database())
    postgres = stack.enter_context(PostgresDatabase.open(fresh.app, reader_dsn=fresh.auditor))
    registry = PostgresVectorIndexes(database=postgres)
    found["pgvector"] = registry.store(registry.begin(WIDE))
    ways = {"qdrant in a folder": in_folder(folder)}
    if URL is not None:
        for grpc in (False, True):
            options = replace(on_server(grpc=grpc), exact=True)
            ways[f"qdrant by {'gRPC' if grpc else 'HTTP'}"] = options
    for name, options in ways.items():
        place = stack.enter_context(place_at(options, fresh_secret(), swept=True))
        place.make(index_of(WIDE))
        found[name] = place.store(index_of(WIDE))
    return found


def fill(name: str, store: VectorStore, stored: Sequence[VectorPoint]) -> None:
    """Write all; in PostgreSQL each owner's in that owner's name."""
    if name != "pgvector":
        for start in range(0, len(stored), 2_000):
            store.upsert_many(stored[start : start + 2_000])
        return
    whose = sorted({(one.metadata["tenant"], one.metadata["owner"]) for one in stored})
    for tenant, owner in whose:
        store.upsert_many(
            [
                one
                for one in stored
                if (one.metadata["tenant"], one.metadata["owner"]) == (tenant, owner)
            ]
        )


@pytest.mark.parametrize(
    ("entries", "asked"),
    [(600, 40), pytest.param(20_000, 500, marks=pytest.mark.slow)],
)
def test_every_store_gives_the_same_answers(tmp_path: Path, entries: int, asked: int) -> None:
    chance = Random(entries)  # noqa: S311 - the same on every run, no secret
    stored = points(entries, chance)
    with ExitStack() as stack:
        all_ = stores(tmp_path, stack)
        for name, store in all_.items():
            fill(name, store, stored)
        found = 0

        for question in islice(questions(stored, chance), asked):
            answers = {
                name: store.query(question.vector, question.top_k, question.wanted)
                for name, store in all_.items()
            }
            expected = answers["memory"]
            found += len(expected)
            assert {name: one for name, one in answers.items() if one != expected} == {}

        assert found > asked
