"""What SQLite leaves in the unused part of a page is overwritten, and doesn't come back."""

import random
import threading
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

import apsw
import pytest
from tests.adapters.power_cut import Disk, recording

from remembrancer.adapters.sqlite import scrubbing
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.session_vault import SqliteSessionVault
from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex
from remembrancer.adapters.sqlite.vector_indexes import SqliteVectorIndexes
from remembrancer.application.ports.sparse_index import SparseDocument
from remembrancer.application.ports.vector_store import VectorPoint
from remembrancer.contracts.erasure import bytes_under
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId

CANARY = b"canary in the coal mine"
SPACE = EmbeddingTuple(
    provider="test", model="one", model_revision="1", dimensions=4, input_preparation="none@1"
)


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        fill(database, 0)
        assert database.scrub()
        yield database


@pytest.mark.parametrize(
    "table", ["sparse_words_data", "sparse_words_idx", "vector_1_vector_chunks00"]
)
def test_a_stale_copy_in_a_page_of_a_virtual_table_is_overwritten(
    database: Database, tmp_path: Path, table: str
) -> None:
    leave_behind(database, table)
    before = bytes_under(tmp_path)

    assert database.scrub()

    assert CANARY in before
    assert CANARY not in bytes_under(tmp_path)


def test_a_page_that_another_connection_remembers_does_not_bring_it_back(
    database: Database, tmp_path: Path
) -> None:
    leave_behind(database, "sparse_words_data")
    with Database.open(tmp_path / "memory.db") as other:
        fill(other, 1)  # It has the page in its memory now, and the canary in the log.
        assert CANARY in bytes_under(tmp_path)

        assert database.scrub()
        fill(other, 2)
        fill(database, 3)

        assert CANARY not in bytes_under(tmp_path)


def test_rows_are_as_they_were(database: Database) -> None:
    connection = database.connection()
    for number in range(1, 40):
        fill(database, number)
        if number % 3 == 0:
            SqliteSparseIndex(database=database).delete(entry_id(number - 1))
    before = connection.execute("SELECT * FROM sparse_words_data").fetchall()

    assert database.scrub()

    assert connection.execute("SELECT * FROM sparse_words_data").fetchall() == before
    assert connection.pragma("integrity_check") == "ok"
    connection.execute("INSERT INTO sparse_words (sparse_words) VALUES ('integrity-check')")


def test_a_page_that_is_not_what_it_should_be_is_left_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrubbing, "_ROOTS", "SELECT 100000")

    with pytest.raises(StoreCorruptError):
        database.scrub()

    assert database.connection().pragma("integrity_check") == "ok"
    fill(database, 1)


def test_threads_may_write_while_others_scrub(database: Database) -> None:
    done: list[bool] = []

    def work(thread: int) -> None:
        for number in range(10):
            fill(database, 100 * thread + number)
            done.append(database.scrub())

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(done) == 40
    assert database.scrub()
    assert SqliteSparseIndex(database=database).count() == 41
    assert database.connection().pragma("integrity_check") == "ok"


def test_a_power_cut_does_not_bring_it_back(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - repeatable on purpose
    disk = Disk()
    with recording() as file_system, Database.open(tmp_path / "memory.db") as database:
        sessions = SqliteSessionVault(database=database)
        sessions.keep_key(UUID(int=1), tenant="acme", owner="ana", session="s1", key=bytes(32))
        sessions.keep_items(UUID(int=1), number=1, items=CANARY)
        sessions.erase_session(tenant="acme", session="s1")
        assert database.scrub()
        for operation in file_system.operations:
            disk.apply(operation)

    left = [content for files in disk.after_a_cut(chance) for content in files.values()]

    assert any(left)
    assert not any(CANARY in content for content in left)


# -- Helpers ---------------------------------------------------------------


def entry_id(number: int) -> EntryId:
    return EntryId(UUID(int=number))


def fill(database: Database, number: int) -> None:
    id_ = entry_id(number)
    words = " ".join(f"word{number * 7 + place}" for place in range(20))
    SqliteSparseIndex(database=database).upsert_many(
        [SparseDocument(id_, words, {"tenant": "acme", "owner": "ana"})]
    )
    indexes = SqliteVectorIndexes(database=database)
    with database.write():
        index = indexes.active() or indexes.activate(indexes.begin(SPACE))
        indexes.store(index).upsert_many([VectorPoint(id_, [1.0, 2.0, 3.0, number + 1.0], {})])


def leave_behind(database: Database, table: str) -> None:
    """Write a canary into the unused part of a table's first page, as a moved row would."""
    root: int = (
        database.connection()
        .execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
        .get
    )
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
    file = apsw.VFSFile("", str(database.path), flags)
    page = file.xRead(4096, (root - 1) * 4096)
    content = int.from_bytes(page[5:7], "big")
    file.xWrite(CANARY, (root - 1) * 4096 + content - len(CANARY))
    file.xClose()
    database.connection().pragma("shrink_memory")  # As if SQLite had written it.
