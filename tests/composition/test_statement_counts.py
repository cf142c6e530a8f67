"""How many SQL statements the common calls run: a look-up per entry would show here first."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.application.house import House, a_context, a_query, an_entry, open_house, replay_of

from remembrancer.domain import ContextItem

MANY = 50


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    with open_house(tmp_path / "memory.db") as house:
        house.memory.remember_many([an_entry(f"invoice number {n}") for n in range(MANY)])
        yield house


@contextmanager
def _traced(house: House) -> Generator[list[str]]:
    """Collect the statements that this thread's connection runs; of triggers and FTS5 none."""
    parts: Any = house.store.transactions
    connection: apsw.Connection = parts._database.connection()
    statements: list[str] = []

    def trace(_: apsw.Cursor, sql: str, __: object) -> bool:
        statements.append(sql)
        return True

    connection.exec_trace = trace
    yield statements
    connection.exec_trace = None


def _counted(house: House, work: Callable[[], object]) -> int:
    work()  # What is learnt once, such as which owners there are, doesn't count.
    with _traced(house) as statements:
        work()
    return len(statements)


def test_remembering_runs_few_statements_and_one_durable_transaction(house: House) -> None:
    house.memory.remember(an_entry())

    with _traced(house) as statements:
        house.memory.remember(an_entry())

    assert len(statements) <= 25
    assert sum(one == "BEGIN IMMEDIATE" for one in statements) == 1


def test_remembering_many_reads_next_to_nothing_for_each(house: House) -> None:
    few = _counted(house, lambda: house.memory.remember_many([an_entry()] * 10))
    many = _counted(house, lambda: house.memory.remember_many([an_entry()] * 110))

    # A head and an event, an original, a document with text and words, a number and a vector.
    assert (many - few) / 100 <= 9


def test_recall_asks_the_vault_once_for_all_candidates(house: House) -> None:
    query = a_query("invoice number 7", limit=10)

    with _traced(house) as statements:
        house.memory.recall(query, a_context())

    assert sum("kept_original" in one for one in statements) == 1
    assert sum(one == "BEGIN" for one in statements) == 2  # Which index is active; the answer.


def test_replay_reads_each_text_once_and_in_one_snapshot(house: House) -> None:
    house.memory.build_pack(
        "session-1",
        "plan",
        a_query("invoice number 7", limit=10),
        a_context(),
        items=[ContextItem(layer=0, id="rules", text="Be brief.", required=True)],
        token_budget=4_000,
    )

    with _traced(house) as statements:
        house.memory.replay("session-1", "plan", **replay_of())

    assert len(statements) <= 6
    assert sum("kept_original" in one for one in statements) == 1
