"""A damaged file: a right answer or a typed error, never another one, and never another text.

What stands in the file is altered where it lies, as a failing disk or a clumsy hand would.
"""

import random
import re
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.application.house import House, a_context, a_query, an_entry, open_house, replay_of

from remembrancer.composition import Remembrancer
from remembrancer.domain import ContextItem, RecallKind
from remembrancer.domain.errors import (
    MalformedRecordError,
    RecordError,
    RemembrancerError,
    StoreCorruptError,
)

ENTRIES = 300
ITEM = ContextItem(layer=0, id="rules", text="Be brief.")
QUERY = a_query(limit=20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with open_house(path) as house:
        ids = house.memory.remember_many(
            [an_entry(f"invoice canary{number}", subjects=("Bob",)) for number in range(ENTRIES)]
        )
        house.memory.correct(ids[0], text="invoice corrected", reason="edited")
        house.memory.build_pack(
            "s", "plan", QUERY, a_context(), items=[ITEM], token_budget=100_000
        )
    return path


def _alter(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def _without_triggers(path: Path) -> None:
    connection = apsw.Connection(str(path))
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'stored_events'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.close()


USES: dict[str, Callable[[Remembrancer], Any]] = {
    "recall": lambda m: m.recall(QUERY, a_context()),
    "recall everything": lambda m: m.recall(a_query(limit=1_000), a_context()),
    "recall as of": lambda m: m.recall(
        a_query(kind=RecallKind.HISTORICAL, as_of=datetime(2100, 1, 1, tzinfo=UTC)), a_context()
    ),
    "recall people": lambda m: m.recall(
        a_query(kind=RecallKind.PEOPLE, subjects=("Bob",)), a_context()
    ),
    "recall core": lambda m: m.recall(a_query(kind=RecallKind.CORE), a_context()),
    "select": lambda m: m.select("s", "another", QUERY, a_context()),
    "replay": lambda m: m.replay("s", "plan", **replay_of()),
    "status": lambda m: m.status(),
    "remember": lambda m: m.remember(an_entry("invoice, one more")),
    "check up": lambda m: m.check_up(),
    "reindex": lambda m: m.reindex(words=True),
}


def _used(path: Path) -> Iterator[tuple[str, Any]]:
    """Use the memory in every way, each on its own; tell what each gave."""
    for name, use in USES.items():
        try:
            with open_house(path) as house:
                yield name, use(house.memory)
        except RemembrancerError as error:
            told = "".join(traceback.format_exception(error)) + repr(vars(error))
            assert not re.search(r"canary\d|Be brief", told)
            yield name, error


# -- Anywhere ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_whatever_byte_is_altered(path: Path, seed: int) -> None:
    with open_house(path) as house:
        texts = {one.entry_id: one.text for one in _everything(house).entries}
        packed = house.memory.replay("s", "plan", **replay_of()).text
    whole = bytearray(path.read_bytes())
    chance = random.Random(seed)  # noqa: S311  # not for secrets
    for _ in range(40):
        at = chance.randrange(len(whole))
        whole[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(1, 9))
    path.write_bytes(whole)

    for name, given in _used(path):
        if name == "recall everything" and not isinstance(given, Exception):
            assert {one.entry_id: one.text for one in given.entries}.items() <= texts.items()
        if name == "replay" and not isinstance(given, Exception):
            assert given.text == packed or given.differences


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_wherever_it_is_cut(path: Path, share: float) -> None:
    with open_house(path) as house:
        packed = house.memory.replay("s", "plan", **replay_of()).text
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])

    for name, given in _used(path):
        if name == "replay" and not isinstance(given, Exception):
            assert given.text == packed


# -- What a digest can tell ----------------------------------------------------


def test_another_text_than_was_kept_is_never_shown(path: Path) -> None:
    _alter(path, "UPDATE original SET text = replace(text, 'invoice', 'invoicf')")

    given = dict(_used(path))

    for name in ("recall", "recall everything", "recall as of", "recall people", "select"):
        assert isinstance(given[name], StoreCorruptError), name
    assert {one.reason for one in given["replay"].differences} == {"altered"}
    assert "invoicf" not in given["replay"].text


def test_an_event_altered_in_place_is_malformed(path: Path) -> None:
    _without_triggers(path)
    altered = "CAST(replace(CAST(state AS TEXT), 'plan', 'plam') AS BLOB)"
    _alter(path, f"UPDATE stored_events SET state = {altered}")  # noqa: S608  # ours

    with open_house(path) as house, pytest.raises(MalformedRecordError):
        house.memory.replay("s", "plan", **replay_of())


def test_a_row_with_a_foreign_topic_is_refused(path: Path) -> None:
    _without_triggers(path)
    _alter(path, "UPDATE stored_events SET topic = 'os:system'")

    given = dict(_used(path))

    for name in ("replay", "reindex"):
        assert isinstance(given[name], RecordError), name


# -- What the indexes hold -----------------------------------------------------

DAMAGES = {
    "metadata isn't JSON": "UPDATE vector_row_1 SET metadata = '{\"canary1'",
    "metadata is a list": "UPDATE vector_row_1 SET metadata = '[]'",
    "metadata is gone": "UPDATE vector_row_1 SET metadata = NULL",
    "metadata isn't text": "UPDATE vector_row_1 SET metadata = CAST(x'636166e9' AS TEXT)",
    "keys are gone": "UPDATE vector_row_1 SET key = NULL",
    "keys are short": "UPDATE vector_row_1 SET key = substr(key, 2)",
    "vectors are zero": "UPDATE vector_1_vector_chunks00 SET vectors = zeroblob(length(vectors))",
    "vectors aren't numbers": (
        "UPDATE vector_1_vector_chunks00"
        " SET vectors = unhex(replace(hex(zeroblob(length(vectors) / 4)), '00', 'FFFFFFFF'))"
    ),
    "vectors are short": "UPDATE vector_1_vector_chunks00 SET vectors = x'00'",
    "vectors are missing": "DELETE FROM vector_1_vector_chunks00",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_vector_index_says_so_and_is_made_anew(path: Path, damage: str) -> None:
    _alter(path, damage)

    with open_house(path) as house:
        for question in (QUERY, a_query(limit=1_000)):
            with pytest.raises(StoreCorruptError):
                house.memory.recall(question, a_context())
        house.memory.reindex()

        assert len(_everything(house).entries) == ENTRIES


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE original SET text = CAST(x'636166e9' AS TEXT)",
        "UPDATE original SET metadata = CAST(x'636166e9' AS TEXT)",
        "UPDATE original SET subjects = '[\"canary1'",
        "UPDATE original SET salt = x'00'",
        "UPDATE original SET sensitivity = 'harmless'",
        "UPDATE original SET recorded_at = 9223372036854775806",
    ],
)
def test_a_damaged_original_is_a_typed_error_that_holds_nothing_of_it(
    path: Path, damage: str
) -> None:
    _alter(path, damage)

    given = dict(_used(path))

    assert isinstance(given["recall"], StoreCorruptError)
    assert isinstance(given["replay"], StoreCorruptError)


def _everything(house: House) -> Any:
    return house.memory.recall(a_query(limit=1_000), a_context())


# -- What was changed by hand --------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        ("DROP VIEW kept_original", "DROP TABLE original"),
        ("DROP VIEW kept_original", "ALTER TABLE original DROP COLUMN reason"),
        ("DROP TABLE stored_events",),
        ("DROP TABLE sparse_text",),
        ("DROP TABLE owned_scope",),
        ("DROP TABLE vector_row_1",),
        ("DROP TABLE session_key",),
        ("PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = 'CREATE TABLE'"),
        (
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_schema SET sql = replace(sql, '=cosine', '=bosine')",
        ),
    ],
    ids=lambda changes: changes[-1],
)
def test_a_missing_part_is_a_typed_error(path: Path, changes: tuple[str, ...]) -> None:
    _alter(path, "PRAGMA foreign_keys = OFF", *changes)

    given = [one for _, one in _used(path)]

    assert any(isinstance(one, RemembrancerError) for one in given)
