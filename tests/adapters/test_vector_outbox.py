from array import array
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_outbox import MemoryVectorOutbox
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.adapters.sqlite.vector_outbox import SqliteVectorOutbox
from remembrancer.application.ports import Clock, Transactions, VectorOutbox
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.vector_outbox import (
    ERASED,
    THERE,
    VectorOutboxContract,
    ana,
    ben,
    leave,
)

CANARY = array("f", [0.71, 0.62, 0.53, 0.44])


class TestMemoryVectorOutbox(VectorOutboxContract):
    @override
    def opened(
        self, folder: Path, clock: Clock
    ) -> AbstractContextManager[tuple[VectorOutbox, Transactions]]:
        transactions = MemoryTransactions()
        outbox = MemoryVectorOutbox(transactions=transactions, clock=clock)
        return nullcontext((outbox, transactions))


class TestSqliteVectorOutbox(VectorOutboxContract):
    @override
    @contextmanager
    def opened(self, folder: Path, clock: Clock) -> Generator[tuple[VectorOutbox, Transactions]]:
        with Database.open(folder / "memory.db") as database:
            outbox = SqliteVectorOutbox(database=database, clock=clock)
            yield outbox, SqliteTransactions(database=database)

    def test_survives_reopening(self, tmp_path: Path, clock: FixedClock) -> None:
        with self.opened(tmp_path, clock) as (outbox, transactions):
            leave(outbox, transactions, THERE, ana(), ben(None))
            outbox.erase([THERE], ERASED)

        with self.opened(tmp_path, clock) as (outbox, _):
            assert outbox.count(THERE) == (1, 1)

    def test_no_byte_of_an_erased_vector_is_left(self, tmp_path: Path, clock: FixedClock) -> None:
        with self.opened(tmp_path, clock) as (outbox, transactions):
            leave(outbox, transactions, THERE, ana(CANARY), ben())
            outbox.erase([THERE], ERASED)

            done = transactions.scrub()

            assert done
            assert CANARY.tobytes() not in bytes_under(tmp_path)

    def test_no_byte_of_an_arrived_vector_is_left(self, tmp_path: Path, clock: FixedClock) -> None:
        with self.opened(tmp_path, clock) as (outbox, transactions):
            leave(outbox, transactions, THERE, ana(CANARY))
            outbox.remove(THERE, [ana()])

            done = transactions.scrub()

            assert done
            assert CANARY.tobytes() not in bytes_under(tmp_path)
