"""`migrate up`, `down` and `status` on the command line, on a real server."""

from collections.abc import Iterator
from datetime import datetime

import psycopg
import pytest
from tests.adapters.postgres_ledgers import execute
from tests.adapters.postgres_server import APPLICATION, AUDITOR, FreshDatabase, server
from tests.composition.shell import Shell

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.migrations.head import HEAD
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.spending import FIRST_ID, LEASE, QUERY, Spender

TOML = f"""
[store]
backend = "postgres"
dsn_variable = "APP_DSN"
owner_dsn_variable = "OWNER_DSN"
application_role = "{APPLICATION}"
auditor_role = "{AUDITOR}"
[embedder]
provider = "none"
"""


@pytest.fixture
def empty(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[FreshDatabase]:
    empty = server().empty_database()
    (shell.folder / "remembrancer.toml").write_text(TOML)
    monkeypatch.setenv("APP_DSN", empty.app)
    monkeypatch.setenv("OWNER_DSN", empty.owner)
    yield empty
    server().drop(empty)


@pytest.fixture
def made(empty: FreshDatabase, shell: Shell) -> FreshDatabase:
    assert shell("migrate", "up").status == 0
    return empty


@pytest.mark.usefixtures("empty")
def test_up_makes_the_schema_and_says_so(shell: Shell) -> None:
    before = shell("migrate", "status")
    done = shell("migrate", "up")
    again = shell.json("migrate", "up")

    assert (before.status, done.status) == (1, 0)
    assert "no schema yet" in before.out
    assert f"revision {HEAD}" in done.out
    assert again == {"found": HEAD, "head": HEAD, "is_current": True}
    assert shell("migrate", "status").status == 0


@pytest.mark.usefixtures("empty")
def test_a_memory_without_its_schema_says_what_to_run(shell: Shell) -> None:
    done = shell("spend")

    assert done.status == 2
    assert "remembrancer migrate up" in done.err


def test_what_is_written_makes_the_schema(shell: Shell, empty: FreshDatabase) -> None:
    script = shell("migrate", "up", "--sql").out

    with psycopg.connect(empty.owner, autocommit=True) as connection:
        connection.execute(script.encode())

    assert shell("migrate", "status").status == 0


def test_what_is_written_takes_it_back_and_up_again(shell: Shell, made: FreshDatabase) -> None:
    down = shell("migrate", "down", "--to", "0001", "--sql").out
    up = shell("migrate", "up", "--since", "0001", "--to", "0002", "--sql").out

    found = []
    for script in (down, up):
        with psycopg.connect(made.superuser, autocommit=True) as connection:
            connection.execute(script.encode())
        found.append(shell("migrate", "status", "--json").data["found"])

    assert found == ["0001", "0002"]


def test_down_says_why_it_refuses_and_what_to_do(
    shell: Shell, made: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query whose process has died is pending until somebody says that it has expired."""
    with Database.open(made.app) as database:
        clock = FixedClock(_now(made) - LEASE)
        ledgers = PostgresLedgerRepository(database=database, mapper=ListedMapper(), clock=clock)
        Spender(ledgers).admit(FIRST_ID, kind=QUERY, charge=10)

    hidden = shell("migrate", "down", "--to", "0001")
    monkeypatch.setenv("OWNER_DSN", made.superuser)
    pending = shell("migrate", "down", "--to", "0001")
    expired = shell.json("spend", "expire", "--tenant", "acme")
    done = shell.json("migrate", "down", "--to", "0001")

    assert (hidden.status, pending.status) == (2, 2)
    assert "BYPASSRLS" in hidden.err
    assert "spend expire --tenant" in pending.err
    assert expired == {"ana": [str(FIRST_ID)]}
    assert done["found"] == "0001"
    assert execute(made.superuser, "SELECT sum(charged_quanta) FROM spend_receipts") == [(10,)]


def test_only_a_postgres_memory_is_migrated(shell: Shell) -> None:
    done = shell("migrate", "status")

    assert done.status == 2
    assert "only postgres" in done.err


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("up", "--since", "0001"), "--sql"),
        (("down",), "--to"),
        (("up", "--to", "9999"), "is none of"),
    ],
)
def test_wrong_use(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    done = shell("migrate", *arguments)

    assert done.status == 2
    assert said in done.err


@pytest.mark.usefixtures("empty")
def test_the_owners_connection_string_is_asked_for_and_never_shown(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWNER_DSN", "postgresql://owner:s3cret@[broken")
    broken = shell("migrate", "up")
    monkeypatch.delenv("OWNER_DSN")
    missing = shell("migrate", "up")

    assert (broken.status, missing.status) == (2, 2)
    assert "s3cret" not in broken.err + broken.out
    assert "OWNER_DSN" in missing.err


def _now(database: FreshDatabase) -> datetime:
    now: datetime
    [(now,)] = execute(database.superuser, "SELECT clock_timestamp()")
    return now
