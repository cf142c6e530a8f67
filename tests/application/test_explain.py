"""Explaining: what a stage got and why, as it was recorded, and what has changed since."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.application.house import (
    Forbidden,
    House,
    a_context,
    a_query,
    an_entry,
    open_house,
)

from remembrancer.application.explain import Change, ChangeKind, Explanation
from remembrancer.application.load import append
from remembrancer.composition.store import Store
from remembrancer.domain import ContextItem, LeftOutReason, RecallKind, Sensitivity
from remembrancer.domain.errors import (
    InvalidInputError,
    MalformedRecordError,
    UnknownSelectionError,
)
from remembrancer.domain.l3_selection import L3Selection

MINUTE = timedelta(minutes=1)
RULES = ContextItem(layer=0, id="rules", text="Answer from the sources.", required=True)


def explained(house: House, session: str = "s", stage: str = "plan") -> Explanation:
    return house.memory.explain(session, stage, tenant="acme")


def changes_of(found: Explanation) -> list[ChangeKind]:
    return [one.kind for entry in found.entries for one in entry.changes]


def select(house: House, **changes: Any) -> None:
    house.memory.select("s", "plan", a_query(**changes), a_context())


def blinded(store: Store) -> Store:
    return replace(
        store, sparse=Forbidden("the sparse index"), indexes=Forbidden("a vector index")
    )


def test_tells_what_was_selected_with_ranks_and_scores_as_recorded(house: House) -> None:
    house.memory.remember_many([an_entry("invoice one"), an_entry("invoice two"), an_entry("oak")])
    committed = house.memory.select("s", "plan", a_query(limit=2), a_context())

    found = explained(house)

    assert [one.selected for one in found.entries] == list(committed.entries)
    assert found.selection == committed
    assert found.candidates == 2 + committed.left_out_count
    assert changes_of(found) == []


def test_tells_labels_digest_and_time_of_each_version(house: House) -> None:
    entry_id = house.memory.remember(an_entry("invoice one"))
    house.clock.advance(MINUTE)
    house.memory.correct(entry_id, text="invoice again", reason="outdated")
    house.clock.advance(MINUTE)
    select(house)

    [one] = explained(house).entries

    assert one.facts is not None
    assert (one.facts.version, one.facts.digest) == (2, one.selected.digest)
    assert (one.facts.scope, one.facts.sensitivity) == ("project/alpha", Sensitivity.INTERNAL)
    assert (explained(house).selected_at - one.facts.at).total_seconds() == 60


def test_tells_what_was_left_out_and_why(house: House) -> None:
    house.memory.remember_many([an_entry(f"invoice {number}") for number in range(3)])
    select(house, limit=1)

    found = explained(house)

    assert len(found.left_out) == found.selection.left_out_count == 2
    assert {one.reason for one in found.left_out} == {LeftOutReason.RANK}
    assert all(one.facts is not None and one.facts.version == 1 for one in found.left_out)


def test_a_correction_since_is_told_with_its_reason(house: House) -> None:
    entry_id = house.memory.remember(an_entry("invoice one"))
    select(house)
    house.clock.advance(MINUTE)
    house.memory.correct(entry_id, text="invoice two", reason="outdated")

    [one] = explained(house).entries

    assert one.changes == (
        Change(kind=ChangeKind.CORRECTED, at=house.clock.now(), detail="version 2 (outdated)"),
    )


def test_a_new_label_that_takes_it_out_of_reach_is_told(house: House) -> None:
    entry_id = house.memory.remember(an_entry("invoice one"))
    select(house)
    house.memory.correct(entry_id, sensitivity=Sensitivity.RESTRICTED, reason="leaked")

    found = explained(house)

    assert changes_of(found) == [
        ChangeKind.CORRECTED, ChangeKind.RELABELLED, ChangeKind.OUT_OF_REACH]  # fmt: skip
    assert found.entries[0].changes[1].detail == "sensitivity internal is restricted now"


def test_a_move_within_reach_is_a_relabelling_alone(house: House) -> None:
    entry_id = house.memory.remember(an_entry("invoice one"))
    select(house)
    house.memory.correct(entry_id, scope="project/beta", reason="moved")

    assert changes_of(explained(house)) == [ChangeKind.CORRECTED, ChangeKind.RELABELLED]


def test_an_erasure_since_is_told_of_selected_and_left_out(house: House) -> None:
    ids = house.memory.remember_many([an_entry("invoice one"), an_entry("invoice two")])
    select(house, limit=1)
    for entry_id in ids:
        house.memory.erase(entry_id, reason="requested")

    found = explained(house)

    assert changes_of(found) == [ChangeKind.ERASED]
    assert [one.kind for one in found.left_out[0].changes] == [ChangeKind.ERASED]
    assert found.entries[0].changes[0].detail == "reason requested"


def test_what_was_corrected_before_is_no_change(house: House) -> None:
    """Historical recall selects a version that had a later one already."""
    entry_id = house.memory.remember(an_entry("invoice one"))
    then = house.clock.now()
    house.clock.advance(MINUTE)
    house.memory.correct(entry_id, text="invoice two", reason="outdated")
    house.clock.advance(MINUTE)
    select(house, kind=RecallKind.HISTORICAL, as_of=then)

    found = explained(house)

    assert [one.selected.version for one in found.entries] == [1]
    assert changes_of(found) == []


def test_each_pack_is_told_with_what_is_in_it(house: House) -> None:
    ids = house.memory.remember_many([an_entry("invoice one"), an_entry("invoice two")])
    for budget in (2_000, 40):
        house.memory.build_pack(
            "s", "plan", a_query(), a_context(), items=[RULES], token_budget=budget
        )

    first, second = explained(house).packs

    assert (first.host_items, set(first.entries)) == (("rules",), {str(one) for one in ids})
    assert (first.pack.number, first.pack.token_budget, second.pack.token_budget) == (1, 2_000, 40)
    assert {reason for _, reason in second.pack.omitted} == {"budget"}
    assert first.items_kept


def test_an_erased_session_keeps_what_the_log_says(house: House) -> None:
    house.memory.remember(an_entry("invoice one"))
    house.memory.build_pack("s", "plan", a_query(), a_context(), items=[RULES], token_budget=99)
    assert explained(house).query_vector == "sealed"
    house.memory.erase_session("s", tenant="acme")

    found = explained(house)

    assert (found.query_vector, found.packs[0].items_kept) == ("erased", False)
    assert found.packs[0].host_items == ("rules",)


def test_a_text_that_is_gone_without_an_erasure_is_missing(path: Path | None) -> None:
    with open_house(path) as house:
        entry_id = house.memory.remember(an_entry("invoice one"))
        select(house)
        house.store.vault.erase(entry_id)

        assert changes_of(explained(house)) == [ChangeKind.MISSING]


def test_no_index_is_asked(path: Path | None) -> None:
    with open_house(path) as house:
        house.memory.remember(an_entry("invoice one"))
        select(house)
        house.container.store.override(blinded(house.store))

        assert len(explained(house).entries) == 1


@pytest.mark.parametrize(
    ("session", "stage", "tenant"),
    [("s", "act", "acme"), ("other", "plan", "acme"), ("s", "plan", "acme-corp")],
)
def test_what_was_never_selected_is_unknown(
    house: House, session: str, stage: str, tenant: str
) -> None:
    select(house)

    with pytest.raises(UnknownSelectionError):
        house.memory.explain(session, stage, tenant=tenant)


@pytest.mark.parametrize("names", [("", "plan"), ("s", "\n")])
def test_names_that_nobody_has_are_refused(house: House, names: Sequence[str]) -> None:
    with pytest.raises(InvalidInputError):
        house.memory.explain(*names, tenant="acme")


def test_a_reach_that_nobody_could_have_had_is_malformed(house: House) -> None:
    house.memory.remember(an_entry("invoice one"))
    committed = house.memory.select("other", "plan", a_query(), a_context())
    reach = {**committed.filter, "sensitivity": ("nobody knows",)}
    forged = L3Selection.select(
        replace(committed, session="s", filter=reach), at=house.clock.now()
    )
    with house.store.transactions.acting_for("acme", "ana"):
        append(house.store.log, forged)

    with pytest.raises(MalformedRecordError, match="no decision recorded this"):
        explained(house)
