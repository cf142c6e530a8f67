from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_indexes import MemoryVectorIndexes
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.adapters.sqlite.vector_tables import DIMENSIONS_MAX
from remembrancer.application.ports import Transactions, VectorIndexes
from remembrancer.contracts.vector_indexes import SPACE, VectorIndexesContract
from remembrancer.domain.errors import InvalidInputError


class TestMemoryVectorIndexes(VectorIndexesContract):
    @override
    def opened(self, folder: Path) -> AbstractContextManager[tuple[VectorIndexes, Transactions]]:
        transactions = MemoryTransactions()
        return nullcontext((MemoryVectorIndexes(transactions=transactions), transactions))


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
