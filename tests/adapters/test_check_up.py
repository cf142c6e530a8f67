"""What SQLite itself says of a file: sound, damaged, or too long to look at unasked."""

from pathlib import Path

import apsw
import pytest
from tests.adapters.database_notes import note

from remembrancer.adapters.sqlite import check_up as module
from remembrancer.adapters.sqlite.check_up import check_up
from remembrancer.adapters.sqlite.database import Database

CANARY = "canary in the coal mine"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Database.open(path) as database:
        for number in range(400):
            note(database, f"{CANARY} {number} " * 4)
    return path


def _overwrite(path: Path, table: str) -> None:
    """Destroy the pages below a table's first one, as a failing disk would."""
    connection = apsw.Connection(str(path))
    places = connection.execute(
        "SELECT pgoffset FROM dbstat WHERE name = ? AND pagetype = 'leaf' LIMIT 5", (table,)
    ).fetchall()
    connection.close()
    with path.open("r+b") as file:
        for (place,) in places:
            file.seek(int(str(place)))
            file.write(b"\xa5" * 4096)


def test_a_sound_file_is_told_with_its_size(path: Path) -> None:
    with Database.open(path) as database:
        [(what, ok, found, advice)] = check_up(database)

    assert (what, ok) == ("file", True)
    assert found.startswith(f"SQLite finds no damage in {path.stat().st_size / 1e6:,.1f} MB")
    assert "`remembrancer audit`" in found
    assert not advice


@pytest.mark.parametrize("deep", [False, True])
def test_damage_is_found_and_nothing_of_the_content_is_told(path: Path, *, deep: bool) -> None:
    _overwrite(path, "tracking")
    with Database.open(path) as database:
        [(_, ok, found, advice)] = check_up(database, deep=deep)

    assert not ok
    assert found.startswith("damaged: ")
    assert "canary" not in found
    assert "restore a backup" in advice


def test_an_index_of_something_else_is_found_by_a_deep_look(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(
        "CREATE TABLE thing (name, other); INSERT INTO thing VALUES (1, 2), (3, 4);"
        "CREATE INDEX thing_name ON thing (other);"
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = replace(sql, '(other)', '(name)')"
    )
    connection.close()
    with Database.open(path) as database:
        looks = {deep: check_up(database, deep=deep) for deep in (False, True)}

    assert {deep: ok for deep, [(_, ok, _, _)] in looks.items()} == {False: True, True: False}
    assert "missing from index thing_name" in looks[True][0][2]


def test_a_very_long_file_is_looked_at_only_where_that_is_asked_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECKED_BYTES_MAX", 4096)
    with Database.open(path) as database:
        [unasked], [asked] = check_up(database), check_up(database, deep=True)

    assert unasked[1]
    assert unasked[2].startswith("not looked at")
    assert "doctor --deep" in unasked[3]
    assert asked[2].startswith("SQLite finds no damage")


def test_a_file_that_may_only_be_read_is_looked_at_too(path: Path) -> None:
    with Database.open(path, read_only=True) as database:
        [(_, ok, found, _)] = check_up(database)

    assert (ok, found[:6]) == (True, "SQLite")
