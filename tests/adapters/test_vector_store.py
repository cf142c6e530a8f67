from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar

import pytest
from tests.adapters.qdrant_servers import (
    URL,
    in_folder,
    index_of,
    on_server,
    place_at,
    remove_what_was_left,
)
from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_store import MemoryVectorStore
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.application.ports import Transactions, VectorMatch, VectorPoint, VectorStore
from remembrancer.contracts.vector_examples import (
    DIMENSIONS,
    EAST,
    FIRST,
    NORTH,
    SECOND,
    THIRD,
    put,
    random_vectors,
)
from remembrancer.contracts.vector_store import VectorStoreContract
from remembrancer.contracts.vector_store_in_transactions import VectorStoreInTransactionsContract
from remembrancer.domain.embedding_tuple import EmbeddingTuple

SPACE = EmbeddingTuple(
    provider="test",
    model="test",
    model_revision="1",
    dimensions=DIMENSIONS,
    input_preparation="plain@1",
)


@pytest.fixture(scope="module", autouse=True)
def _tidy_server() -> Iterator[None]:
    yield
    remove_what_was_left()


class TestMemoryVectorStore(VectorStoreContract, VectorStoreInTransactionsContract):
    @override
    def opened(self, folder: Path) -> AbstractContextManager[VectorStore]:
        store, _ = _in_memory()
        return nullcontext(store)

    @override
    def opened_with_transactions(
        self, folder: Path
    ) -> AbstractContextManager[tuple[VectorStore, Transactions]]:
        return nullcontext(_in_memory())


class TestSqliteVectorStore(VectorStoreContract, VectorStoreInTransactionsContract):
    durable = True

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[VectorStore]:
        with self.opened_with_transactions(folder) as (store, _):
            yield store

    @override
    @contextmanager
    def opened_with_transactions(
        self, folder: Path
    ) -> Generator[tuple[VectorStore, Transactions]]:
        with Database.open(folder / "memory.db") as database:
            indexes = SqliteVectorIndexes(database=database)
            yield indexes.store(indexes.begin(SPACE)), SqliteTransactions(database=database)


class QdrantVectorStoreContract(VectorStoreContract):
    """A store that isn't written with the entries: it tells which version a vector is of."""

    def test_gives_back_the_version_with_a_match(self, store: VectorStore) -> None:
        store.upsert_many([VectorPoint(FIRST, EAST, {}, 7), VectorPoint(SECOND, EAST, {})])

        found = store.query(EAST, 5)

        assert found == [VectorMatch(FIRST, 1.0, 7), VectorMatch(SECOND, 1.0)]

    def test_gives_back_vectors_with_their_versions(self, store: VectorStore) -> None:
        store.upsert(FIRST, NORTH, {})
        store.upsert_many([VectorPoint(FIRST, EAST, {}, 7), VectorPoint(SECOND, EAST, {})])

        found = store.kept([FIRST, SECOND, THIRD])

        assert {id_: (list(one.vector), one.version) for id_, one in found.items()} == {
            FIRST: (list(EAST), 7),
            SECOND: (list(EAST), None),
        }

    def test_says_which_vectors_are_here(self, store: VectorStore) -> None:
        put(store, {FIRST: EAST, SECOND: NORTH})

        assert store.present([FIRST, THIRD, FIRST]) == {FIRST}

    def test_many_are_deleted_at_once(self, store: VectorStore) -> None:
        vectors = random_vectors(1_500)
        put(store, vectors)
        put(store, {FIRST: EAST})

        store.delete_many([*vectors, SECOND])

        assert store.query(EAST, 5) == [VectorMatch(FIRST, 1.0)]

    def test_deleting_none_deletes_none(self, store: VectorStore) -> None:
        put(store, {FIRST: EAST})

        store.delete_many([])

        assert store.count() == 1


class TestQdrantFolder(QdrantVectorStoreContract):
    durable = True

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[VectorStore]:
        with place_at(in_folder(folder)) as place:
            place.make(index_of(SPACE, position=_opened_before(folder)))
            yield place.store(index_of(SPACE))


class QdrantServerContract(QdrantVectorStoreContract):
    durable = True
    grpc: ClassVar[bool]

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[VectorStore]:
        # Of the folder's own, so that opening it again finds what was there.
        secret = str(folder).encode().rjust(32)[-64:]
        with place_at(on_server(grpc=self.grpc), secret) as place:
            place.make(index_of(SPACE, position=_opened_before(folder)))
            yield place.store(index_of(SPACE))


if URL is not None:

    class TestQdrantServerByHttp(QdrantServerContract):
        grpc = False

    class TestQdrantServerByGrpc(QdrantServerContract):
        grpc = True


def _opened_before(folder: Path) -> int:
    """Return 0 for the first time, as the position of an index that begins, and 1 afterwards."""
    mark = folder / "opened"
    before = mark.exists()
    mark.touch()
    return int(before)


def _in_memory() -> tuple[VectorStore, Transactions]:
    transactions = MemoryTransactions()
    store = MemoryVectorStore(transactions=transactions, number=1, dimensions=DIMENSIONS)
    return store, transactions
