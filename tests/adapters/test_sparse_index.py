"""The sparse index adapters: their contract, against each other, and what only a file can do."""

import random
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from remembrancer.adapters.memory.sparse_index import MemorySparseIndex
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.sparse_index import SqliteSparseIndex
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.application.ports.sparse_index import SparseDocument, SparseIndex
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.sparse_index import SparseIndexContract
from remembrancer.contracts.sparse_index_texts import ANA, BEN, document, entry_id
from remembrancer.domain.identity import EntryId

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
LABELS = [ANA, BEN, {**ANA, "subject:x": "1"}, {"tenant": "other", "owner": "cem"}, {}]
FILTERS = [None, {"owner": ("ana", "ben")}, {"tenant": "acme", "owner": "ana"}, {"subject:x": "1"}]


class TestMemorySparseIndex(SparseIndexContract):
    @override
    def opened(self, folder: Path) -> AbstractContextManager[tuple[SparseIndex, Transactions]]:
        transactions = MemoryTransactions()
        return nullcontext((MemorySparseIndex(transactions=transactions), transactions))


class TestSqliteSparseIndex(SparseIndexContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[tuple[SparseIndex, Transactions]]:
        with Database.open(folder / "memory.db") as database:
            yield SqliteSparseIndex(database=database), SqliteTransactions(database=database)

    def test_what_was_stored_is_found_after_opening_again(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as (index, _):
            index.upsert_many([document(1, "zebra"), document(2, "lion", BEN)])
            before = index.query("zebra lion", 10)

        with self.opened(tmp_path) as (index, _):
            after = index.query("zebra lion", 10)

        assert after == before

    def test_another_connection_sees_a_committed_write(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as (writer, _), self.opened(tmp_path) as (reader, _):
            reader.upsert_many([document(1, "zebra")])
            writer.clear()

            writer.upsert_many([document(2, "zebra")])

            assert [match.id for match in reader.query("zebra", 10)] == [entry_id(2)]

    def test_all_words_are_overwritten_in_whatever_order_they_came_and_went(
        self, tmp_path: Path
    ) -> None:
        chance = random.Random(8)  # noqa: S311  # Not a secret: a workload.
        with self.opened(tmp_path) as (index, transactions):
            live: dict[EntryId, list[str]] = {}
            gone: list[str] = []
            for _ in range(60):
                batch = [_canaries(chance) for _ in range(chance.choice([1, 1, 1, 5, 40]))]
                index.upsert_many([one for one, _ in batch])
                live.update((one.id, canaries) for one, canaries in batch)
                for one in chance.sample(sorted(live), min(len(live), chance.choice([0, 1, 20]))):
                    index.delete(one)
                    gone += live.pop(one)

            scrubbed = transactions.scrub()

            # FTS5 stores words without the beginning that they share with the word before.
            left = bytes_under(tmp_path)
            assert scrubbed
            assert len(gone) > 300
            assert [canary for canary in gone if canary[6:].encode() in left] == []


@pytest.fixture(scope="module")
def adapters(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[SparseIndex, SparseIndex]]:
    with Database.open(tmp_path_factory.mktemp("sparse") / "memory.db") as database:
        yield (
            SqliteSparseIndex(database=database),
            MemorySparseIndex(transactions=MemoryTransactions()),
        )


@settings(max_examples=60)
@given(
    texts=st.lists(
        st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from(LABELS)),
        max_size=12,
    ),
    question=st.lists(st.sampled_from(WORDS), max_size=4),
    top_k=st.integers(min_value=1, max_value=13),
    wanted=st.sampled_from(FILTERS),
)
def test_both_adapters_give_the_same_answer(
    adapters: tuple[SparseIndex, SparseIndex],
    texts: list[tuple[list[str], dict[str, str]]],
    question: list[str],
    top_k: int,
    wanted: dict[str, str | tuple[str, ...]] | None,
) -> None:
    documents = [
        document(number, " ".join(words), labels) for number, (words, labels) in enumerate(texts)
    ]
    for adapter in adapters:
        adapter.clear()
        adapter.upsert_many(documents)

    answers = [adapter.query(" ".join(question), top_k, wanted) for adapter in adapters]

    assert answers[0] == answers[1]


def _canaries(chance: random.Random) -> tuple[SparseDocument, list[str]]:
    """Return a document, and words that stand in no other."""
    canaries = ["zq" + "".join(chance.choices("bcdfghjkmnp", k=16)) for _ in range(3)]
    common = [f"w{chance.randrange(3_000):04}" for _ in range(chance.choice([3, 60, 300]))]
    labels = {**ANA, "owner": chance.choice("abcd"), f"subject:{canaries[0]}": canaries[1]}
    one = EntryId(UUID(int=chance.getrandbits(128), version=4))
    return SparseDocument(one, " ".join([*common, *canaries]), labels), canaries
