"""Whole stores audited: sound ones, and each way in which vault and projections can lie."""

import asyncio
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.application.house import BACKENDS, House, a_context, a_query, an_entry, open_house
from tests.composition import remote_world

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.application.audit.audit import Audit, unopened
from remembrancer.application.audit.finding import AuditReport, AuditScope
from remembrancer.application.audit.invariants import INVARIANTS
from remembrancer.contracts.loopback_provider import honest
from remembrancer.domain import ContextItem
from remembrancer.domain.errors import InvalidInputError, StoreError

ITEM = ContextItem(layer=0, id="rules", text="Be brief.")
GUARDS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'stored%'"
"""Triggers that keep the log: whoever tampers with it drops them, and puts them back."""


def _live(house: House) -> None:
    memory = house.memory
    ids = memory.remember_many([an_entry(f"invoice number {n}") for n in range(12)])
    memory.correct(ids[0], text="invoice corrected", reason="edited")
    memory.correct(ids[0], text="invoice corrected again", reason="It was wrong.")
    memory.build_pack("s", "plan", a_query(), a_context(), items=[ITEM], token_budget=10_000)
    memory.erase(ids[1], reason="asked")
    memory.build_pack("s", "plan", a_query(), a_context(), items=[ITEM], token_budget=5_000)
    memory.build_pack("t", "plan", a_query(), a_context(), items=[ITEM], token_budget=5_000)
    memory.erase_session("t", tenant="acme")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a store after a small life."""
    path = tmp_path_factory.mktemp("lived") / "memory.db"
    with open_house(path) as house:
        _live(house)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, lived: bytes) -> Path:
    path = tmp_path / "memory.db"
    path.write_bytes(lived)
    return path


def audited(path: Path, scope: AuditScope | None = None) -> AuditReport:
    try:
        with SqliteAuditSource.open(path) as source:
            return Audit(source=source, reader=FastStateReader())(scope)
    except StoreError as error:
        return unopened(str(path), error)


def _altered(path: Path, *statements: str) -> AuditReport:
    connection = apsw.Connection(str(path))
    guards: Any = connection.execute(GUARDS).fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in (*statements, *(guard for _, guard in guards)):
        connection.execute(statement)
    connection.close()
    return audited(path)


def _names(report: AuditReport) -> set[str]:
    assert {one.invariant for one in report.findings} <= {one.name for one in INVARIANTS}
    return {one.invariant for one in report.findings}


@pytest.mark.parametrize("spelt", ["", "{}", "[]", "no json", '{"provider": 1}'])
def test_damaged_name_of_a_vector_space_is_found(path: Path, spelt: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE vector_index SET embedding_tuple = ?", (spelt,))
    connection.close()

    report = audited(path)

    assert report.findings


# -- Sound stores ------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lived_in_memory_is_green(backend: str, tmp_path: Path) -> None:
    with open_house(tmp_path / "memory.db" if backend == "sqlite" else None) as house:
        _live(house)

        report = house.memory.audit()

    assert report.findings == ()
    assert report.counts["originals"] == 13
    assert report.counts["erased entries"] == 1
    assert report.counts["packs put together again"] >= 1


def test_a_memory_that_spends_is_green(tmp_path: Path) -> None:
    with remote_world.open_world(tmp_path, honest()) as world:
        world.admit()
        memory = world.open()
        memory.remember(remote_world.an_entry("invoice of a batch"))
        query = remote_world.a_query("which invoice")
        memory.prepare([query], remote_world.a_context(), **remote_world.WHO)

        report = memory.audit()

    assert report.findings == ()
    assert (report.counts["receipts"], report.counts["vectors"]) == (2, 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_session_that_goes_on_after_its_erasure_is_green(backend: str, tmp_path: Path) -> None:
    """What comes after is kept under a new key; what came before stays gone."""
    with open_house(tmp_path / "memory.db" if backend == "sqlite" else None) as house:
        memory = house.memory
        memory.remember(an_entry("invoice number one"))
        for budget in (10_000, 5_000):
            memory.build_pack(
                "s", "plan", a_query(), a_context(), items=[ITEM], token_budget=budget
            )
        memory.erase_session("s", tenant="acme")
        memory.build_pack("s", "plan", a_query(), a_context(), items=[ITEM], token_budget=10_000)

        report = memory.audit()

    assert report.findings == ()


def test_what_was_erased_is_noted_not_found(path: Path) -> None:
    report = audited(path)

    assert report.is_green
    assert any("couldn't be put together again" in note for note in report.notes)


def test_the_async_twin_audits_too(tmp_path: Path) -> None:
    async def audit() -> AuditReport:
        async with house.memory as memory:
            return await memory.aaudit()

    with open_house(tmp_path / "memory.db") as house:
        _live(house)

        assert asyncio.run(audit()).is_green


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    with open_house(tmp_path / "memory.db") as house:
        _live(house)
        house.memory.audit(progress=lambda done, total: told.append((done, total)))

    assert told[-1][0] == told[-1][1] > 0


@pytest.mark.parametrize("bad", [{"tenant": ""}, {"owner": "\n"}, {"since": "today"}])
def test_a_scope_out_of_bounds_is_refused(tmp_path: Path, bad: dict[str, str]) -> None:
    with open_house(tmp_path / "memory.db") as house, pytest.raises(InvalidInputError):
        house.memory.audit(**bad)  # type: ignore[arg-type]  # that is the point


# -- Vault, sessions and projections that lie --------------------------------

LIES = {
    "another text": (
        "originals-match",
        "UPDATE original SET text = text || '!' WHERE version = 3",
    ),
    "another label": (
        "originals-match",
        "UPDATE original SET sensitivity = 'public' WHERE version = 3",
    ),
    "another owner": ("originals-match", "UPDATE owned_scope SET owner = 'bob'"),
    "another digest": (
        "originals-match",
        "UPDATE original SET digest = randomblob(32) WHERE version = 2",
    ),
    "a text taken out": ("originals-match", "DELETE FROM original WHERE version = 3"),
    "a text put in": (
        "originals-match",
        (
            "INSERT INTO original SELECT NULL, randomblob(16), randomblob(16), 1, owned_scope,"
            " kind, sensitivity, recorded_at, superseded_at, tokens, token_counter, digest, salt,"
            " subjects, metadata, reason, text FROM original WHERE version = 3"
        ),
    ),
    "an erasure without an event": (
        "erased-by-an-event",
        "INSERT INTO erased_entry VALUES (randomblob(16), 'acme')",
    ),
    "an erasure forgotten": ("erased-by-an-event", "DELETE FROM erased_entry"),
    "other items": ("pack-recomputes", "UPDATE session_items SET items = x'5b5d'"),
    "another key": ("pack-recomputes", "UPDATE session_key SET key = randomblob(32)"),
    "a key of no selection": (
        "session-has-selection",
        (
            "INSERT INTO session_key (selection_id, tenant, owner, session, key)"
            " VALUES (randomblob(16), 'acme', 'ana', 'x', randomblob(32))"
        ),
    ),
    "a word taken out": (
        "words-are-the-fold",
        "DELETE FROM sparse_document WHERE number IN (SELECT min(number) FROM sparse_document)",
    ),
    "a word of nothing": (
        "words-are-the-fold",
        (
            "UPDATE sparse_document SET id = randomblob(16)"
            " WHERE number IN (SELECT min(number) FROM sparse_document)"
        ),
    ),
    "a vector of nothing": (
        "vectors-of-kept-versions",
        (
            "UPDATE vector_row_1 SET key = randomblob(16) WHERE id IN (SELECT max(id)"
            " FROM vector_row_1)"
        ),
    ),
    "a receipt of nothing": (
        "receipts-are-the-fold",
        (
            "INSERT INTO spend_receipts VALUES ('acme', 'ana', randomblob(16), 'query', 'settled',"
            " '2030-01-01', 9, 3, 7, NULL, 1, 2, 1, 9, 9, 'a')"
        ),
    ),
    "a copy of no ledger": (
        "snapshot-is-the-fold",
        "INSERT INTO ledger_snapshots VALUES ('acme', 'ana', 16, x'7b7d')",
    ),
    "an event taken out": (
        "positions-without-holes",
        "DELETE FROM stored_events WHERE notification_id = 2",
    ),
    "the end taken off": (
        "positions-without-holes",
        "DELETE FROM stored_events WHERE notification_id > 10",
    ),
    "an event altered": (
        "hash-chain",
        (
            "UPDATE stored_events SET state = CAST(replace(CAST(state AS TEXT), 'note', 'core')"
            " AS BLOB) WHERE notification_id = 3"
        ),
    ),
    "a newer release": ("store-is-whole", "PRAGMA user_version = 99"),
    "another program": ("store-is-whole", "PRAGMA application_id = 7"),
    "a table dropped": ("store-is-whole", "DROP TABLE spend_receipts"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_of_the_store_is_found(lie: str, path: Path) -> None:
    invariant, statements = LIES[lie]

    report = _altered(path, statements)

    assert invariant in _names(report)


def test_a_finding_about_the_vault_names_what_differs(path: Path) -> None:
    report = _altered(path, "UPDATE original SET kind = 'core' WHERE version = 2")

    [finding] = report.findings
    assert finding.about.endswith(", version 2")
    assert (finding.expected, finding.found) == ("kind note", "kind core")
    assert (finding.tenant, finding.owner) == ("acme", "ana")


def test_findings_hold_no_text(path: Path) -> None:
    report = _altered(
        path,
        "UPDATE original SET text = 'canarybird', salt = randomblob(32)",
        "UPDATE session_items SET items = CAST('[\"canarybird\"]' AS BLOB)",
    )

    assert report.findings
    assert "canarybird" not in repr(report)
    assert "invoice" not in repr(report)


# -- Scopes ------------------------------------------------------------------


def test_only_findings_of_the_owner_who_is_asked_for_are_told(path: Path) -> None:
    _altered(path, "UPDATE original SET kind = 'core' WHERE version = 2")

    assert audited(path, AuditScope(owner="ana")).findings_count == 1
    assert audited(path, AuditScope(owner="bob")).is_green
    assert audited(path, AuditScope(tenant="other")).is_green


def test_what_was_altered_is_told_whatever_time_it_says(path: Path) -> None:
    _altered(path, LIES["an event altered"][1])

    later = audited(path, AuditScope(since=datetime(2999, 1, 1, tzinfo=UTC)))

    assert "hash-chain" in _names(later)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM session_items WHERE number = 2",
        "DELETE FROM session_key",
    ],
    ids=["items of a later pack", "keys"],
)
def test_a_session_of_which_a_part_is_gone_is_found(path: Path, statement: str) -> None:
    """Erasing takes all of it at once."""
    assert _names(_altered(path, statement)) == {"session-erased-as-a-whole"}


def test_a_pack_after_its_session_was_erased_is_no_finding(path: Path) -> None:
    """It has a new key, under which only its own items are kept."""
    with open_house(path) as house:
        house.memory.erase_session("s", tenant="acme")
        house.memory.build_pack("s", "plan", a_query(), a_context(), items=[], token_budget=900)

    assert audited(path).findings == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE original SET text = 'left', salt = zeroblob(32) WHERE index_id IS NULL",
        "UPDATE session_key SET key = zeroblob(32) WHERE selection_id IS NULL",
        "UPDATE session_items SET items = x'00' WHERE selection_id IS NULL",
        (
            "INSERT INTO vector_outbox (index_number, entry_id, version, tenant, owner, vector)"
            " SELECT 1, entry_id, 1, tenant, 'ana', zeroblob(8) FROM erased_entry"
        ),
        "INSERT INTO vector_outbox (vector) VALUES (zeroblob(8))",
        "UPDATE vector_row_1 SET metadata = 'left' WHERE gone IS NOT NULL",
    ],
    ids=["text", "key", "items", "vector on its way", "vector", "metadata"],
)
def test_what_erasing_has_left_is_found(path: Path, statement: str) -> None:
    [finding] = _altered(path, statement).findings

    assert finding.expected.startswith("nothing of what was erased in ")


# -- Damage ------------------------------------------------------------------


def _damaged(data: bytes, seed: int) -> bytes:
    chance = random.Random(seed)  # noqa: S311 - a test's, not a secret
    damaged = bytearray(data)
    spot = chance.randrange(len(data))
    match seed % 4:
        case 0:
            del damaged[spot:]
        case 1:
            damaged[spot // 4096 * 4096 : spot // 4096 * 4096 + 4096] = bytes(4096)
        case 2:
            for _ in range(20):
                damaged[chance.randrange(len(data))] = chance.randrange(256)
        case _:
            damaged[spot : spot + 200] = chance.randbytes(200)
    return bytes(damaged)


@pytest.mark.parametrize("seed", range(80))
def test_damage_is_reported_and_never_raised(seed: int, path: Path, lived: bytes) -> None:
    path.write_bytes(_damaged(lived, seed))

    report = audited(path)

    assert report.is_green or _names(report)


@pytest.mark.parametrize("part", ["", "x" * 100, "SQLite format 3\0" + "x" * 5_000])
def test_what_is_no_store_is_a_finding(part: str, path: Path) -> None:
    path.write_bytes(part.encode())

    assert _names(audited(path)) == {"store-is-whole"}


def test_a_vault_newer_than_its_log_is_found(path: Path) -> None:
    """As after a backup of which one part was restored."""
    report = _altered(
        path,
        "DELETE FROM stored_events WHERE notification_id > 5",
        "UPDATE sqlite_sequence SET seq = 5 WHERE name = 'stored_events'",
    )

    assert {"originals-match", "words-are-the-fold", "session-has-selection"} <= _names(report)
