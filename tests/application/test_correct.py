"""Correcting: a new version in the place of the current one."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.application.agreement import assert_agreement
from tests.application.house import (
    HardOfHearing,
    House,
    a_context,
    a_query,
    an_entry,
    open_house,
    replay_of,
)

from remembrancer.domain import RecallKind, Sensitivity
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import (
    EntryErasedError,
    InvalidInputError,
    UnknownEntryError,
)


def test_the_new_text_is_found_and_the_old_is_not(house: House) -> None:
    entry_id = house.memory.remember(an_entry("zebra crossing"))

    version = house.memory.correct(entry_id, text="pelican crossing", reason="outdated")

    assert version == 2
    [found] = house.memory.recall(a_query("pelican"), a_context()).entries
    assert (found.entry_id, found.version, found.text) == (entry_id, 2, "pelican crossing")
    by_old = house.memory.recall(a_query("zebra"), a_context()).entries
    assert [(one.version, one.ranks.sparse_rank) for one in by_old] in ([], [(2, None)])
    assert_agreement(house.store, common_word="crossing")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": "other words"}, "text"),
        ({"scope": "project/beta"}, "scope"),
        ({"kind": "decision"}, "kind"),
        ({"sensitivity": Sensitivity.PUBLIC}, "sensitivity"),
        ({"subjects": ["money", "time"]}, "subjects"),
        ({"subjects": []}, "subjects"),
        ({"metadata": {"path": "b.md"}}, "metadata"),
    ],
    ids=str,
)
def test_what_is_given_changes_and_the_rest_stays(
    house: House, changes: dict[str, Any], field: str
) -> None:
    before = an_entry(subjects=("storage",), metadata={"path": "a.md"})
    entry_id = house.memory.remember(before)

    house.memory.correct(entry_id, reason="edited", **changes)

    [found] = house.memory.recall(a_query("invoice other words"), a_context()).entries
    for name in ("text", "scope", "kind", "sensitivity", "subjects", "metadata"):
        expected = changes[name] if name == field else getattr(before, name)
        assert getattr(found, name) == (tuple(expected) if name == "subjects" else expected)


@pytest.mark.parametrize(
    "changes",
    [{}, {"text": an_entry().text}, {"kind": "note", "subjects": ["storage"], "metadata": {}}],
    ids=str,
)
def test_where_nothing_differs_nothing_is_recorded(house: House, changes: dict[str, Any]) -> None:
    entry_id = house.memory.remember(an_entry(subjects=("storage",)))

    version = house.memory.correct(entry_id, reason="edited", **changes)

    assert version == 1
    assert len(house.events()) == 1


def test_a_code_stands_in_the_log_and_words_stay_in_the_vault(house: House) -> None:
    entry_id = house.memory.remember(an_entry())

    house.memory.correct(entry_id, text="second", reason="outdated")
    house.memory.correct(entry_id, text="third", reason="Bob told us so himself")

    reasons = [e.reason for e in house.events() if isinstance(e, MemoryEntry.EntryCorrected)]
    assert reasons == ["outdated", "stated"]
    kept = [one.reason for one in house.store.vault.history(entry_id)]
    assert kept == ["", "outdated", "Bob told us so himself"]


def test_an_unknown_entry_cannot_be_corrected(house: House) -> None:
    with pytest.raises(UnknownEntryError):
        house.memory.correct(UUID(int=1), text="x", reason="edited")


def test_an_erased_entry_cannot_be_corrected(house: House) -> None:
    entry_id = house.memory.remember(an_entry())
    house.memory.erase(entry_id, reason="user_request")

    with pytest.raises(EntryErasedError):
        house.memory.correct(entry_id, text="x", reason="edited")


@pytest.mark.parametrize(
    "changes",
    [
        {"text": ""},
        {"text": "half \ud83d of a pair"},
        {"scope": "a//b"},
        {"kind": " "},
        {"sensitivity": "secret"},
        {"subjects": ["a\nb"]},
        {"metadata": {"": "x"}},
    ],
    ids=ascii,
)
def test_a_new_value_passes_the_same_bounds(house: House, changes: dict[str, Any]) -> None:
    entry_id = house.memory.remember(an_entry())

    with pytest.raises(InvalidInputError):
        house.memory.correct(entry_id, reason="edited", **changes)

    assert len(house.events()) == 1


@pytest.mark.parametrize(
    "reason", ["", "half \ud83d of a pair", "x" * 1_048_577], ids=["empty", "surrogate", "long"]
)
def test_a_reason_passes_bounds_too(house: House, reason: str) -> None:
    entry_id = house.memory.remember(an_entry())

    with pytest.raises(InvalidInputError, match=r"Reason\.reason"):
        house.memory.correct(entry_id, text="other", reason=reason)

    assert len(house.events()) == 1


def test_a_move_out_of_reach_is_seen_by_the_next_recall(house: House) -> None:
    moved, raised, kept = house.memory.remember_many([an_entry() for _ in range(3)])

    house.memory.correct(moved, scope="private", reason="moved")
    house.memory.correct(raised, sensitivity=Sensitivity.RESTRICTED, reason="reclassified")

    [found] = house.memory.recall(a_query(), a_context()).entries
    assert found.entry_id == kept


@pytest.mark.parametrize(
    "changes", [{"scope": "private"}, {"sensitivity": Sensitivity.RESTRICTED}], ids=str
)
def test_a_move_out_of_reach_is_seen_by_pack_and_replay(
    house: House, changes: dict[str, Any]
) -> None:
    moved, kept = house.memory.remember_many([an_entry("moved invoice"), an_entry()])
    asked = ("s", "plan", a_query(), a_context())
    first = house.memory.build_pack(*asked, items=[], token_budget=500)
    house.memory.correct(moved, reason="reclassified", **changes)

    second = house.memory.build_pack(*asked, items=[], token_budget=500)
    again = house.memory.replay("s", "plan", pack_number=1, **replay_of())

    assert set(first.included) == {str(moved), str(kept)}
    assert second.included == (str(kept),)
    assert dict(second.omitted) == {str(moved): "permission"}
    [difference] = again.differences
    assert (difference.id, difference.reason) == (str(moved), "no longer permitted")
    assert "moved invoice" not in again.text + second.text


def test_old_versions_answer_for_their_time(house: House) -> None:
    entry_id = house.memory.remember(an_entry("It retries three times."))
    then = house.clock.now()
    house.clock.advance(timedelta(days=1))
    house.memory.correct(entry_id, text="It retries four times.", reason="outdated")

    [found] = house.memory.recall(
        a_query("retries", kind=RecallKind.HISTORICAL, as_of=then), a_context()
    ).entries

    assert (found.entry_id, found.version) == (entry_id, 1)


def test_a_clock_that_steps_back_makes_no_version_older_than_the_one_before(house: House) -> None:
    entry_id = house.memory.remember(an_entry())
    house.clock.set(house.clock.now() - timedelta(days=1))

    house.memory.correct(entry_id, text="second", reason="edited")

    first, second = house.store.vault.history(entry_id)
    assert first.recorded_at == first.superseded_at == second.recorded_at


def test_a_text_without_a_vector_takes_the_old_vector_away(path: Path | None) -> None:
    with open_house(path, embedders=(HardOfHearing(),)) as house:
        entry_id = house.memory.remember(an_entry("zebra"))

        house.memory.correct(entry_id, text="unheard", reason="edited")

        active = house.store.indexes.active()
        assert active is not None
        assert entry_id not in house.store.indexes.store(active).vectors([entry_id])
        [found] = house.memory.recall(a_query("unheard zebra"), a_context()).entries
        assert (found.version, found.ranks.dense_rank) == (2, None)
