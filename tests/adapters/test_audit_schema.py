"""A file's schema is the one that our scripts make; what keeps the log is put back."""

from pathlib import Path

import apsw
import pytest
from tests.adapters.database_notes import note

from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.contracts.vector_indexes import SPACE

KEEPS_THE_LOG = "stored_events_are_not_changed"
TOOTHLESS = f"CREATE TRIGGER {KEEPS_THE_LOG} BEFORE UPDATE ON stored_events BEGIN SELECT 1; END"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Database.open(path) as database:
        note(database, "first")
        SqliteVectorIndexes(database=database).begin(SPACE)
    return path


def _found(path: Path, *statements: str) -> list[tuple[str, str]]:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    with SqliteAuditSource.open(path) as source:
        return [(fault.expected, fault.found) for fault in source.faults()]


def test_a_schema_of_ours_has_no_faults(path: Path) -> None:
    assert _found(path) == []


def test_statistics_and_vacuuming_are_no_faults(path: Path) -> None:
    assert _found(path, "ANALYZE", "VACUUM") == []


@pytest.mark.parametrize(
    "name",
    [
        *("stored_events_are_not_changed", "stored_events_are_not_removed"),
        *("stored_events_are_not_replaced", "tracking_only_moves_forward"),
        "tracking_is_not_removed",
    ],
)
def test_a_missing_trigger_is_a_fault(path: Path, name: str) -> None:
    """Also in a file that says it is of another release's scripts."""
    dropped = f"DROP TRIGGER {name}"

    assert _found(path, dropped) == [(f"trigger {name}", "none")]
    assert _found(path, "UPDATE schema_info SET scripts_sha256 = 'x'") == [
        (f"trigger {name}", "none")
    ]


def test_an_altered_trigger_is_a_fault(path: Path) -> None:
    found = _found(path, f"DROP TRIGGER {KEEPS_THE_LOG}", TOOTHLESS)

    assert found == [(f"trigger {KEEPS_THE_LOG} as our script makes it", "another")]


@pytest.mark.parametrize(
    ("kind", "name", "statement"),
    [
        ("table", "stash", "CREATE TABLE stash (text)"),
        ("table", "vector_row_99", "CREATE TABLE vector_row_99 (text)"),
        ("view", "all_of_it", "CREATE VIEW all_of_it AS SELECT text FROM original"),
        ("index", "texts", "CREATE INDEX texts ON original (text)"),
        (
            "trigger",
            "evil",
            "CREATE TRIGGER evil AFTER INSERT ON original BEGIN DELETE FROM tracking; END",
        ),
    ],
)
def test_what_no_script_of_ours_makes_is_a_fault(
    path: Path, kind: str, name: str, statement: str
) -> None:
    assert _found(path, statement) == [("what our scripts make", f"{kind} '{name}'")]


def test_what_keeps_the_log_is_put_back_where_it_is_opened_for_writing(path: Path) -> None:
    assert _found(path, f"DROP TRIGGER {KEEPS_THE_LOG}")

    with Database.open(path):
        pass

    assert _found(path) == []


def test_a_file_without_its_triggers_can_be_read(path: Path) -> None:
    _found(path, f"DROP TRIGGER {KEEPS_THE_LOG}")

    with Database.open(path, read_only=True) as database, database.read() as connection:
        count: int = connection.execute("SELECT count(*) FROM tracking").get

    assert count == 1
