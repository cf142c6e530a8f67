from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_store import MemoryVectorStore
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.application.ports import Transactions, VectorStore
from remembrancer.contracts.vector_examples import DIMENSIONS
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


def _in_memory() -> tuple[VectorStore, Transactions]:
    transactions = MemoryTransactions()
    store = MemoryVectorStore(transactions=transactions, number=1, dimensions=DIMENSIONS)
    return store, transactions
