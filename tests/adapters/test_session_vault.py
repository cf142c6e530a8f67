from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from typing_extensions import override

from remembrancer.adapters.memory.session_vault import MemorySessionVault
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.session_vault import SqliteSessionVault
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.application.ports import SessionVault, Transactions
from remembrancer.contracts.session_vault import KEY, PLAN, SessionVaultContract, keep_key


class TestMemorySessionVault(SessionVaultContract):
    @override
    def opened(self, folder: Path) -> AbstractContextManager[tuple[SessionVault, Transactions]]:
        transactions = MemoryTransactions()
        return nullcontext((MemorySessionVault(transactions=transactions), transactions))

    def test_shows_no_secret_in_its_repr(self) -> None:
        vault = MemorySessionVault(transactions=MemoryTransactions())
        keep_key(vault, PLAN)
        vault.keep_items(PLAN, number=1, items=b"canarybird")

        shown = f"{vault!r} {vault._kept!r}"

        assert "canarybird" not in shown
        assert repr(KEY) not in shown


class TestSqliteSessionVault(SessionVaultContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[SessionVault, Transactions]]:
        with Database.open(folder / "memory.db") as database:
            yield SqliteSessionVault(database=database), SqliteTransactions(database=database)

    def test_keys_and_items_survive_reopening(self, tmp_path: Path) -> None:
        with Database.open(tmp_path / "memory.db") as database:
            vault = SqliteSessionVault(database=database)
            keep_key(vault, PLAN)
            vault.keep_items(PLAN, number=1, items=b"[1]")

        with Database.open(tmp_path / "memory.db") as database:
            vault = SqliteSessionVault(database=database)

            assert vault.key(PLAN) == KEY
            assert vault.items(PLAN, number=1) == b"[1]"
