from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from tests.adapters.qdrant_servers import (
    URL,
    in_folder,
    on_server,
    place_at,
    remove_what_was_left,
)
from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_indexes import MemoryVectorIndexes
from remembrancer.adapters.qdrant.options import QdrantOptions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_tables import DIMENSIONS_MAX
from remembrancer.application.placed_indexes import PlacedIndexes
from remembrancer.application.ports import Transactions, VectorIndexes
from remembrancer.contracts.vector_indexes import SPACE, VectorIndexesContract
from remembrancer.domain.errors import InvalidInputError


@pytest.fixture(scope="module", autouse=True)
def _tidy_server() -> Iterator[None]:
    yield
    remove_what_was_left()


class TestMemoryVectorIndexes(VectorIndexesContract):
    @override
    def opened(self, folder: Path) -> AbstractContextManager[tuple[VectorIndexes, Transactions]]:
        transactions = MemoryTransactions()
        return nullcontext((MemoryVectorIndexes(transactions=transactions), transactions))


class IndexesInQdrantContract(VectorIndexesContract):
    """The registry of a file, and vectors in Qdrant."""

    place = "qdrant"
    durable = True

    def options(self, folder: Path) -> QdrantOptions:
        return in_folder(folder)

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[VectorIndexes, Transactions]]:
        secret = str(folder).encode().rjust(32)[-64:]  # The same as it is opened again.
        with (
            Database.open(folder / "memory.db") as database,
            place_at(self.options(folder), secret) as place,
        ):
            registry = SqliteVectorIndexes(database=database)
            places = {"qdrant": place}
            yield (
                PlacedIndexes(registry=registry, places=places, preferred="qdrant"),
                SqliteTransactions(database=database),
            )


class TestIndexesInAQdrantFolder(IndexesInQdrantContract):
    pass


if URL is not None:

    class TestIndexesInQdrantByHttp(IndexesInQdrantContract):
        @override
        def options(self, folder: Path) -> QdrantOptions:
            return on_server(grpc=False)

    class TestIndexesInQdrantByGrpc(IndexesInQdrantContract):
        @override
        def options(self, folder: Path) -> QdrantOptions:
            return on_server(grpc=True)


class TestSqliteVectorIndexes(VectorIndexesContract):
    durable = True

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[VectorIndexes, Transactions]]:
        with Database.open(folder / "memory.db") as database:
            yield SqliteVectorIndexes(database=database), SqliteTransactions(database=database)

    def test_refuses_more_dimensions_than_sqlite_vec_takes(self, indexes: VectorIndexes) -> None:
        widest = SPACE.model_copy(update={"dimensions": DIMENSIONS_MAX})

        indexes.begin(widest)

        with pytest.raises(InvalidInputError):
            indexes.begin(widest.model_copy(update={"dimensions": DIMENSIONS_MAX + 1}))
