"""What every sparse index promises.

Enrol an adapter by subclassing :class:`SparseIndexContract`::

    class TestMySparseIndex(SparseIndexContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[tuple[SparseIndex, Transactions]]:
            with MyStore.open(folder) as store:
                yield MySparseIndex(store), MyTransactions(store)

Words meet by their Porter stems, in which libraries differ a little; no text here tells those
differences apart.
"""

from pathlib import Path

import pytest

from remembrancer.application.ports.sparse_index import SparseIndex
from remembrancer.application.ports.transactions import Transactions
from remembrancer.application.ports.vector_store import Filter
from remembrancer.contracts.erasure import bytes_under
from remembrancer.contracts.rollback import rolled_back
from remembrancer.contracts.sparse_index_texts import (
    ANA,
    BEN,
    SparseTextsContract,
    document,
    entry_id,
)
from remembrancer.domain.bm25 import inverse_document_frequency, term_weight
from remembrancer.domain.search_text import parsed_question


class SparseIndexContract(SparseTextsContract):
    """Subclass, name the subclass ``Test...``, and say how to open the adapter."""

    # -- Ranking -----------------------------------------------------------

    def test_any_of_the_words_finds(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "red apples"), document(2, "green pears")])

        found = index.query("apples pears plums", 10)

        assert {match.id for match in found} == {entry_id(1), entry_id(2)}

    def test_scores_are_bm25(self, index: SparseIndex) -> None:
        index.upsert_many(
            [
                document(1, "zebra zebra lion"),
                document(2, "zebra"),
                document(3, "lion cat dog ant"),
            ]
        )

        found = index.query("zebra", 10)

        weight = inverse_document_frequency(documents=3, holding=2)
        expected = [
            weight * term_weight(occurrences=occurrences, length=length, mean_length=8 / 3)
            for occurrences, length in ((1, 1), (2, 3))
        ]
        assert [match.id for match in found] == [entry_id(2), entry_id(1)]
        assert [match.score for match in found] == pytest.approx(expected, abs=1e-9)

    def test_a_rarer_word_counts_for_more(self, index: SparseIndex) -> None:
        common = [document(number, f"common filler{number}") for number in range(10, 20)]
        index.upsert_many([*common, document(1, "rare filler")])

        found = index.query("common rare", 20)

        assert found[0].id == entry_id(1)
        assert all(match.score > 0 for match in found)

    def test_a_word_that_all_hold_still_scores_above_zero(self, index: SparseIndex) -> None:
        index.upsert_many([document(number, "zebra") for number in range(1, 5)])

        found = index.query("zebra", 10)

        assert len(found) == 4
        assert all(match.score > 0 for match in found)

    def test_filling_words_are_ignored_beside_telling_ones(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "what is the matter"), document(2, "zebra")])

        found = index.query("what is the zebra", 10)

        assert [match.id for match in found] == [entry_id(2)]

    def test_ties_come_in_the_order_of_ids(self, index: SparseIndex) -> None:
        numbers = [7, 3, 9, 1, 5]
        index.upsert_many([document(number, "same words") for number in numbers])

        found = index.query("words", 10)

        assert [match.id.int for match in found] == sorted(numbers)

    @pytest.mark.parametrize("top_k", [1, 2, 50, 149])
    def test_ties_at_the_cut_are_resolved_by_id(self, index: SparseIndex, top_k: int) -> None:
        index.upsert_many([document(number, "same words") for number in range(150, 0, -1)])

        found = index.query("words", top_k)

        assert [match.id.int for match in found] == list(range(1, top_k + 1))

    def test_top_k_may_be_any_size(self, index: SparseIndex) -> None:
        index.upsert_many([document(number, "zebra") for number in range(1, 4)])

        found = index.query("zebra", 10**9)

        assert len(found) == 3

    def test_other_owners_texts_do_not_change_what_words_weigh(self, index: SparseIndex) -> None:
        mine = [document(1, "zebra one two"), document(2, "lion one two"), document(3, "lion a b")]
        index.upsert_many(mine)
        before = index.query("zebra lion", 10, dict(ANA))
        index.upsert_many([document(number, "zebra x y", BEN) for number in range(10, 40)])

        after = index.query("zebra lion", 10, dict(ANA))

        assert after == before

    # -- Filters -----------------------------------------------------------

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (None, [1, 2, 3, 4]),
            ({}, [1, 2, 3, 4]),
            ({"tenant": "acme"}, [1, 2, 3]),
            ({"tenant": "acme", "owner": "ana"}, [1, 3]),
            ({"tenant": "acme", "owner": ("ana", "ben")}, [1, 2, 3]),
            ({"owner": ("ben", "cem")}, [2, 4]),
            ({"scope": ("project/beta", "elsewhere")}, [2, 4]),
            ({"owner": "ana", "scope": "project/alpha", "kind": "note"}, [3]),
            ({"subject:storage": "1"}, [1, 4]),
            ({"subject:storage": ("1", "2"), "tenant": "acme"}, [1]),
            ({"subject:storage": "1", "path": "a.md"}, [4]),
            ({"owner": "nobody"}, []),
            ({"scope": "nowhere"}, []),
            ({"unknown": "key"}, []),
            ({"owner": ()}, []),
            ({"scope": ()}, []),
            ({"path": ()}, []),
            ({"owner_number": "1"}, []),
            ({"owner": ("ana", "nobody")}, [1, 3]),
            ({"owner": "' OR 1=1 --"}, []),
        ],
    )
    def test_a_filter_is_a_conjunction_of_any_of(
        self, index: SparseIndex, wanted: Filter | None, expected: list[int]
    ) -> None:
        index.upsert_many(
            [
                document(1, "zebra", {**ANA, "subject:storage": "1"}),
                document(2, "zebra", {**BEN, "scope": "project/beta"}),
                document(3, "zebra", {**ANA, "kind": "note"}),
                document(
                    4,
                    "zebra",
                    {
                        "tenant": "other",
                        "owner": "cem",
                        "scope": "elsewhere",
                        "subject:storage": "1",
                        "path": "a.md",
                    },
                ),
            ]
        )

        found = index.query("zebra", 10, wanted)

        assert [match.id.int for match in found] == expected

    def test_punctuation_is_filtered_too(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "a => b"), document(2, "a => b", BEN)])

        found = index.query("=>", 10, {"owner": "ben", "scope": "project/alpha"})

        assert [match.id for match in found] == [entry_id(2)]

    def test_a_filter_is_applied_before_top_k(self, index: SparseIndex) -> None:
        crowd = [document(number, "zebra", BEN) for number in range(10, 210)]
        index.upsert_many([*crowd, *(document(one, "zebra with more words") for one in (1, 2))])

        found = index.query("zebra", 2, dict(ANA))

        assert [match.id.int for match in found] == [1, 2]

    # -- Writing -----------------------------------------------------------

    def test_a_document_replaces_the_one_of_its_id(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "zebra", {**ANA, "path": "old"}), document(2, "filler")])

        index.upsert_many([document(1, "lion", {**BEN, "path": "new"})])

        assert index.query("zebra", 10) == []
        assert index.query("lion", 10, {"path": "old"}) == []
        assert len(index.query("lion", 10, {"owner": "ben", "path": "new"})) == 1
        assert index.count() == 2

    def test_the_last_of_a_repeated_id_stands(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "zebra"), document(1, "lion")])

        assert index.count() == 1
        assert len(index.query("lion", 10)) == 1
        assert index.query("zebra", 10) == []

    def test_a_deleted_document_is_not_found(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "zebra =>"), document(2, "zebra =>")])

        index.delete(entry_id(1))

        assert [match.id for match in index.query("zebra", 10)] == [entry_id(2)]
        assert [match.id for match in index.query("=>", 10)] == [entry_id(2)]
        assert index.count() == 1

    def test_deleting_leaves_no_trace_in_the_ranking(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "zebra one"), document(2, "lion two")])
        before = index.query("zebra lion", 10)
        index.upsert_many([document(3, "zebra lion three four five")])

        index.delete(entry_id(3))

        assert index.query("zebra lion", 10) == before

    def test_deleting_an_unknown_id_is_no_error(self, index: SparseIndex) -> None:
        index.delete(entry_id(1))

        assert index.count() == 0

    def test_nothing_to_upsert_is_no_error(self, index: SparseIndex) -> None:
        index.upsert_many([])

        assert index.count() == 0

    def test_a_document_without_words_is_kept(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, ""), document(2, "\u200b\0"), document(3, "zebra", {})])

        assert index.count() == 3
        assert len(index.query("zebra", 10)) == 1

    def test_a_cleared_index_can_be_filled_again(self, index: SparseIndex) -> None:
        index.upsert_many([document(number, "zebra") for number in range(20)])

        index.clear()

        assert index.count() == 0
        assert index.query("zebra", 10) == []
        index.upsert_many([document(1, "zebra")])
        assert len(index.query("zebra", 10)) == 1

    # -- Transactions ------------------------------------------------------

    def test_a_transaction_sees_its_own_writes(
        self, index: SparseIndex, transactions: Transactions
    ) -> None:
        with transactions.begin():
            index.upsert_many([document(1, "zebra")])

            found = index.query("zebra", 10)

        assert len(found) == 1

    def test_a_failed_transaction_leaves_everything_as_it_was(
        self, index: SparseIndex, transactions: Transactions
    ) -> None:
        index.upsert_many([document(1, "zebra"), document(2, "lion")])
        before = index.query("zebra lion tiger", 10)

        with rolled_back(transactions):
            index.upsert_many([document(1, "tiger"), document(3, "tiger", BEN)])
            index.delete(entry_id(2))
            index.clear()

        assert index.query("zebra lion tiger", 10) == before
        assert index.count() == 2

    # -- Erasing -----------------------------------------------------------

    def test_no_byte_of_a_deleted_document_is_left(
        self, index: SparseIndex, transactions: Transactions, tmp_path: Path
    ) -> None:
        for number in range(40):  # Commits of their own, so that indexes have merged meanwhile.
            index.upsert_many([document(number, f"shared words {number} " * (number % 7 + 1))])
        texts = {50: "canarybird shared", 51: "shared words " * 8_000 + "canarybird"}
        for number, text in texts.items():
            labels = {**ANA, "subject:canaryking": "canaryvalue"}
            index.upsert_many([document(number, text, labels)])

        for number in texts:
            index.delete(entry_id(number))

        assert transactions.scrub()
        left = bytes_under(tmp_path)
        assert [word for word in (b"narybird", b"naryking", b"naryvalue") if word in left] == []

    def test_no_byte_of_a_cleared_index_is_left(
        self, index: SparseIndex, transactions: Transactions, tmp_path: Path
    ) -> None:
        index.upsert_many(
            [document(number, f"canarybird{number}", {"k": "canarykey"}) for number in range(300)]
        )

        index.clear()

        assert transactions.scrub()
        assert b"canary" not in bytes_under(tmp_path)

    def test_repr_shows_nothing_private(self, index: SparseIndex) -> None:
        one = document(1, "zebra", {"subject:lion": "1"})

        shown = repr(one) + repr(index) + repr(parsed_question("zebra lion"))

        assert "zebra" not in shown
        assert "lion" not in shown
