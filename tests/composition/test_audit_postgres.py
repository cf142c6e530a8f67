"""`audit`, `audit seal` and `audit verify` over PostgreSQL, with the auditor's role alone."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from tests.adapters.postgres_server import OWNER, FreshDatabase, server
from tests.application.exported import exported, live, restored, store_of
from tests.application.house import House, a_context, a_query, open_house, place_in
from tests.composition.shell import Result, Shell

from remembrancer.contracts.clock import NOON, FixedClock

TOML = """
[store]
backend = "postgres"
reader_dsn_file = "auditor.dsn"
"""
PAST_TRIGGERS = "SET session_replication_role = replica; SET search_path = remembrancer"
_NUMBERS = count(1)


def _write_places(fresh: FreshDatabase, folder: Path) -> None:
    for name, dsn in (("app", fresh.app), ("auditor", fresh.auditor)):
        (folder / f"{name}.dsn").write_text(dsn)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshDatabase]:
    """Give a database after a life, to be copied."""
    folder = tmp_path_factory.mktemp("lived")
    fresh = server().fresh_database()
    _write_places(fresh, folder)
    with open_house(place_in(folder), clock=FixedClock(NOON)) as house:
        live(house)
        house.memory.build_pack("later", "plan", a_query(), a_context(), token_budget=900)
    yield fresh
    server().drop(fresh)


@pytest.fixture
def copy(lived: FreshDatabase, shell: Shell) -> Iterator[FreshDatabase]:
    """Give a copy of it, which is what the shell's settings name."""
    fresh = server().named(f"{lived.name}_{next(_NUMBERS)}")
    names = map(sql.Identifier, (fresh.name, lived.name, OWNER))
    server().run(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(*names))
    _name(fresh, shell)
    yield fresh
    server().drop(fresh)


def _name(fresh: FreshDatabase, shell: Shell) -> None:
    """Let the shell's settings name the auditor's role there, and nothing else."""
    (shell.folder / "remembrancer.toml").write_text(TOML)
    (shell.folder / "auditor.dsn").write_text(fresh.auditor)


def _tamper(fresh: FreshDatabase, *statements: str) -> None:
    with psycopg.connect(fresh.superuser) as connection:
        for statement in (PAST_TRIGGERS, *statements):
            connection.execute(statement)


def test_a_server_that_is_away_is_no_broken_log(shell: Shell) -> None:
    (shell.folder / "remembrancer.toml").write_text(TOML)
    (shell.folder / "auditor.dsn").write_text("host=127.0.0.1 port=1 dbname=x user=x password=x")

    plain, data = shell("audit", "--html", "page.html"), shell("audit", "--json")

    assert (plain.status, plain.out) == (1, "")
    assert plain.err.endswith("try again later\n")
    assert data.status == 1
    assert data.data["error"]["type"] == "StoreUnavailableError"
    assert not (shell.folder / "page.html").exists()


def _found(done: Result) -> set[str]:
    assert done.status == 1, done
    return {one["invariant"] for one in done.data["findings"]}


# -- Sound ---------------------------------------------------------------------


@pytest.mark.usefixtures("copy")
def test_a_lived_in_memory_is_green_to_the_auditors_role_alone(shell: Shell) -> None:
    done = shell("audit", "--json")

    assert (done.status, done.data["findings"]) == (0, [])
    assert {"receipts": 3, "originals": 6}.items() <= done.data["counts"].items()
    assert done.data["counts"]["packs put together again"] == 1
    assert done.data["store"].startswith("PostgreSQL database remembrancer_test_")


@pytest.mark.usefixtures("copy")
def test_the_summary_and_a_scope_are_told(shell: Shell) -> None:
    whole = shell("audit")
    part = shell("audit", "--tenant", "acme", "--owner", "ben", "--since", "2030-01-01")

    assert (whole.status, part.status) == (0, 0)
    assert "invariants hold" in whole.out
    assert "password" not in whole.out + whole.err


@pytest.mark.usefixtures("copy")
def test_a_page_is_written(shell: Shell) -> None:
    done = shell("audit", "--html", "report.html")

    assert done.status == 0
    assert "ben" in (shell.folder / "report.html").read_text()


def test_it_stays_green_from_sqlite_to_postgres_and_back(shell: Shell) -> None:
    folders = [shell.folder / name for name in ("first", "second", "third")]
    kinds = ("sqlite", "postgres", "sqlite")
    lines = None
    for kind, folder in zip(kinds, folders, strict=True):
        with store_of(kind, folder) as house:
            if lines is None:
                live(house)
            else:
                restored(house, lines)
                house.memory.reindex()
                house.memory.build_pack("s", "later", a_query(), a_context(), token_budget=900)
            lines = exported(house)
            done = _audited_in(shell, folder, kind)

            assert (done.status, done.data["findings"]) == (0, [])


def _audited_in(shell: Shell, folder: Path, kind: str) -> Result:
    if kind == "sqlite":
        return shell("audit", "--db", str(folder / "memory.db"), "--json")
    config = folder / "remembrancer.toml"
    config.write_text(TOML.replace("auditor.dsn", str(folder / "auditor.dsn")))
    return shell("audit", "--config", str(config), "--json")


def test_the_facade_audits_what_it_has_open(tmp_path: Path) -> None:
    with store_of("postgres", tmp_path) as house:
        live(house)

        assert house.memory.audit().findings == ()


# -- Altered, by somebody whom nothing stops -----------------------------------

LIES = {
    "a byte of a state": (
        "hash-chain",
        """UPDATE stored_events SET state = set_byte(state, 40, 88)
        WHERE position IN (SELECT min(position) FROM stored_events)""",
    ),
    "an event in the middle removed": (
        "hash-chain",
        "DELETE FROM stored_events WHERE originator_version = 1 AND topic LIKE '%admitted'",
    ),
    "the end of an entry's stream removed": (
        "erased-by-an-event",
        "DELETE FROM stored_events WHERE topic LIKE '%erased'",
    ),
    "a stream shown to another tenant": (
        "store-is-whole",
        "UPDATE stored_events SET tenant = 'evil' WHERE owner = 'ben'",
    ),
    "a stream shown to another owner": (
        "store-is-whole",
        "UPDATE stored_events SET owner = 'eve' WHERE owner = 'ben' AND originator_version = 1",
    ),
    "a receipt": (
        "receipts-are-the-fold",
        "UPDATE spend_receipts SET charged_quanta = 0 WHERE state = 'settled'",
    ),
    "a receipt removed": (
        "receipts-are-the-fold",
        "DELETE FROM spend_receipts WHERE state = 'pending'",
    ),
    "a text": (
        "originals-match",
        "UPDATE originals SET text = text || 'canarybird'::bytea WHERE version = 2",
    ),
    "a text that isn't one": (
        "originals-match",
        "UPDATE originals SET text = '\\xff00' WHERE version = 2",
    ),
    "a label": (
        "originals-match",
        "UPDATE originals SET sensitivity = 'public' WHERE version = 2",
    ),
    "a vector of what was erased": (
        "vectors-of-kept-versions",
        """UPDATE vectors SET id = (SELECT entry_id FROM erased_entries)
        WHERE id = (SELECT id FROM vectors LIMIT 1)""",
    ),
    "a vector shown to another tenant": (
        "store-is-whole",
        "UPDATE vectors SET tenant = 'evil' WHERE owner = 'ben'",
    ),
    "words of what was erased": (
        "words-are-the-fold",
        """UPDATE sparse_documents SET id = (SELECT entry_id FROM erased_entries)
        WHERE owner = 'ben'""",
    ),
    "another key": ("pack-recomputes", "UPDATE session_keys SET key = sha256(key)"),
    "a table dropped": ("store-is-whole", "DROP TABLE spend_receipts"),
    "a column dropped": ("store-is-whole", "ALTER TABLE originals DROP COLUMN salt"),
    "a newer release": ("store-is-whole", "UPDATE alembic_version SET version_num = '9999'"),
    "an older release": ("store-is-whole", "UPDATE alembic_version SET version_num = '0001'"),
    "no release at all": ("store-is-whole", "DELETE FROM alembic_version"),
    "row security let off": (
        "store-is-whole",
        "ALTER TABLE originals DISABLE ROW LEVEL SECURITY",
    ),
    "rows hidden from the auditor": ("store-is-whole", "DROP POLICY auditor ON originals"),
    "some rows hidden from the auditor": (
        "store-is-whole",
        """CREATE POLICY less ON originals AS RESTRICTIVE FOR SELECT TO remembrancer_auditor
        USING (owner <> 'ben')""",
    ),
    "nothing keeps events any more": (
        "store-is-whole",
        "ALTER TABLE stored_events DISABLE TRIGGER stored_events_are_not_changed",
    ),
    "positions given out again": (
        "store-is-whole",
        "SELECT setval('event_positions', 3, true)",
    ),
    "the log itself dropped": ("store-is-whole", "DROP TABLE stored_events"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_superuser_altered_is_found(lie: str, shell: Shell, copy: FreshDatabase) -> None:
    invariant, statement = LIES[lie]
    _tamper(copy, statement)

    done = shell("audit", "--json")

    assert invariant in _found(done)
    assert "canarybird" not in done.out
    assert "Traceback" not in done.err


# -- Seals ---------------------------------------------------------------------


@pytest.fixture
def sealed(copy: FreshDatabase, shell: Shell) -> FreshDatabase:
    assert shell("audit", "keygen", "--key", "key").status == 0
    assert shell("audit", "seal", "--key", "key", "--out", "seal.jsonl").status == 0
    return copy


def _verified(shell: Shell) -> Result:
    return shell("audit", "verify", "--seal", "seal.jsonl", "--public-key", "key.pub", "--json")


def test_a_log_that_grew_extends_its_seal(sealed: FreshDatabase, shell: Shell) -> None:
    _write_places(sealed, shell.folder)
    with open_house(place_in(shell.folder), clock=FixedClock(NOON)) as house:
        _grow(house)

    done = _verified(shell)

    assert (done.status, done.data["findings"]) == (0, [])


def _grow(house: House) -> None:
    house.memory.build_pack("s", str(uuid4()), a_query(), a_context(), token_budget=500)
    [entry_id] = house.memory.recall(a_query(limit=1), a_context()).entries
    house.memory.erase(entry_id.entry_id, reason="asked")


def test_a_lost_tail_is_found_by_the_seal_alone(sealed: FreshDatabase, shell: Shell) -> None:
    """What was last can be taken away without a trace in the log: here an owner's withdrawal."""
    _tamper(
        sealed,
        "DELETE FROM stored_events WHERE position IN (SELECT max(position) FROM stored_events)",
    )

    done = _verified(shell)

    assert shell("audit").status == 0
    assert _found(done) == {"extends-the-seal"}


# -- What can't be audited -----------------------------------------------------


def test_without_the_auditors_login_it_says_what_is_missing(shell: Shell) -> None:
    (shell.folder / "remembrancer.toml").write_text('[store]\nbackend = "postgres"\n')

    done = shell("audit")

    assert (done.status, "store.reader_dsn_variable" in done.err) == (2, True)


def test_a_role_that_may_write_is_refused(shell: Shell, copy: FreshDatabase) -> None:
    for dsn in (copy.app, copy.superuser, copy.owner):
        (shell.folder / "auditor.dsn").write_text(dsn)

        done = shell("audit")

        assert (done.status, "auditor's role" in done.err) == (2, True)


def test_a_role_that_sees_no_row_of_the_log_is_no_green_audit(
    shell: Shell, copy: FreshDatabase
) -> None:
    _tamper(copy, "DROP POLICY auditor ON stored_events")

    done = shell("audit", "--json")

    assert _found(done) == {"store-is-whole"}


def test_a_role_without_texts_audits_the_rest(shell: Shell, copy: FreshDatabase) -> None:
    _tamper(
        copy,
        "REVOKE SELECT ON originals FROM remembrancer_auditor",
        "REVOKE SELECT ON session_keys FROM remembrancer_auditor",
        "GRANT SELECT (index_id) ON originals TO remembrancer_auditor",
    )

    done = shell.json("audit")

    assert "not permitted to read: originals" in done["notes"]
    assert any("reading texts isn't permitted" in note for note in done["notes"])
    assert done["counts"]["receipts"] == 3


def test_a_server_that_is_away_is_an_error_and_no_finding_about_the_log(
    shell: Shell, copy: FreshDatabase
) -> None:
    (shell.folder / "auditor.dsn").write_text(f"{copy.auditor} port=1")

    done = shell("audit", "--json")

    assert (done.status, done.data["error"]["type"]) == (1, "StoreUnavailableError")


def test_a_database_that_is_gone_is_a_finding(shell: Shell, copy: FreshDatabase) -> None:
    (shell.folder / "auditor.dsn").write_text(f"{copy.auditor} dbname=there_is_none")

    done = shell("audit", "--json")

    assert _found(done) == {"store-is-whole"}


def test_an_empty_database_is_a_finding(shell: Shell) -> None:
    empty = server().empty_database()
    _name(empty, shell)

    done = shell("audit", "--json")

    server().drop(empty)
    assert [one["expected"] for one in done.data["findings"]][:1] == ["schema remembrancer"]
    assert done.status == 1
