"""Word search in PostgreSQL: its contract, beside the other adapters, and whose words it sees."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.postgres_named import ClearingTransactions, emptied
from tests.adapters.postgres_named_indexes import NamedSparseIndex
from typing_extensions import override

from remembrancer.adapters.memory.sparse_index import MemorySparseIndex
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.sparse_index import PostgresSparseIndex
from remembrancer.application.ports.sparse_index import SparseIndex
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.sparse_index import SparseIndexContract
from remembrancer.contracts.sparse_index_texts import ANA, BEN, document, entry_id
from remembrancer.domain.errors import InvalidInputError

WORDS = [
    "zebra",
    "lions",
    "running",
    "run",
    "the",
    "pre-edit",
    "東京",
    "東",
    "🚀",
    "a=>b",
    "=>",
    "é",
]
LABELS = [
    {**ANA, "kind": "note"},
    {**ANA, "subject:x": "1"},
    {**ANA, "scope": "other", "kind": "rule"},
]
FILTERS = [
    {"owner": ("ana", "ben")},
    {"tenant": "acme", "owner": "ana"},
    {"subject:x": "1"},
    {"kind": ("note", "rule"), "scope": "project/alpha"},
]


class TestPostgresSparseIndex(SparseIndexContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[SparseIndex, Transactions]]:
        with (
            emptied() as fresh,
            Database.open(fresh.app, reader_dsn=fresh.auditor) as database,
        ):
            transactions = ClearingTransactions(database=database, fresh=fresh, folder=folder)
            yield NamedSparseIndex(database), transactions


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with (
        emptied() as fresh,
        Database.open(fresh.app, reader_dsn=fresh.auditor) as database,
    ):
        yield database


@pytest.fixture
def index(database: Database) -> Iterator[PostgresSparseIndex]:
    index = PostgresSparseIndex(database=database)
    yield index
    with database.over_all_tenants():
        index.clear()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from(LABELS)),
        max_size=12,
    ),
    question=st.lists(st.sampled_from(WORDS), max_size=4),
    top_k=st.integers(min_value=1, max_value=13),
    wanted=st.sampled_from(FILTERS),
)
def test_scores_are_those_of_other_adapters(
    database: Database,
    index: PostgresSparseIndex,
    texts: list[tuple[list[str], dict[str, str]]],
    question: list[str],
    top_k: int,
    wanted: dict[str, str | tuple[str, ...]],
) -> None:
    """To the last step, where one owner has it all; see adr/0027 for the mean length of others."""
    documents = [
        document(number, " ".join(words), labels) for number, (words, labels) in enumerate(texts)
    ]
    other = MemorySparseIndex(transactions=MemoryTransactions())
    other.upsert_many(documents)
    with database.acting_for("acme"):
        index.clear()
        index.upsert_many(documents)

        answer = index.query(" ".join(question), top_k, wanted)

    assert answer == other.query(" ".join(question), top_k, wanted)


def test_other_owners_texts_change_nothing_in_a_score(
    database: Database, index: PostgresSparseIndex
) -> None:
    """Not even by their length, which no other adapter promises."""
    index.upsert_many([document(1, "zebra one two"), document(2, "lion one")])
    with database.acting_for("acme", "ana"):
        before = index.query("zebra lion", 10)
    index.upsert_many([document(number, "zebra " * 50, BEN) for number in range(10, 20)])

    with database.acting_for("acme", "ana"):
        after = index.query("zebra lion", 10)

    assert after == before


def test_nobody_named_is_refused(index: PostgresSparseIndex) -> None:
    for call in (
        lambda: index.query("zebra", 5),
        lambda: index.query("zebra", 5, {"owner": "ana"}),
        lambda: index.delete(entry_id(1)),
        lambda: index.upsert_many([document(1, "zebra", {})]),
        index.count,
        index.clear,
    ):
        with pytest.raises(InvalidInputError, match="name the tenant"):
            call()


def test_a_filter_names_the_tenant_by_itself(index: PostgresSparseIndex) -> None:
    index.upsert_many([document(1, "zebra"), document(2, "zebra", {**ANA, "tenant": "other"})])

    found = index.query("zebra", 5, {"tenant": ("acme",), "owner": ("ana", "ben")})

    assert [match.id for match in found] == [entry_id(1)]


def test_an_owners_block_finds_no_others_words(
    database: Database, index: PostgresSparseIndex
) -> None:
    index.upsert_many([document(1, "zebra =>"), document(2, "zebra =>", BEN)])

    with database.acting_for("acme", "ana"):
        assert [match.id for match in index.query("zebra", 5)] == [entry_id(1)]
        assert [match.id for match in index.query("=>", 5)] == [entry_id(1)]
        assert index.query("zebra", 5, {"owner": "nobody"} | {"owner": ("ben", "cem")}) == []
        assert index.count() == 1


def test_rebuilding_sees_what_it_has_written(
    database: Database, index: PostgresSparseIndex
) -> None:
    documents = [document(1, "zebra"), document(2, "lion", BEN)]
    index.upsert_many(documents)

    with database.over_all_tenants(), database.begin(alone=True):
        index.clear()
        emptied = index.count()
        index.upsert_many(documents[:1])
        filled = index.count()

    assert (emptied, filled) == (0, 1)


def test_no_posting_is_left_of_what_is_deleted() -> None:
    with emptied() as fresh, Database.open(fresh.app) as database:
        index = PostgresSparseIndex(database=database)
        texts = ["running runs " * 300, "x" * 5_000 + " pre-edit 東京 🚀", "the \0 end"]
        index.upsert_many([document(number, text) for number, text in enumerate(texts)])

        with database.acting_for("acme"):
            for number in range(len(texts)):
                index.delete(entry_id(number))

        with psycopg.connect(fresh.superuser) as connection:
            left = connection.execute("SELECT count(*) FROM remembrancer.sparse_postings")
            assert left.fetchone() == (0,)
