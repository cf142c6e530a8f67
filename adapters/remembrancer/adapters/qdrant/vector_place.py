"""Collections, one for each index: made, checked before use, and swept away.

A collection is named by the embedding tuple's digest, by the memory it belongs to and by the
index's number; its metadata hold the tuple itself.  A server older than 1.16 keeps no metadata,
so its collections are refused.
"""

import hashlib
from collections.abc import Callable, Collection
from typing import Any

from typing_extensions import override

from remembrancer.adapters.qdrant.link import Asking, QdrantLink
from remembrancer.adapters.qdrant.local_folder import kept_clean
from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.qdrant.payload import FIELDS, TENANT, Marks
from remembrancer.adapters.qdrant.vector_store import QdrantVectorStore
from remembrancer.application.ports.vector_indexes import VectorIndex
from remembrancer.application.ports.vector_place import VectorPlace
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import StoreCorruptError

FORMAT = 1
"""Of what points carry; a collection of another is built anew by a reindex."""
_MEMORY_CHARACTERS = 16
_IN_GRAPH = (TENANT, "owner", "scope")
"""What few enough points share that a graph of their own pays."""


class QdrantVectorPlace(VectorPlace):
    """The collections of one memory."""

    def __init__(self, *, link: QdrantLink, secret: Callable[[], bytes]) -> None:
        """Ask nothing; ``secret`` is the memory's own, and read when it is first needed."""
        self._link = link
        self._secret = secret
        self._stores: dict[tuple[int, EmbeddingTuple], QdrantVectorStore] = {}
        self._seen: set[str] = set()

    @override
    def make(self, index: VectorIndex) -> None:
        name = self._name(index)
        with self._link.asking(self._link.options.write_timeout_s) as asking:
            there = asking.client.collection_exists(name)
            self._seen.discard(name)
            if index.position > 0 and not there:
                raise StoreCorruptError(
                    store=self._link.options.place,
                    problem=f"collection {name} is gone; `remembrancer reindex` builds another",
                )
            if index.position == 0:
                if there:
                    asking.client.delete_collection(name, timeout=asking.timeout())
                self._create(asking, name, index.embedding_tuple)
            self._index_fields(asking, name)
            self._check(asking, name, index.embedding_tuple)

    @override
    def holds(self, index: VectorIndex) -> bool:
        # As short as a query: an erasure asks while its caller waits.
        with self._link.asking(self._link.options.timeout_s) as asking:
            there: bool = asking.client.collection_exists(self._name(index))
            return there

    @override
    def store(self, index: VectorIndex) -> QdrantVectorStore:
        key = (index.number, index.embedding_tuple)
        store = self._stores.get(key)
        if store is None:
            name, space = self._name(index), index.embedding_tuple
            # Of two threads that come first at once, both get the one that is kept.
            store = self._stores.setdefault(
                key,
                QdrantVectorStore(
                    link=self._link,
                    collection=name,
                    dimensions=space.dimensions,
                    marks=Marks(self._derived(b"marks")),
                    opened=lambda asking: self._check(asking, name, space),
                ),
            )
        return store

    @override
    def sweep(self, numbers: Collection[int]) -> None:
        with self._link.asking(self._link.options.write_timeout_s) as asking:
            for one in asking.client.get_collections().collections:
                number = self._number(one.name)
                if number is not None and number not in numbers:
                    asking.client.delete_collection(one.name, timeout=asking.timeout())
                    self._seen.discard(one.name)

    # -- Names -------------------------------------------------------------

    def _derived(self, purpose: bytes) -> bytes:
        return hashlib.blake2b(purpose, key=self._secret()[:64], person=b"qdrant").digest()

    def _name(self, index: VectorIndex) -> str:
        return f"{self._beginning()}_{index.number}_{index.embedding_tuple.digest}"

    def _beginning(self) -> str:
        memory = self._derived(b"memory").hex()[:_MEMORY_CHARACTERS]
        return f"{self._link.options.prefix}_{memory}"

    def _number(self, name: str) -> int | None:
        """Return the number of one of this memory's indexes; None for what is another's."""
        beginning = f"{self._beginning()}_"
        if not name.startswith(beginning):
            return None
        number, _, _ = name.removeprefix(beginning).partition("_")
        return int(number) if number.isdecimal() else None

    # -- Collections -------------------------------------------------------

    def _create(self, asking: Asking, name: str, space: EmbeddingTuple) -> None:
        options, models = self._link.options, asking.models
        asking.client.create_collection(
            name,
            vectors_config=models.VectorParams(
                size=space.dimensions,
                # Of directions whose length is 1: what cosine collections keep isn't what was
                # given, and products of those are cosines.
                distance=models.Distance.DOT,
                on_disk=options.on_disk,
            ),
            hnsw_config=models.HnswConfigDiff(
                m=options.hnsw_m,
                payload_m=options.hnsw_payload_m,
                ef_construct=options.hnsw_ef_construct,
            ),
            quantization_config=_quantization(options, models),
            shard_number=options.shards,
            replication_factor=options.replicas,
            write_consistency_factor=options.write_consistency,
            on_disk_payload=True,
            metadata=_metadata(space),
            timeout=asking.timeout(),
        )
        if self._link.is_local:
            kept_clean(asking.client, name)

    def _index_fields(self, asking: Asking, name: str) -> None:
        if self._link.is_local:
            return  # It has none, and warns of that.
        there = asking.client.get_collection(name).payload_schema
        for field in FIELDS:
            if field in there:
                continue
            schema = asking.models.KeywordIndexParams(
                type=asking.models.KeywordIndexType.KEYWORD,
                is_tenant=True if field == TENANT else None,
                enable_hnsw=field in _IN_GRAPH,
            )
            asking.client.create_payload_index(
                name, field, schema, wait=True, timeout=asking.timeout()
            )

    def _check(self, asking: Asking, name: str, space: EmbeddingTuple) -> None:
        """Look at what lies there, once in each process's life.

        Raises:
            StoreCorruptError: it isn't a collection of this space.
        """
        if name in self._seen:
            return
        config = asking.client.get_collection(name).config
        vectors = config.params.vectors
        fits = (
            isinstance(vectors, asking.models.VectorParams)
            and vectors.size == space.dimensions
            and vectors.distance == asking.models.Distance.DOT
            and config.metadata == _metadata(space)
        )
        if not fits:
            raise StoreCorruptError(
                store=self._link.options.place,
                problem=f"collection {name} isn't one of {space}, or its server is too old to say",
            )
        self._seen.add(name)


def _metadata(space: EmbeddingTuple) -> dict[str, Any]:
    return {"remembrancer": FORMAT, "embedding_tuple": space.model_dump(mode="json")}


def _quantization(options: QdrantOptions, models: Any) -> Any:
    match options.quantization:
        case "scalar":
            return models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(
                    type=models.ScalarType.INT8, quantile=0.99, always_ram=True
                )
            )
        case "binary":
            return models.BinaryQuantization(
                binary=models.BinaryQuantizationConfig(always_ram=True)
            )
        case _:
            return None
