"""What every sparse index finds: any text, by any part of it that a person would type.

The first half of :class:`remembrancer.contracts.sparse_index.SparseIndexContract`.
"""

import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, get_args
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remembrancer.application.ports.sparse_index import SparseDocument, SparseIndex
from remembrancer.application.ports.transactions import Transactions
from remembrancer.domain.identity import EntryId
from remembrancer.domain.search_text import parsed_question

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

QUESTION_S_MAX = 2.0
"""Generous: a question of any length is answered in far less; see the benchmarks."""

ANA: Mapping[str, str] = {"tenant": "acme", "owner": "ana", "scope": "project/alpha"}
BEN: Mapping[str, str] = {"tenant": "acme", "owner": "ben", "scope": "project/alpha"}


def entry_id(number: int) -> EntryId:
    return EntryId(UUID(int=number))


def document(number: int, text: str, metadata: Mapping[str, str] = ANA) -> SparseDocument:
    return SparseDocument(entry_id(number), text, metadata)


class SparseTextsContract(ABC):
    """How an adapter is opened, and that no text is too strange for it."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[tuple[SparseIndex, Transactions]]:
        """Open an index kept in ``folder``, empty at first, and its store's transactions."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[tuple[SparseIndex, Transactions]]:
        with self.opened(tmp_path) as store:
            yield store

    @pytest.fixture
    def index(self, store: tuple[SparseIndex, Transactions]) -> SparseIndex:
        return store[0]

    @pytest.fixture
    def transactions(self, store: tuple[SparseIndex, Transactions]) -> Transactions:
        return store[1]

    # -- Any text finds ----------------------------------------------------

    @pytest.mark.parametrize(
        ("text", "question"),
        [
            ("run the pre-edit hook", "pre-edit"),
            ("a link of 40 GB/s", "GB/s"),
            ("released as v1.2.3 today", "v1.2.3"),
            ("either this OR that", "OR"),
            ("say NOT and NEAR and *", "NEAR"),
            ('she said "yes"', '"'),
            ("map with => and ->", "->"),
            ("left\0right", "left"),
            ("left\0right", "left\0right"),
            ("我们明天在东京见面", "东京"),
            ("昨日は大阪へ行きました", "大阪"),
            ("한국어 조사를 찾다", "조사"),
            ("ขอบคุณมากครับ", "มาก"),
            ("ship it 🚀 now", "🚀"),
            ("thumbs 👍🏽", "👍🏽"),
            ("made of ﬁne wood", "fine"),
            ("\uff21\uff22\uff23 wide", "abc"),
            ("ｶﾞｷﾞ narrow", "ガギ"),
            ("the naïve café", "naive cafe"),
            ("a naive cafe", "naïve"),
            ("Ёлка стоит", "елка"),
            ("Straße", "STRASSE"),
            ("السَّلَامُ عليكم", "السلام"),
            ("it isn\u2019t so", "isn't"),
            ("costs €5", "€"),
            ("see § 7", "§"),
            ("the who and the what", "the"),
            ("deploying the service", "deployed"),
            ("foo_bar(baz)", "foo_bar"),
            ("word\u2014other", "other"),
            ("col1:value ^start", "col1:value"),
        ],
    )
    def test_what_holds_the_term_is_found(
        self, index: SparseIndex, text: str, question: str
    ) -> None:
        index.upsert_many([document(1, text), document(2, "lorem ipsum dolor")])

        found = index.query(question, 10)

        assert [match.id for match in found] == [entry_id(1)]

    @pytest.mark.parametrize("form", get_args(NormalForm))
    @pytest.mark.parametrize("text", ["café", "Việt", "が", "한국", "Ελλάδα", "हिन्दी"])
    def test_normal_forms_make_no_difference(
        self, index: SparseIndex, text: str, form: NormalForm
    ) -> None:
        index.upsert_many([document(1, unicodedata.normalize("NFC", text))])

        found = index.query(unicodedata.normalize(form, text), 10)

        assert len(found) == 1

    @pytest.mark.parametrize(
        "question",
        [
            *("", " \t\n", "\0", "\ud800", "\u200d", "\u0301", "\U0010ffff"),
            *('""', "AND", "NOT", "NEAR(", "a*", "^a", "col:", "- -", "{}", "'; --", "\\", "%"),
            *("(" * 1000, "x" * 100_000),
        ],
    )
    def test_no_question_is_an_error(self, index: SparseIndex, question: str) -> None:
        index.upsert_many([document(1, "lorem ipsum dolor")])

        found = index.query(question, 10)

        assert found == []

    @pytest.mark.parametrize(
        "question",
        [
            " ".join(f"word{number}" for number in range(14_000)),
            "the " * 25_000,
            "a/b" * 33_000,
            "日本" * 17_000,
            "🚀" * 25_000,
            '"' * 100_000,
            "lorem " * 17_000,
        ],
    )
    def test_a_long_question_is_answered_soon(self, index: SparseIndex, question: str) -> None:
        index.upsert_many([document(number, "lorem ipsum dolor") for number in range(50)])
        began = time.perf_counter()

        index.query(question, 10)

        assert time.perf_counter() - began < QUESTION_S_MAX

    def test_a_long_text_is_found_by_its_last_word(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "lorem ipsum " * 8_000 + "zebra"), document(2, "lorem")])

        found = index.query("zebra", 10)

        assert [match.id for match in found] == [entry_id(1)]

    def test_every_piece_of_any_text_finds_it(self, index: SparseIndex) -> None:
        @settings(max_examples=100)
        @given(text=st.text(max_size=60))
        @example("\u13a0")  # Cherokee, whose small letters fold into capitals.
        def every_piece_finds(text: str) -> None:
            index.upsert_many([document(1, text)])
            # What consists of invisible characters alone can't be looked for.
            pieces = [one for one in text.split() if parsed_question(one) != parsed_question("")]

            lost = [piece for piece in pieces if not index.query(piece, 1)]

            assert lost == []

        every_piece_finds()

    def test_a_word_with_punctuation_inside_finds_its_parts_in_that_order(
        self, index: SparseIndex
    ) -> None:
        index.upsert_many([document(1, "edit the pre release"), document(2, "a pre-edit hook")])

        found = index.query("pre-edit", 10)

        assert [match.id for match in found] == [entry_id(2)]

    def test_two_characters_find_only_what_holds_them_together(self, index: SparseIndex) -> None:
        index.upsert_many([document(1, "東の京"), document(2, "東京"), document(3, "京東")])

        found = index.query("東京", 10)

        assert [match.id for match in found] == [entry_id(2)]
