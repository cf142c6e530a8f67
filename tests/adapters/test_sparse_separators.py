"""Nothing that FTS5 keeps to find its pages spells an erased word."""

import random
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

import pytest

from remembrancer.adapters.sqlite import sparse_index
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex
from remembrancer.application.ports.sparse_index import SparseDocument
from remembrancer.contracts.erasure import bytes_under
from remembrancer.domain.identity import EntryId

WORDS = 60
"""In a text; numbers that follow each other, so that only their last letters tell them apart."""


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "memory.db") as database:
        yield database


@pytest.mark.parametrize("seed", range(2))
def test_no_erased_word_is_left_whatever_came_and_went(
    database: Database, tmp_path: Path, seed: int
) -> None:
    gone, kept = workload(database, seed)

    assert database.scrub()

    left = bytes_under(tmp_path)
    assert len(gone) > 500
    assert [word for word in gone if word.encode() in left] == []
    assert_found(database, kept)


def test_a_word_by_which_a_page_is_found_is_forgotten(database: Database, tmp_path: Path) -> None:
    even = half_of_many_words_erased(database)

    assert database.scrub()

    left = bytes_under(tmp_path)
    assert [word for word in ODD if word.encode() in left] == []
    assert_found(database, {entry_id(2): even})


def test_the_same_words_stay_where_separators_do(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this, the tests here could be blind."""
    monkeypatch.setattr(sparse_index, "forget", lambda *_: None)
    half_of_many_words_erased(database)

    assert database.scrub()

    left = bytes_under(tmp_path)
    assert [word for word in ODD if word.encode() in left]


def test_a_word_longer_than_fts5_keeps_is_forgotten(database: Database, tmp_path: Path) -> None:
    index = SqliteSparseIndex(database=database)
    index.upsert_many(
        [document(1, "canary" * 20_000), document(2, "\N{CJK UNIFIED IDEOGRAPH-6F22}")]
    )

    index.delete(entry_id(1))

    assert database.scrub()
    assert b"canary" not in bytes_under(tmp_path)


# -- Helpers ---------------------------------------------------------------

ODD = [f"canary{number:06d}" for number in range(1, 4_000, 2)]
"""Among them the words that pages begin with."""


def half_of_many_words_erased(database: Database) -> list[str]:
    """Erase every second word, so that each page keeps some; return what is left."""
    even = [f"canary{number:06d}" for number in range(0, 4_000, 2)]
    index = SqliteSparseIndex(database=database)
    index.upsert_many([document(1, " ".join(ODD)), document(2, " ".join(even))])
    index.delete(entry_id(1))
    return even


def workload(database: Database, seed: int) -> tuple[list[str], dict[EntryId, list[str]]]:
    """Add and delete at random; return the words of what was deleted, and what is here."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
    index = SqliteSparseIndex(database=database)
    here: dict[EntryId, list[str]] = {}
    gone: list[str] = []
    number = 0
    for _ in range(18):
        if chance.random() < 0.5 or not here:
            documents = []
            for _ in range(chance.choice([1, 10, 20])):
                words = [f"canary{number + place:06d}" for place in range(WORDS)]
                number += WORDS
                documents.append(document(number, " ".join(words)))
                here[entry_id(number)] = words
            index.upsert_many(documents)
        else:
            some = chance.choice([1, 5, len(here) // 2, len(here)])
            with database.write():
                for id_ in chance.sample(sorted(here), min(len(here), some)):
                    index.delete(id_)
                    gone += here.pop(id_)
    return gone, here


def assert_found(database: Database, kept: dict[EntryId, list[str]]) -> None:
    database.connection().execute(
        "INSERT INTO sparse_words (sparse_words) VALUES ('integrity-check')"
    )
    index = SqliteSparseIndex(database=database)
    for id_, words in kept.items():
        assert [match.id for match in index.query(words[0], 5)] == [id_]
        assert [match.id for match in index.query(words[-1], 5)] == [id_]


def entry_id(number: int) -> EntryId:
    return EntryId(UUID(int=number))


def document(number: int, text: str) -> SparseDocument:
    return SparseDocument(entry_id(number), text, {"tenant": "acme", "owner": "ana"})
