"""The vector store beside others that search exactly in one process, whichever are installed.

The others come with the dependency group ``bench`` (lancedb, faiss-cpu, langchain-core,
qdrant-client, chromadb).  All hold the
same 100,000 vectors of 384 numbers of ten owners; each round asks every store a new question.
chromadb searches approximately; its share of the true ten is printed beside its time.
"""

import importlib
import importlib.util
import os
import statistics
import sys
import tempfile
import time
import warnings
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt
from tests.benchmarks.row import Row

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.application.ports.vector_store import VectorPoint
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId

ROWS, DIMENSIONS, OWNERS = 100_000, 384, 10
ROUNDS = 15
TOP_K = 10
OWNER = "owner3"
BATCH = 5_000
OURS = "remembrancer (SQLite)"
EXACT_SHARE = 0.99
"""Equal scores may come in another order."""

Floats = npt.NDArray[np.float32]


class Ask(Protocol):
    """Asks a store."""

    def __call__(self, query: Floats, *, one_owner: bool) -> list[int]:
        """Return the numbers of the nearest rows, or of one owner's, best first."""
        ...


@dataclass(frozen=True)
class Contestant:
    """A store, and how to fill it."""

    module: str
    filled: Callable[[Floats, Path, ExitStack], Ask]


def library(name: str) -> Any:
    """Return a module that may not be installed where this file is checked."""
    return importlib.import_module(name)


def say(line: str) -> None:
    """Write a line of the table."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def owner_of(row: int) -> str:
    """Return whose a row is."""
    return f"owner{row % OWNERS}"


def remembrancer(rows: Floats, folder: Path, stack: ExitStack) -> Ask:
    """Return ours, as a host would open it."""
    database = stack.enter_context(Database.open(folder / "memory.db"))
    indexes = SqliteVectorIndexes(database=database)
    space = EmbeddingTuple(
        provider="bench",
        model="random",
        model_revision="1",
        dimensions=DIMENSIONS,
        input_preparation="plain@1",
    )
    store = indexes.store(indexes.begin(space))
    for start in range(0, ROWS, BATCH):
        store.upsert_many(
            [
                VectorPoint(
                    EntryId(UUID(int=row)),
                    array("f", rows[row].tobytes()),
                    {"tenant": "acme", "owner": owner_of(row)},
                )
                for row in range(start, min(start + BATCH, ROWS))
            ]
        )

    def ask(query: Floats, *, one_owner: bool) -> list[int]:
        wanted = {"tenant": "acme", "owner": OWNER} if one_owner else None
        found = store.query(array("f", query.tobytes()), TOP_K, wanted)
        return [match.id.int for match in found]

    return ask


def faiss_flat(rows: Floats, _folder: Path, _stack: ExitStack) -> Ask:
    """Return faiss: inner products over normalised rows; an owner's rows by a selector of ids."""
    faiss = library("faiss")

    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(rows)
    owned = faiss.IDSelectorBatch(np.arange(3, ROWS, OWNERS))

    def ask(query: Floats, *, one_owner: bool) -> list[int]:
        parameters = faiss.SearchParameters(sel=owned) if one_owner else None
        _, found = index.search(query[np.newaxis], TOP_K, params=parameters)
        return [int(row) for row in found[0]]

    return ask


def lancedb_flat(rows: Floats, folder: Path, _stack: ExitStack) -> Ask:
    """Return lancedb: a table without an index, filtered before the search."""
    lancedb, pa = library("lancedb"), library("pyarrow")

    table = lancedb.connect(str(folder / "lance")).create_table(
        "vectors",
        pa.table(
            {
                "row": pa.array(range(ROWS), pa.int64()),
                "owner": [owner_of(row) for row in range(ROWS)],
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), DIMENSIONS),
            }
        ),
    )

    def ask(query: Floats, *, one_owner: bool) -> list[int]:
        search = table.search(query).distance_type("cosine").select(["row"]).limit(TOP_K)
        if one_owner:
            search = search.where(f"owner = '{OWNER}'", prefilter=True)
        return [int(row) for row in search.to_arrow()["row"].to_pylist()]

    return ask


def langchain_memory(rows: Floats, _folder: Path, _stack: ExitStack) -> Ask:
    """Return langchain's InMemoryVectorStore, given vectors rather than texts."""
    embeddings = library("langchain_core.embeddings").FakeEmbeddings(size=DIMENSIONS)
    store = library("langchain_core.vectorstores").InMemoryVectorStore(embeddings)
    for row in range(ROWS):
        store.store[str(row)] = {
            "id": str(row),
            "vector": rows[row].tolist(),
            "text": "",
            "metadata": {"owner": owner_of(row)},
        }

    def ask(query: Floats, *, one_owner: bool) -> list[int]:
        wanted = (lambda document: document.metadata["owner"] == OWNER) if one_owner else None
        found = store.similarity_search_with_score_by_vector(
            query.tolist(), k=TOP_K, filter=wanted
        )
        return [int(document.id or "") for document, _ in found]

    return ask


def qdrant_local(rows: Floats, _folder: Path, _stack: ExitStack) -> Ask:
    """Return qdrant-client's local mode, in memory."""
    models = library("qdrant_client.models")
    client = library("qdrant_client").QdrantClient(":memory:")
    client.create_collection(
        "vectors",
        vectors_config=models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE),
    )
    for start in range(0, ROWS, BATCH):
        some = range(start, min(start + BATCH, ROWS))
        client.upsert(
            "vectors",
            models.Batch(
                ids=list(some),
                vectors=rows[start : start + BATCH].tolist(),
                payloads=[{"owner": owner_of(row)} for row in some],
            ),
        )
    condition = models.FieldCondition(key="owner", match=models.MatchValue(value=OWNER))
    owned = models.Filter(must=[condition])

    def ask(query: Floats, *, one_owner: bool) -> list[int]:
        found = client.query_points(
            "vectors",
            query=query.tolist(),
            limit=TOP_K,
            query_filter=owned if one_owner else None,
            with_payload=False,
        )
        return [int(point.id) for point in found.points]

    return ask


def chroma(rows: Floats, folder: Path, _stack: ExitStack) -> Ask:
    """Return chromadb as it comes: an approximate graph."""
    settings = library("chromadb.config").Settings(anonymized_telemetry=False)
    client = library("chromadb").PersistentClient(str(folder / "chroma"), settings=settings)
    collection = client.create_collection(
        "vectors", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    for start in range(0, ROWS, BATCH):
        some = range(start, min(start + BATCH, ROWS))
        collection.add(
            ids=[str(row) for row in some],
            embeddings=rows[start : start + BATCH],
            metadatas=[{"owner": owner_of(row)} for row in some],
        )

    def ask(query: Floats, *, one_owner: bool) -> list[int]:
        where: Any = {"owner": OWNER} if one_owner else None
        found = collection.query(
            query_embeddings=query[np.newaxis], n_results=TOP_K, where=where, include=[]
        )
        return [int(row) for row in found["ids"][0]]

    return ask


CONTESTANTS = {
    OURS: Contestant("remembrancer", remembrancer),
    "faiss-cpu, flat": Contestant("faiss", faiss_flat),
    "lancedb, flat": Contestant("lancedb", lancedb_flat),
    "langchain-core, in memory": Contestant("langchain_core", langchain_memory),
    "qdrant-client, local": Contestant("qdrant_client", qdrant_local),
    "chromadb": Contestant("chromadb", chroma),
}


def measure() -> list[Row]:
    """Fill and ask whichever stores are installed."""
    os.environ.setdefault("LANCE_LOG", "error")
    warnings.simplefilter("ignore")
    chance = np.random.default_rng(1)
    rows: Floats = chance.standard_normal((ROWS, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    queries: Floats = chance.standard_normal((ROUNDS, DIMENSIONS), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=1)[:, np.newaxis]
    here = {
        name: one
        for name, one in CONTESTANTS.items()
        if importlib.util.find_spec(one.module) is not None
    }
    if len(here) == 1:
        say("no other store is installed; see the dependency group `bench`")
        return []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        asks: dict[str, Ask] = {}
        for name, one in here.items():
            began = time.perf_counter()
            asks[name] = one.filled(rows, Path(folder), stack)
            say(f"  {name:<28} filled in {time.perf_counter() - began:6.1f} s")
        return [
            *compared(asks, rows, queries, one_owner=False),
            *compared(asks, rows, queries, one_owner=True),
        ]


def compared(
    asks: dict[str, Ask], rows: Floats, queries: Floats, *, one_owner: bool
) -> Iterator[Row]:
    """Yield a row for each other store; an approximate one says how many of the ten it has."""
    numbers = np.arange(3, ROWS, OWNERS) if one_owner else np.arange(ROWS)
    times: dict[str, list[float]] = {name: [] for name in asks}
    hits = dict.fromkeys(asks, 0)
    for ask in asks.values():
        ask(queries[0], one_owner=one_owner)
    for query in queries:
        scores = rows[numbers].astype(np.float64) @ query.astype(np.float64)
        true = set(numbers[np.argsort(-scores)[:TOP_K]].tolist())
        for name, ask in asks.items():
            began = time.perf_counter()
            found = ask(query, one_owner=one_owner)
            times[name].append(time.perf_counter() - began)
            hits[name] += len(true & set(found))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ours = medians.pop(OURS)
    for name, median in medians.items():
        share = hits[name] / (TOP_K * len(queries))
        exact = share > EXACT_SHARE
        yield Row(
            what="vectors: ten best of " + ("one owner" if one_owner else "all"),
            ours=ours,
            baseline=median,
            against=name if exact else f"{name}, approximate: {share:.2f} of the true ten",
            at_most=1.0 if exact or one_owner else None,
        )
