"""Archives of stores in memory and in SQLite."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.archive import MemoryArchive
from remembrancer.adapters.memory.entry_vault import MemoryEntryVault
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.session_vault import MemorySessionVault
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.archive import SqliteArchive, _reading
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.entry_vault import SqliteEntryVault
from remembrancer.adapters.sqlite.ledger_repository import SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.session_vault import SqliteSessionVault
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.application.ports.archive import Part
from remembrancer.contracts.archive import ArchiveContract
from remembrancer.contracts.archive_examples import ArchiveStore
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import FIRST_ID


class TestMemoryArchive(ArchiveContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[ArchiveStore]:
        transactions = MemoryTransactions()
        recorder = MemoryRecorder(transactions=transactions)
        log = RecordedEventLog(recorder=recorder)
        vault = MemoryEntryVault(transactions=transactions)
        sessions = MemorySessionVault(transactions=transactions)
        ledger = MemoryLedgerRepository(transactions=transactions, log=log, clock=FixedClock())
        yield ArchiveStore(
            archive=MemoryArchive(
                transactions=transactions,
                recorder=recorder,
                vault=vault,
                sessions=sessions,
                ledger=ledger,
            ),
            log=log,
            vault=vault,
            sessions=sessions,
            ledger=ledger,
            transactions=transactions,
        )


class TestSqliteArchive(ArchiveContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[ArchiveStore]:
        folder.mkdir()
        with Database.open(folder / "memory.db") as database:
            log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
            yield ArchiveStore(
                archive=SqliteArchive(database=database),
                log=log,
                vault=SqliteEntryVault(database=database),
                sessions=SqliteSessionVault(database=database),
                ledger=SqliteLedgerRepository(database=database, log=log, clock=FixedClock()),
                transactions=SqliteTransactions(database=database),
            )

    @pytest.mark.parametrize(
        ("part", "index"),
        [
            (Part(tenant="acme", owner="ana"), "stored_events_of_owner"),
            (Part(tenant="acme", session="s-1"), "stored_events_of_session"),
            (
                Part(tenant="acme", owner="ana", reservation_id=FIRST_ID),
                "stored_events_of_reservation",
            ),
        ],
        ids=["owner", "session", "reservation"],
    )
    def test_nobodys_events_are_found_by_reading_the_log(
        self, tmp_path: Path, part: Part, index: str
    ) -> None:
        statement, values = _reading(part, 0, 10, newest=False)
        with Database.open(tmp_path / "memory.db") as database:
            rows = database.connection().execute(f"EXPLAIN QUERY PLAN {statement}", values)

            plan = [row[3] for row in rows]

        assert any(index in step for step in plan), plan
        assert not any(step.startswith("SCAN") for step in plan), plan
