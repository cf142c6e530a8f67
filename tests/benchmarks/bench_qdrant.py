"""Qdrant through the port against its bare client, and how fast entries are carried there.

In a folder always; on a server, by HTTP and gRPC, where ``REMEMBRANCER_TEST_QDRANT_URL`` names
one.  The bare client does what a plain program would: a cosine collection, the same labels as
payload, ids and scores back.  Ours proves beyond it that no tie was cut wrongly and scores by the
domain's rule.  Local mode compares with every vector, whatever graph was asked for, so how many of
the true ten a graph finds is measured on a server alone.
"""

import statistics
import tempfile
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from qdrant_client import QdrantClient, models
from tests.adapters.qdrant_servers import (
    API_KEY,
    GRPC_PORT,
    URL,
    fresh_secret,
    in_folder,
    index_of,
    on_server,
    place_at,
)
from tests.application.far_house import open_far_house
from tests.application.house import an_entry
from tests.benchmarks.row import Row, interleaved, seconds

from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.vector_store import QdrantVectorStore
from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.application.ports.vector_store import Filter, VectorPoint
from remembrancer.contracts.vector_examples import brute_force
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId

ROWS, DIMENSIONS, OWNERS = 20_000, 384, 10
ROWS_ON_A_SERVER = 100_000
BATCH = 256
ROUNDS = 11
GRAPH_QUESTIONS = 200
ENTRIES = 6_000
BARE = "bare"
SPACE = EmbeddingTuple(
    provider="bench",
    model="random",
    model_revision="1",
    dimensions=DIMENSIONS,
    input_preparation="plain@1",
)
ONE_OWNER: Filter = {"tenant": "acme", "owner": "owner3"}
BARE_FILTER = models.Filter(
    must=[
        models.FieldCondition(key=key, match=models.MatchValue(value=value))
        for key, value in ONE_OWNER.items()
        if isinstance(value, str)
    ]
)

Rows = npt.NDArray[np.float32]


def measure() -> list[Row]:
    """Fill, ask, carry; compare."""
    chance = np.random.default_rng(1)
    rows = _clustered(chance, ROWS_ON_A_SERVER if URL else ROWS)
    with tempfile.TemporaryDirectory() as folder:
        found = _measured("in a folder", in_folder(Path(folder)), _local(folder), rows[:ROWS])
    if URL is not None:
        for grpc in (False, True):
            where = "on a server, by gRPC" if grpc else "on a server, by HTTP"
            found += _measured(where, on_server(grpc=grpc), _remote(grpc=grpc), rows)
    return found + _carried()


def _clustered(chance: np.random.Generator, count: int) -> Rows:
    """Return rows that lie in heaps, as texts do; wholly random ones have no neighbours."""
    heaps = chance.standard_normal((count // 50, DIMENSIONS))
    rows = heaps[chance.integers(len(heaps), size=count)]
    return (rows + 0.7 * chance.standard_normal((count, DIMENSIONS))).astype(np.float32)


def _local(folder: str) -> Callable[[], QdrantClient]:
    return lambda: QdrantClient(path=f"{folder}/bare")


def _remote(*, grpc: bool) -> Callable[[], QdrantClient]:
    headers = {"api-key": API_KEY} if API_KEY else {}
    return lambda: QdrantClient(
        url=URL,
        prefer_grpc=grpc,
        grpc_port=GRPC_PORT,
        headers=headers,
        check_compatibility=False,
        timeout=60,
    )


def _measured(
    where: str, options: QdrantOptions, bare: Callable[[], QdrantClient], rows: Rows
) -> list[Row]:
    points = _points(rows)
    with place_at(options, fresh_secret(), swept=True) as place, _bare(bare) as client:
        place.make(index_of(SPACE))
        store = place.store(index_of(SPACE, position=1))
        found = [_written(where, store, client, points)]
        if options.url is not None:
            found += _graph(where, store, options, place, rows, points)
        return found + _asked(where, store, client, rows)


def _points(rows: Rows) -> list[VectorPoint]:
    chance = np.random.default_rng(2)
    return [
        VectorPoint(
            EntryId(UUID(bytes=chance.bytes(16))),
            array("f", row.tobytes()),
            {
                "tenant": "acme",
                "owner": f"owner{number % OWNERS}",
                "scope": f"project/{number % 3}",
                "kind": "note",
                "sensitivity": "internal",
                "state": "current",
            },
            1,
        )
        for number, row in enumerate(rows)
    ]


@contextmanager
def _bare(opened: Callable[[], QdrantClient]) -> Generator[QdrantClient]:
    client = opened()
    try:
        if client.collection_exists(BARE):
            client.delete_collection(BARE)
        client.create_collection(
            BARE,
            vectors_config=models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE),
        )
        if URL is not None and not _is_local(client):
            for field in ("tenant", "owner", "scope", "kind", "sensitivity", "state"):
                client.create_payload_index(BARE, field, models.PayloadSchemaType.KEYWORD)
        yield client
        client.delete_collection(BARE)
    finally:
        client.close()


def _is_local(client: QdrantClient) -> bool:
    return type(client._client).__name__ == "QdrantLocal"


def _written(
    where: str, store: QdrantVectorStore, client: QdrantClient, points: Sequence[VectorPoint]
) -> Row:
    def bare(some: Sequence[VectorPoint]) -> object:
        return client.upsert(
            BARE,
            models.Batch(
                ids=[str(one.id) for one in some],
                vectors=[list(one.vector) for one in some],
                payloads=[dict(one.metadata) for one in some],
            ),
            wait=True,
        )

    ours_s: list[float] = []
    bare_s: list[float] = []
    for number, start in enumerate(range(0, len(points), BATCH)):
        some = points[start : start + BATCH]
        if number % 2:
            bare_s.append(seconds(partial(bare, some)))
        ours_s.append(seconds(partial(store.upsert_many, some)))
        if not number % 2:
            bare_s.append(seconds(partial(bare, some)))
    return Row(
        what=f"Qdrant {where}: a batch of {BATCH} upserts",
        ours=statistics.median(ours_s),
        baseline=statistics.median(bare_s),
        against="the bare client",
        at_most=1.2,
    )


def _asked(where: str, store: QdrantVectorStore, client: QdrantClient, rows: Rows) -> list[Row]:
    questions: Iterator[Rows] = cycle(rows[:: len(rows) // 97] + np.float32(0.01))

    def bare(top_k: int, wanted: models.Filter | None) -> object:
        return client.query_points(
            BARE, query=next(questions).tolist(), limit=top_k, query_filter=wanted
        ).points

    def ours(top_k: int, wanted: Filter | None) -> object:
        return store.query(array("f", next(questions).tobytes()), top_k, wanted)

    found = []
    for name, top_k, wanted, filtered in (
        ("ten best of all", 10, None, None),
        ("ten best of one owner", 10, ONE_OWNER, BARE_FILTER),
        ("hundred best of one owner", 100, ONE_OWNER, BARE_FILTER),
    ):
        one, other = interleaved(
            [partial(ours, top_k, wanted), partial(bare, top_k, filtered)],
            rounds=ROUNDS,
            turn=1 if _is_local(client) else 20,
        )
        found.append(
            Row(
                what=f"Qdrant {where}: {name}",
                ours=one,
                baseline=other,
                against="the bare client",
                at_most=1.15,
            )
        )
    return found


def _graph(  # what is compared with what
    where: str,
    store: QdrantVectorStore,
    options: QdrantOptions,
    place: Any,
    rows: Rows,
    points: Sequence[VectorPoint],
) -> list[Row]:
    """Return how many of the true ten the graph finds, once it has been built."""
    with place._link.asking(600) as asking:
        while True:
            info = asking.client.get_collection(store._collection)
            if info.status == models.CollectionStatus.GREEN:
                break
    vectors = {one.id: one.vector for one in points}
    asked = rows[:: len(rows) // GRAPH_QUESTIONS] + np.float32(0.01)
    hits = 0
    for row in asked:
        question = array("f", row.tobytes())
        near = {match.id for match in store.query(question, 10)}
        scores = rows @ row / np.linalg.norm(rows, axis=1)
        likely = [points[at].id for at in np.argpartition(-scores, 50)[:50]]
        true = brute_force({one: vectors[one] for one in likely}, {}, question, 10, {})
        hits += len(near & {match.id for match in true})
    return [
        Row(
            what=f"Qdrant {where}: share of the true ten, graph searched {options.hnsw_ef} wide, "
            f"{info.indexed_vectors_count} of {len(rows)} in it",
            ours=hits / (10 * len(asked)),
            unit="",
            at_least=0.9,
        )
    ]


def _carried() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        embedder = WordLlamaEmbedder(model=StaticModel(), dimensions=256)
        embedder.embed_query("loads the model")
        with open_far_house(folder / "memory.db", folder, embedders=(embedder,)) as house:
            house.memory.remember(an_entry("loads what is loaded at first"))
            house.memory.project()
            entries = [
                an_entry(f"Invoice {number} of the billing service was paid late again")
                for number in range(ENTRIES)
            ]
            remembering = seconds(partial(house.memory.remember_many, entries, batch_size=500))
            carrying = seconds(house.memory.project)
    return [
        Row(what="Qdrant: remember_many", ours=ENTRIES / remembering, unit="/s"),
        Row(
            what="Qdrant in a folder: entries carried",
            ours=ENTRIES / carrying,
            unit="/s",
            at_least=2_000,
        ),
    ]
