"""Qdrant through the port against its bare client, and how fast entries are carried there.

In a folder always; on a server, by HTTP and gRPC, where ``REMEMBRANCER_TEST_QDRANT_URL`` names
one.  The bare client does what a plain program would: a cosine collection, the same labels as
payload, ids, labels and scores back.  Ours proves beyond it that no tie was cut wrongly and scores
by the domain's rule.  Local mode compares with every vector, whatever graph was asked for, so how
many of the true ten a graph finds is measured on a server alone.
"""

import itertools
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
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
from tests.benchmarks.row import Row, Work, interleaved, seconds

from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.payload import LABELS
from remembrancer.adapters.qdrant.vector_store import QdrantVectorStore
from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.application.ports.vector_store import Filter, VectorPoint
from remembrancer.contracts.vector_examples import brute_force
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId

DIMENSIONS, OWNERS = 384, 10
ROWS_IN_A_FOLDER = 3_000
"""So few, as the bare client commits each point by itself."""
ROWS_ON_A_SERVER = 20_000
BATCH = 256
ROUNDS = 11
GRAPH_QUESTIONS = 200
GRAPH_WAIT_S = 60.0
"""The longest that graphs are waited for; what isn't in one by then is said."""
ENTRIES = 6_000
PROGRESS_S = 5.0
BARE = "bare"
WIDTH = QdrantOptions().hnsw_ef
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
    rows = _clustered(np.random.default_rng(1), ROWS_ON_A_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        found = _in_a_folder(Path(folder), rows[:ROWS_IN_A_FOLDER])
    if URL is not None:
        found += _on_a_server(rows)
    _say("carrying entries")
    return found + _carried()


def _in_a_folder(folder: Path, rows: Rows) -> list[Row]:
    where, secret = "in a folder", fresh_secret()
    with place_at(in_folder(folder), secret) as place, _local(folder) as client:
        _make_bare(client)
        place.make(index_of(SPACE))
        store = place.store(index_of(SPACE, position=1))
        found = [_written(where, {where: (store, client)}, _points(rows))[where]]
        return found + _asked(where, store, client, rows, turn=3)


def _on_a_server(rows: Rows) -> list[Row]:
    """Measure both protocols on the same collections, each written half by one, half by other."""
    secret, points = fresh_secret(), _points(rows)
    with (
        place_at(on_server(grpc=False), secret, swept=True) as http,
        place_at(on_server(grpc=True), secret) as grpc,
        _remote(grpc=False) as bare_http,
        _remote(grpc=True) as bare_grpc,
    ):
        http.make(index_of(SPACE))
        _make_bare(bare_http)
        index = index_of(SPACE, position=1)
        ways = {
            "on a server, by HTTP": (http.store(index), bare_http),
            "on a server, by gRPC": (grpc.store(index), bare_grpc),
        }
        try:
            found = list(_written("on a server", ways, points).values())
            store = http.store(index)
            indexed = _built(bare_http, [BARE, store._collection])[store._collection]
            found.append(_recall(store, indexed, rows, points))
            for where, (ours, bare) in ways.items():
                found += _asked(where, ours, bare, rows, turn=20)
        finally:
            bare_http.delete_collection(BARE)
    return found


def _say(progress: str) -> None:
    sys.stderr.write(f"qdrant: {progress}\n")
    sys.stderr.flush()


def _clustered(chance: np.random.Generator, count: int) -> Rows:
    """Return rows that lie in heaps, as texts do; wholly random ones have no neighbours."""
    heaps = chance.standard_normal((count // 50, DIMENSIONS))
    rows = heaps[chance.integers(len(heaps), size=count)]
    return (rows + 0.7 * chance.standard_normal((count, DIMENSIONS))).astype(np.float32)


@contextmanager
def _local(folder: Path) -> Generator[QdrantClient]:
    client = QdrantClient(path=str(folder / "bare"))
    try:
        yield client
    finally:
        client.close()


@contextmanager
def _remote(*, grpc: bool) -> Generator[QdrantClient]:
    client = QdrantClient(
        url=URL,
        prefer_grpc=grpc,
        grpc_port=GRPC_PORT,
        headers={"api-key": API_KEY} if API_KEY else {},
        check_compatibility=False,
        timeout=60,
    )
    try:
        yield client
    finally:
        client.close()


def _make_bare(client: QdrantClient) -> None:
    if client.collection_exists(BARE):
        client.delete_collection(BARE)
    client.create_collection(
        BARE,
        vectors_config=models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE),
    )
    if not _is_local(client):
        for field in LABELS:
            client.create_payload_index(BARE, field, models.PayloadSchemaType.KEYWORD)


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


def _is_local(client: QdrantClient) -> bool:
    return type(client._client).__name__ == "QdrantLocal"


def _written(
    where: str,
    ways: Mapping[str, tuple[QdrantVectorStore, QdrantClient]],
    points: Sequence[VectorPoint],
) -> dict[str, Row]:
    """Write all points to both collections, each batch by the next of the ways."""
    taken: dict[str, tuple[list[float], list[float]]] = {way: ([], []) for way in ways}
    began = time.perf_counter()
    ways_in_turn = itertools.cycle(ways.items())
    for number, start in enumerate(range(0, len(points), BATCH)):
        way, (store, client) = next(ways_in_turn)
        some = points[start : start + BATCH]
        works: list[Work] = [partial(store.upsert_many, some), partial(_bare_upsert, client, some)]
        # Every second pair the other way round; with two ways each has both orders.
        for one in (0, 1) if number // len(ways) % 2 else (1, 0):
            taken[way][one].append(seconds(works[one]))
        if time.perf_counter() - began > PROGRESS_S:
            began = time.perf_counter()
            _say(f"{where}, {start + len(some)} of {len(points)} written")
    return {
        way: Row(
            what=f"Qdrant {way}: a batch of {BATCH} upserts",
            ours=statistics.median(ours_s),
            baseline=statistics.median(bare_s),
            against="the bare client",
            at_most=1.2,
        )
        for way, (ours_s, bare_s) in taken.items()
    }


def _bare_upsert(client: QdrantClient, some: Sequence[VectorPoint]) -> object:
    return client.upsert(
        BARE,
        models.Batch(
            ids=[str(one.id) for one in some],
            vectors=[list(one.vector) for one in some],
            payloads=[dict(one.metadata) for one in some],
        ),
        wait=True,
    )


def _built(client: QdrantClient, collections: Sequence[str]) -> dict[str, int]:
    """Wait for graphs; return how many vectors are in them."""
    began = time.perf_counter()
    while True:
        known = {name: client.get_collection(name) for name in collections}
        indexed = {name: one.indexed_vectors_count or 0 for name, one in known.items()}
        waited = time.perf_counter() - began
        _say(f"on a server, graphs hold {list(indexed.values())} after {waited:.0f} s")
        is_green = all(one.status == models.CollectionStatus.GREEN for one in known.values())
        if is_green or waited > GRAPH_WAIT_S:
            return indexed
        time.sleep(PROGRESS_S)


def _asked(
    where: str, store: QdrantVectorStore, client: QdrantClient, rows: Rows, *, turn: int
) -> list[Row]:
    _say(f"{where}, asking")
    questions: Iterator[Rows] = itertools.cycle(rows[:: len(rows) // 97] + np.float32(0.01))

    def bare(top_k: int, wanted: models.Filter | None) -> object:
        return client.query_points(
            BARE,
            query=next(questions).tolist(),
            limit=top_k,
            query_filter=wanted,
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
            turn=turn,
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


def _recall(
    store: QdrantVectorStore, indexed: int, rows: Rows, points: Sequence[VectorPoint]
) -> Row:
    """Return how many of the true ten the graph finds."""
    vectors = {one.id: one.vector for one in points}
    lengths = np.linalg.norm(rows, axis=1)
    asked = rows[:: len(rows) // GRAPH_QUESTIONS] + np.float32(0.01)
    hits = 0
    for row in asked:
        question = array("f", row.tobytes())
        near = {match.id for match in store.query(question, 10)}
        likely = [points[at].id for at in np.argpartition(-(rows @ row) / lengths, 50)[:50]]
        true = brute_force({one: vectors[one] for one in likely}, {}, question, 10, {})
        hits += len(near & {match.id for match in true})
    return Row(
        what=f"Qdrant on a server: share of the true ten, graph searched {WIDTH} wide, "
        f"{indexed} of {len(rows)} in it",
        ours=hits / (10 * len(asked)),
        unit="",
        at_least=0.9,
    )


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
