"""The vaults of PostgreSQL: their contracts, and who may ask for what."""

import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from tests.adapters.postgres_named import (
    TENANTS,
    ClearingTransactions,
    NamedEntryVault,
    NamedSessionVault,
    emptied,
)
from tests.adapters.postgres_server import FreshDatabase
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.entry_vault import PostgresEntryVault
from remembrancer.adapters.postgres.installation_secret import PostgresInstallationSecret
from remembrancer.adapters.postgres.session_vault import PostgresSessionVault
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.application.ports import EntryVault, SessionVault, Transactions
from remembrancer.application.ports.installation_secret import InstallationSecret
from remembrancer.contracts.entry_vault import EntryVaultContract
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.installation_secret import InstallationSecretContract
from remembrancer.contracts.originals import FIRST, SECOND, an_original
from remembrancer.contracts.rollback import rolled_back
from remembrancer.contracts.session_vault import KEY, PLAN, SessionVaultContract, keep_key
from remembrancer.domain.errors import InvalidInputError, StaleStreamError, StoreCorruptError
from remembrancer.domain.identity import EntryId

PROCESSES = 4
ANOTHER_PROCESS = """
import sys
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.installation_secret import PostgresInstallationSecret
from remembrancer.adapters.randomness.randomness import SystemRandomness

with Database.open(sys.argv[1]) as database:
    print("ready", flush=True)
    sys.stdin.readline()
    secret = PostgresInstallationSecret(database=database, randomness=SystemRandomness())
    print(secret.secret().hex())
"""


@contextmanager
def _opened(folder: Path) -> Generator[tuple[Database, Transactions]]:
    with emptied() as fresh, Database.open(fresh.app) as database:
        yield database, ClearingTransactions(database=database, fresh=fresh, folder=folder)


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with emptied() as fresh:
        yield fresh


@pytest.fixture
def database(fresh: FreshDatabase) -> Iterator[Database]:
    with Database.open(fresh.app, reader_dsn=fresh.auditor) as database:
        yield database


class TestPostgresEntryVault(EntryVaultContract):
    model_examples = 5

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[EntryVault, Transactions]]:
        with _opened(folder) as (database, transactions):
            yield NamedEntryVault(database, TENANTS[:2]), transactions


class TestPostgresSessionVault(SessionVaultContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[SessionVault, Transactions]]:
        with _opened(folder) as (database, transactions):
            yield NamedSessionVault(database), transactions


class TestPostgresInstallationSecret(InstallationSecretContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[InstallationSecret]:
        with _opened(folder) as (database, _):
            yield PostgresInstallationSecret(database=database, randomness=SystemRandomness())


# -- Who may ask for what ----------------------------------------------------------


def test_a_call_by_id_needs_a_tenant_to_ask_for(database: Database) -> None:
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original()])

    for call in (
        lambda: vault.current([FIRST]),
        lambda: vault.versions([(FIRST, 1)]),
        lambda: vault.indexed([FIRST]),
        lambda: vault.history(FIRST),
        lambda: vault.erase(FIRST),
        lambda: vault.tenant_of_erased(FIRST),
        vault.count,
    ):
        with pytest.raises(InvalidInputError, match="name the tenant"):
            call()


def test_a_tenants_block_sees_all_of_its_owners_and_nobody_elses(database: Database) -> None:
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original(FIRST, owner="ana"), an_original(SECOND, tenant="other")])

    with database.acting_for("acme"):
        assert set(vault.current([FIRST, SECOND])) == {FIRST}
        assert vault.count() == 1
    with database.acting_for("acme", "ben"):
        assert vault.current([FIRST, SECOND]) == {}
    with database.over_all_tenants():
        assert set(vault.current([FIRST, SECOND])) == {FIRST, SECOND}
        assert vault.count() == 2


def test_another_owners_entry_is_neither_erased_nor_corrected(database: Database) -> None:
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original()])

    with database.acting_for("acme", "ben"):
        assert vault.erase(FIRST) == []
    with pytest.raises(StaleStreamError):
        vault.keep([an_original(FIRST, 2, owner="ben")])

    with database.acting_for("acme"):
        assert [one.version for one in vault.history(FIRST)] == [1]


def test_naming_another_than_is_acted_for_is_refused(database: Database) -> None:
    vault = PostgresEntryVault(database=database)

    with (
        database.acting_for("acme", "ana"),
        pytest.raises(InvalidInputError, match="acted for"),
    ):
        vault.keep([an_original(tenant="other")])


def test_a_session_of_several_owners_is_erased_whole(database: Database) -> None:
    vault = PostgresSessionVault(database=database)
    keep_key(vault, PLAN, owner="ana")
    keep_key(vault, UUID(int=77), owner="ben")

    assert vault.erase_session(tenant="acme", session="session-1") == 2

    with database.acting_for("acme"):
        assert vault.key(PLAN) is None


# -- What is kept ------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "subjects = '{\"canarybird\":1}'",
        "metadata = '[\"canarybird\"]'",
        "sensitivity = 'canarybird'",
        "text = '\\xff63616e61727962697264'",
        "recorded_at = 9000000000000000000",
    ],
)
def test_a_damaged_row_is_told_without_what_is_in_it(
    fresh: FreshDatabase, database: Database, damage: str
) -> None:
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original(text="canarybird")])
    with psycopg.connect(fresh.superuser) as connection:
        connection.execute(
            f"UPDATE remembrancer.originals SET {damage}"  # noqa: S608 - our own words
        )

    with database.acting_for("acme"), pytest.raises(StoreCorruptError) as caught:
        vault.current([FIRST])

    assert "canarybird" not in f"{caught.value} {caught.value.__cause__!r}"


def test_an_erasure_is_pending_until_the_tables_are_written_anew(
    fresh: FreshDatabase, database: Database, tmp_path: Path
) -> None:
    transactions = PostgresTransactions(database=database)
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original(text="canarybird " * 50)])
    before = transactions.scrub()

    with database.acting_for("acme"):
        vault.erase(FIRST)

    assert (before, transactions.scrub()) == (True, False)
    cleared = ClearingTransactions(database=database, fresh=fresh, folder=tmp_path).scrub()
    assert cleared
    assert transactions.scrub()


def test_an_erasure_stays_pending_while_a_reader_may_still_see_the_rows(
    fresh: FreshDatabase, database: Database, tmp_path: Path
) -> None:
    clearing = ClearingTransactions(
        database=database, fresh=fresh, folder=tmp_path, pause=lambda _seconds: None
    )
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original()])
    with psycopg.connect(fresh.superuser) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        with database.acting_for("acme"):
            vault.erase(FIRST)

        while_read = clearing.scrub()

    assert (while_read, clearing.scrub()) == (False, True)


def test_clearing_outlasts_a_reader_that_ends_soon(
    fresh: FreshDatabase, database: Database, tmp_path: Path
) -> None:
    """Such as the server's own, which looks through a table for its statistics."""
    vault = PostgresEntryVault(database=database)
    vault.keep([an_original(text="canarybird")])
    with psycopg.connect(fresh.superuser) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        with database.acting_for("acme"):
            vault.erase(FIRST)

        def ends(seconds: float) -> None:
            reader.rollback()
            time.sleep(seconds)  # Asked for: the server's own readers need them to end, too.

        cleared = ClearingTransactions(
            database=database, fresh=fresh, folder=tmp_path, pause=ends
        ).scrub()

    assert cleared
    assert b"canary" not in bytes_under(tmp_path)


def test_erased_words_are_in_no_statistics(fresh: FreshDatabase, database: Database) -> None:
    vault = PostgresEntryVault(database=database)
    for number in range(1, 40):
        one = EntryId(UUID(int=number))
        vault.keep([an_original(one, text="canarybird", reason="canaryreason")])
    with psycopg.connect(fresh.superuser, autocommit=True) as connection:
        connection.execute("ANALYZE")
        with database.acting_for("acme"):
            for number in range(1, 40):
                vault.erase(EntryId(UUID(int=number)))

        told = connection.execute("SELECT pg_stats::text FROM pg_stats").fetchall()
        kept = connection.execute("SELECT s::text FROM pg_statistic AS s").fetchall()

    assert "originals" in str(told)
    spelt = str(told) + str(kept)
    assert "canary" not in spelt
    assert b"canary".hex() not in spelt


# -- The installation's secret -----------------------------------------------------


def test_processes_that_ask_first_together_get_the_same_secret(fresh: FreshDatabase) -> None:
    others = [
        subprocess.Popen(
            [sys.executable, "-c", ANOTHER_PROCESS, fresh.app],
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


def test_a_secret_that_is_rolled_back_was_never_made(database: Database) -> None:
    installation = PostgresInstallationSecret(database=database, randomness=SystemRandomness())
    with rolled_back(PostgresTransactions(database=database)):
        lost = installation.secret()

    assert installation.secret() != lost
    assert installation.secret() == installation.secret()


def test_the_auditor_may_not_read_the_secret(fresh: FreshDatabase, database: Database) -> None:
    PostgresInstallationSecret(database=database, randomness=SystemRandomness()).secret()

    with (
        psycopg.connect(fresh.auditor) as auditor,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        auditor.execute("SELECT * FROM remembrancer.installation_secret")


def test_a_session_vault_shows_no_secret_in_its_repr(database: Database) -> None:
    vault = PostgresSessionVault(database=database)
    keep_key(vault, PLAN)

    assert repr(KEY) not in repr(vault)
