"""Live recall: current, permitted originals, best first, whatever the indexes say."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.application.house import (
    HardOfHearing,
    House,
    a_context,
    a_query,
    an_entry,
    open_house,
)

from remembrancer.domain import (
    CandidateSelection,
    EntryId,
    LeftOutReason,
    RecallKind,
    RecallMode,
    RecallQuery,
    Sensitivity,
)


def _ids(house: House, query: RecallQuery) -> list[EntryId]:
    return [one.entry_id for one in house.memory.recall(query, a_context()).entries]


# -- Kinds -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RecallKind.AUTOMATIC, RecallKind.DELIBERATE])
def test_the_best_comes_first_and_says_how_it_was_found(house: House, kind: RecallKind) -> None:
    ids = house.memory.remember_many(
        [an_entry("storage of backups"), an_entry("invoice retry"), an_entry("invoice storage")]
    )

    found = house.memory.recall(a_query("invoice storage", kind=kind), a_context())

    assert found.mode is RecallMode.HYBRID
    assert found.mode_reason == ""
    first = found.entries[0]
    assert first.entry_id == ids[2]
    assert (first.ranks.dense_rank, first.ranks.sparse_rank) == (1, 1)
    assert first.ranks.dense_score == pytest.approx(1.0)
    assert first.score == pytest.approx(2 / 61)
    scores = [one.score for one in found.entries]
    assert scores == sorted(scores, reverse=True)


def test_recall_records_nothing(house: House) -> None:
    house.memory.remember(an_entry())

    house.memory.recall(a_query(), a_context())

    assert len(house.events()) == 1


def test_core_lists_what_is_core_in_scope_oldest_first(house: House) -> None:
    ids = []
    for scope, kind in (
        ("project", "core"),
        ("project/alpha", "core"),
        ("project-x", "core"),
        ("project", "note"),
    ):
        ids.append(house.memory.remember(an_entry(kind=kind, scope=scope)))
        house.clock.advance(timedelta(seconds=1))

    found = house.memory.recall(a_query("", kind=RecallKind.CORE), a_context())

    assert found.mode is RecallMode.LISTED
    assert [one.entry_id for one in found.entries] == ids[:2]
    assert {one.score for one in found.entries} == {0.0}


def test_core_keeps_to_limit_and_ceiling(house: House) -> None:
    ids = house.memory.remember_many(
        [
            an_entry("secret", kind="core", sensitivity=Sensitivity.RESTRICTED),
            *[an_entry(str(number), kind="core") for number in range(3)],
        ]
    )

    found = house.memory.recall(a_query(kind=RecallKind.CORE, limit=2), a_context())

    assert [one.entry_id for one in found.entries] == sorted(ids[1:], key=lambda one: one.int)[:2]
    reasons = sorted(one.reason for one in found.left_out)
    assert reasons == [LeftOutReason.PERMISSION, LeftOutReason.RANK]


def test_people_are_found_by_any_of_several_subjects(house: House) -> None:
    ana, bob, _, both = house.memory.remember_many(
        [
            an_entry("likes tea", subjects=("Ana",)),
            an_entry("likes tea", subjects=("Bob",)),
            an_entry("likes tea", subjects=("Cid",)),
            an_entry("like tea", subjects=("Ana", "Bob")),
        ]
    )

    query = a_query("tea", kind=RecallKind.PEOPLE, subjects=("ANA", "bob"))

    assert set(_ids(house, query)) == {ana, bob, both}
    assert len(_ids(house, query)) == 3


def test_subjects_are_found_by_their_words_in_any_kind(house: House) -> None:
    entry_id = house.memory.remember(an_entry("likes tea", subjects=("Zacharias",)))

    assert _ids(house, a_query("zacharias")) == [entry_id]


# -- The past ----------------------------------------------------------------


def _as_of(house: House, days: float, **changes: object) -> RecallQuery:
    at = house.clock.now() + timedelta(days=days)
    return a_query("retries", kind=RecallKind.HISTORICAL, as_of=at, **changes)


def test_each_time_gets_the_version_that_was_current_then(house: House) -> None:
    entry_id = house.memory.remember(an_entry("It retries once."))
    for text in ("It retries twice.", "It retries thrice."):
        house.clock.advance(timedelta(days=2))
        house.memory.correct(entry_id, text=text, reason="outdated")

    versions = {
        days: [
            (one.entry_id, one.version)
            for one in house.memory.recall(_as_of(house, days), a_context()).entries
        ]
        for days in (-5, -4, -3, -2, 0, 9)
    }

    assert versions == {
        -5: [],
        -4: [(entry_id, 1)],
        -3: [(entry_id, 1)],
        -2: [(entry_id, 2)],
        0: [(entry_id, 3)],
        9: [(entry_id, 3)],
    }


def test_what_was_reclassified_since_is_hidden_in_the_past_too(house: House) -> None:
    kept, raised, moved = house.memory.remember_many(
        [an_entry("It retries.", subjects=(str(number),)) for number in range(3)]
    )
    house.clock.advance(timedelta(days=1))
    house.memory.correct(raised, sensitivity=Sensitivity.RESTRICTED, reason="reclassified")
    house.memory.correct(moved, scope="private", reason="moved")

    found = house.memory.recall(_as_of(house, -1), a_context())

    assert [one.entry_id for one in found.entries] == [kept]
    hidden = {one.entry_id for one in found.left_out if one.reason is LeftOutReason.PERMISSION}
    assert hidden == {raised, moved}


def test_what_was_hidden_then_stays_hidden_though_it_is_open_now(house: House) -> None:
    entry_id = house.memory.remember(an_entry("It retries.", sensitivity=Sensitivity.RESTRICTED))
    house.clock.advance(timedelta(days=1))
    house.memory.correct(entry_id, sensitivity=Sensitivity.PUBLIC, reason="declassified")

    assert _ids(house, _as_of(house, -1)) == []
    assert _ids(house, _as_of(house, 0)) == [entry_id]


def test_what_was_erased_since_is_gone_from_the_past(house: House) -> None:
    entry_id = house.memory.remember(an_entry("It retries."))
    house.clock.advance(timedelta(days=1))
    house.memory.erase(entry_id, reason="user_request")

    found = house.memory.recall(_as_of(house, -1), a_context())

    assert not found.entries


def test_ties_of_the_past_are_broken_by_entry_id(house: House) -> None:
    ids = house.memory.remember_many([an_entry("It retries.") for _ in range(12)])
    house.clock.advance(timedelta(days=1))
    for entry_id in ids[::2]:
        house.memory.correct(entry_id, text="Nothing of the kind.", reason="outdated")

    assert _ids(house, _as_of(house, -1, limit=5)) == sorted(ids, key=lambda one: one.int)[:5]


# -- The limit ---------------------------------------------------------------


def test_a_limit_beyond_everything_gives_everything(house: House) -> None:
    ids = house.memory.remember_many([an_entry(f"invoice {number}") for number in range(7)])

    found = house.memory.recall(a_query(limit=100_000), a_context())

    assert {one.entry_id for one in found.entries} == set(ids)
    assert found.left_out == ()


def test_ties_at_the_cut_off_go_by_entry_id(house: House) -> None:
    ids = house.memory.remember_many([an_entry() for _ in range(150)])

    found = house.memory.recall(a_query(limit=4), a_context())

    assert [one.entry_id for one in found.entries] == sorted(ids, key=lambda one: one.int)[:4]
    assert found.left_out_count >= len(found.left_out) > 0
    assert {one.reason for one in found.left_out} == {LeftOutReason.RANK}


# -- Modes -------------------------------------------------------------------


def test_legacy_selection_goes_by_words_alone(house: House) -> None:
    house.memory.remember(an_entry())

    query = a_query(candidate_selection=CandidateSelection.LEGACY)
    found = house.memory.recall(query, a_context())

    assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "legacy_candidate_selection")
    assert found.entries[0].ranks.dense_rank is None
    assert found.embedding_tuple is None


def test_without_an_index_recall_goes_by_words(path: Path | None) -> None:
    with open_house(path, embedders=()) as house:
        house.memory.remember(an_entry())

        found = house.memory.recall(a_query(), a_context())

        assert len(found.entries) == 1
        assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "no_vector_index")


def test_a_question_without_a_vector_goes_by_words(path: Path | None) -> None:
    with open_house(path, embedders=(HardOfHearing(),)) as house:
        entry_id = house.memory.remember(an_entry("the unheard invoice"))

        found = house.memory.recall(a_query("unheard"), a_context())

        assert [one.entry_id for one in found.entries] == [entry_id]
        assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "no_usable_vector")


def test_an_entry_without_a_vector_is_found_by_its_words(path: Path | None) -> None:
    with open_house(path, embedders=(HardOfHearing(),)) as house:
        deaf, other = house.memory.remember_many(
            [an_entry("the unheard invoice"), an_entry("the storage")]
        )

        found = house.memory.recall(a_query("invoice"), a_context())

        assert found.mode is RecallMode.HYBRID
        assert {one.entry_id: one.ranks.dense_rank for one in found.entries} == {
            deaf: None,
            other: 1,
        }


@pytest.mark.parametrize("question", ["\u200d", "\u2060 \u200d", "\ufeff"], ids=ascii)
def test_a_question_without_words_goes_by_its_vector(house: House, question: str) -> None:
    house.memory.remember(an_entry())

    found = house.memory.recall(a_query(question), a_context())

    assert (found.mode, found.mode_reason) == (RecallMode.DENSE, "no_searchable_words")
    assert [one.ranks.sparse_rank for one in found.entries] == [None]
    selection = house.memory.select("s", "plan", a_query(question), a_context())
    assert (selection.mode, selection.mode_reason) == (found.mode, found.mode_reason)


@pytest.mark.parametrize(
    "question",
    [
        "",
        " \n",
        "OR",
        '"',
        "AND NOT (",
        "*",
        "a\0b",
        "e\u0301",
        "\N{ROCKET}",
        "GB/s",
        "x" * 100_000,
    ],
    ids=lambda question: ascii(question[:10]),
)
def test_no_question_is_an_error(house: House, question: str) -> None:
    house.memory.remember_many([an_entry(), an_entry(f"{question}.")])

    found = house.memory.recall(a_query(question), a_context())

    if question.strip():
        assert f"{question}." in {one.text for one in found.entries}


def test_an_empty_memory_finds_nothing(house: House) -> None:
    found = house.memory.recall(a_query(), a_context())

    assert found.entries == ()
    assert found.left_out == ()
