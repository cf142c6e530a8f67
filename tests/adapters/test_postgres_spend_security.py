"""Receipts and ledgers, attacked as the application's role: what row security keeps (case 17)."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.adapters.postgres_ledgers import LedgerBench, ledger_bench
from tests.adapters.postgres_server import OWNER

from remembrancer.contracts.spending import FIRST_ID, QUERY, SECOND_ID, Spender
from remembrancer.domain.errors import InvalidInputError

REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported)
ADD_A_RECEIPT = (
    "INSERT INTO spend_receipts SELECT 'other', owner, gen_random_uuid(), request_digest, state,"
    " day, admitted_at, lease_s, reserved_quanta, charged_quanta, NULL, NULL, ceiling_quanta,"
    " ceiling_requests, ledger_id, 9 FROM spend_receipts"
)
CALL = (
    "SELECT remembrancer.record_change('other', 'ana', gen_random_uuid(), 2, 't', '', '', '',"
    " gen_random_uuid(), 'settled', 1, 1, NULL)"
)
LET_GO = (
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql"
    " AS 'BEGIN RETURN NEW; END'"
)
TABLES = ("spend_receipts", "ledger_snapshots", "stored_events", "owners")
AS_ANA = (
    "SELECT set_config('search_path', 'remembrancer', true),"
    " set_config('remembrancer.tenant', 'acme', true),"
    " set_config('remembrancer.owner', 'ana', true)"
)


@pytest.fixture
def bench() -> Iterator[LedgerBench]:
    """Two tenants have spent; the others' ledger even has a snapshot."""
    with ledger_bench() as bench:
        bench.ana.admit(FIRST_ID, kind=QUERY)
        other = Spender(bench.ledgers, "ana", tenant="other")
        for _ in range(9):
            other.admit(SECOND_ID)
        bench.execute(
            r"INSERT INTO ledger_snapshots VALUES ('other', 'ana', 1, '\x00'),"
            r" ('acme', 'ana', 1, '\x00')"
        )
        yield bench


@pytest.fixture
def attacker(bench: LedgerBench) -> Iterator[psycopg.Connection[Any]]:
    """The application's role, acting for one owner."""
    with psycopg.connect(bench.fresh.app) as connection:
        connection.execute(AS_ANA)
        yield connection


def _tenants(connection: psycopg.Connection[Any], table: str) -> set[str]:
    name = sql.Identifier("remembrancer", table)
    rows = connection.execute(sql.SQL("SELECT DISTINCT tenant FROM {}").format(name))
    return {tenant for (tenant,) in rows}


@pytest.mark.parametrize("table", TABLES)
def test_nobody_named_sees_nobodys_rows(bench: LedgerBench, table: str) -> None:
    with psycopg.connect(bench.fresh.app) as connection:
        assert _tenants(connection, table) == set()
        connection.execute(AS_ANA)
        assert _tenants(connection, table) == {"acme"}
        connection.commit()  # With it the settings go, and read as an empty text from now on.
        assert _tenants(connection, table) == set()


@pytest.mark.parametrize("table", TABLES)
def test_a_tenant_that_is_an_empty_text_is_nobody(bench: LedgerBench, table: str) -> None:
    with psycopg.connect(bench.fresh.app) as connection:
        connection.execute("SELECT set_config('remembrancer.tenant', '', true)")
        connection.execute("SELECT set_config('remembrancer.reach', 'tenant', true)")

        assert _tenants(connection, table) == set()


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE spend_receipts SET tenant = 'other'",
        "UPDATE spend_receipts SET reserved_quanta = 1",
        "UPDATE spend_receipts SET day = '1999-01-01'",
        "DELETE FROM spend_receipts",
        "TRUNCATE spend_receipts",
        "TRUNCATE owners CASCADE",
        "DELETE FROM ledger_snapshots",
        "UPDATE ledger_snapshots SET tenant = 'other'",
        "UPDATE owners SET tenant = 'other'",
        "INSERT INTO owners VALUES ('other', 'eve')",
        "INSERT INTO owners VALUES ('acme', 'ben')",
        r"INSERT INTO ledger_snapshots VALUES ('other', 'eve', 1, '\x00')",
        ADD_A_RECEIPT,
        CALL,
        "COPY spend_receipts FROM STDIN",
        "COPY spend_receipts TO '/tmp/stolen'",
        "ALTER TABLE spend_receipts DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE spend_receipts NO FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON spend_receipts USING (true)",
        "CREATE TABLE remembrancer.mine (id int)",
        "CREATE FUNCTION remembrancer.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        LET_GO,
        "DROP FUNCTION open_ledger",
        f"SET ROLE {OWNER}",
        "SET ROLE postgres",
        f"SET SESSION AUTHORIZATION {OWNER}",
        "SET LOCAL session_replication_role = replica",
    ],
)
def test_what_is_anothers_is_refused(attacker: psycopg.Connection[Any], attack: str) -> None:
    before = attacker.execute("SELECT * FROM spend_receipts").fetchall()
    attacker.commit()
    attacker.execute(AS_ANA)

    with pytest.raises(REFUSED):
        attacker.execute(attack.encode())

    attacker.rollback()
    attacker.execute(AS_ANA)
    assert attacker.execute("SELECT * FROM spend_receipts").fetchall() == before


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE spend_receipts SET state = 'settled' WHERE tenant = 'other'",
        "SELECT 1 FROM spend_receipts WHERE tenant = 'other'",
        "SELECT 1 FROM spend_receipts WHERE tenant = 'other' FOR UPDATE",
        "SELECT 1 FROM owners WHERE tenant = 'other' FOR UPDATE",
    ],
)
def test_what_is_anothers_is_not_there(attacker: psycopg.Connection[Any], attack: str) -> None:
    assert attacker.execute(attack.encode()).rowcount == 0


def test_a_copy_holds_no_hidden_row(attacker: psycopg.Connection[Any]) -> None:
    with attacker.cursor().copy("COPY (SELECT tenant FROM spend_receipts) TO STDOUT") as copy:
        assert set(copy.rows()) == {("acme",)}


def test_hidden_rows_show_neither_in_plans_nor_by_leaky_functions(
    attacker: psycopg.Connection[Any],
) -> None:
    """A cheap function of the attacker's would see every row before the policy, or its message."""
    attacker.execute("SET LOCAL search_path = pg_temp, remembrancer")
    attacker.execute(
        "CREATE FUNCTION pg_temp.leaks(text) RETURNS bool COST 0.0001 LANGUAGE plpgsql"
        " AS 'BEGIN RAISE WARNING ''seen %'', $1; RETURN true; END'"
    )
    seen = list[str]()
    attacker.add_notice_handler(lambda notice: seen.append(str(notice.message_primary)))

    attacker.execute("SELECT * FROM remembrancer.spend_receipts WHERE pg_temp.leaks(tenant)")
    plan = attacker.execute(
        "EXPLAIN (ANALYZE, FORMAT TEXT) SELECT * FROM remembrancer.spend_receipts"
        " WHERE tenant = 'other'"
    ).fetchall()

    assert set(seen) == {"seen acme"}
    assert "actual" in str(plan)
    assert "rows=1 " not in str(plan[0][0]).split("actual")[1]


def test_a_temporary_table_is_not_taken_for_a_ledger(bench: LedgerBench) -> None:
    """Names are looked up in our schema before the session's own."""
    with bench.database.write(tenant="acme", owner="ana") as connection:
        connection.execute("CREATE TEMPORARY TABLE spend_receipts (id int)")

        rows = connection.execute("SELECT count(*) FROM spend_receipts WHERE tenant = 'acme'")

        assert rows.fetchone() == (1,)


def test_another_tenants_reservation_id_reveals_nothing(bench: LedgerBench) -> None:
    """Keys begin with the tenant: the same id is free for everybody."""
    assert not bench.ana.admit(SECOND_ID).repeated


@pytest.mark.parametrize("deed", ["decide", "receipt", "days"])
def test_whoever_acts_for_one_tenant_can_not_name_another(bench: LedgerBench, deed: str) -> None:
    calls: dict[str, Any] = {
        "decide": lambda: bench.ledgers.decide("other", "ana", lambda held: held.ledger.version),
        "receipt": lambda: bench.ledgers.receipt("other", "ana", SECOND_ID),
        "days": lambda: bench.ledgers.days("other"),
    }

    with bench.database.acting_for("acme", "ana"), pytest.raises(InvalidInputError):
        calls[deed]()


def test_receipts_hold_no_text_and_no_vector(bench: LedgerBench) -> None:
    columns = bench.execute(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'spend_receipts'::regclass AND attnum > 0 AND NOT attisdropped"
    )

    texts = {name for name, kind in columns if kind not in {"uuid", "bigint", "integer"}}
    assert texts == {
        "tenant", "owner", "request_digest", "state", "day", "admitted_at", "unknown_reason",
        "kind", "deadline",
    }  # fmt: skip
    assert not {kind for _, kind in columns} & {"bytea", "vector", "json", "jsonb"}


def test_an_auditor_reads_everybodys_receipts_and_decides_nothing(bench: LedgerBench) -> None:
    with psycopg.connect(bench.fresh.auditor) as auditor:
        assert _tenants(auditor, "spend_receipts") == {"acme", "other"}

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            auditor.execute(
                "SELECT * FROM remembrancer.open_ledger('acme', 'ana', gen_random_uuid(), 0, NULL,"
                " '0', '0', '0')"
            )
