import subprocess
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from typing_extensions import override

from remembrancer.adapters.memory.installation_secret import MemoryInstallationSecret
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.installation_secret import SqliteInstallationSecret
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.application.ports.installation_secret import InstallationSecret
from remembrancer.contracts.installation_secret import InstallationSecretContract
from remembrancer.contracts.rollback import rolled_back
from remembrancer.domain.errors import StoreReadOnlyError

PROCESSES = 4
ANOTHER_PROCESS = """
import sys
from pathlib import Path
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.installation_secret import SqliteInstallationSecret

with Database.open(Path(sys.argv[1])) as database:
    print("ready", flush=True)
    sys.stdin.readline()
    secret = SqliteInstallationSecret(database=database, randomness=SystemRandomness())
    print(secret.secret().hex())
"""


class TestMemoryInstallationSecret(InstallationSecretContract):
    @override
    def opened(self, folder: Path) -> AbstractContextManager[InstallationSecret]:
        return nullcontext(MemoryInstallationSecret(randomness=SystemRandomness()))


class TestSqliteInstallationSecret(InstallationSecretContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[InstallationSecret]:
        with Database.open(folder / "memory.db") as database:
            yield SqliteInstallationSecret(database=database, randomness=SystemRandomness())

    def test_survives_reopening(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as installation:
            first = installation.secret()

        with self.opened(tmp_path) as installation:
            assert installation.secret() == first

    def test_processes_that_ask_first_together_get_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        with Database.open(path):
            pass
        others = [
            subprocess.Popen(
                [sys.executable, "-c", ANOTHER_PROCESS, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(PROCESSES)
        ]
        for one in others:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"

        for one in others:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        secrets = {one.communicate(timeout=60)[0] for one in others}

        assert len(secrets) == 1
        assert len(secrets.pop().strip()) == 64

    def test_one_that_is_rolled_back_was_never_made(self, tmp_path: Path) -> None:
        with Database.open(tmp_path / "memory.db") as database:
            installation = SqliteInstallationSecret(
                database=database, randomness=SystemRandomness()
            )
            with rolled_back(SqliteTransactions(database=database)):
                lost = installation.secret()

            assert installation.secret() != lost
            assert installation.secret() == installation.secret()

    def test_is_read_but_not_made_where_nothing_may_be_written(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        with Database.open(path):
            pass

        with Database.open(path, read_only=True) as database:
            installation = SqliteInstallationSecret(
                database=database, randomness=SystemRandomness()
            )
            with pytest.raises(StoreReadOnlyError):
                installation.secret()
        with self.opened(tmp_path) as writable:
            made = writable.secret()
        with Database.open(path, read_only=True) as database:
            installation = SqliteInstallationSecret(
                database=database, randomness=SystemRandomness()
            )

            assert installation.secret() == made
