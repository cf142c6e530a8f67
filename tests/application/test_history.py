"""The history of an entry: versions, corrections, erasure, and texts for who may see them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.application.house import House, an_entry

from remembrancer.application.history import EntryHistory, TextState
from remembrancer.domain import EntryId, Sensitivity
from remembrancer.domain.errors import InvalidInputError, UnknownEntryError

MINUTE = timedelta(minutes=1)
READER: dict[str, Any] = {
    "principal": "agent-7",
    "scopes": ("project",),
    "read_ceiling": Sensitivity.INTERNAL,
}


def corrected(house: House, **changes: Any) -> EntryId:
    """Return an entry of two versions."""
    entry_id = house.memory.remember(an_entry("first words"))
    house.clock.advance(MINUTE)
    given = {"text": "second words", "reason": "Ana said so in the meeting"} | changes
    house.memory.correct(entry_id, **given)
    return entry_id


def history(house: House, entry_id: UUID, **changes: Any) -> EntryHistory:
    return house.memory.history(entry_id, **{"tenant": "acme"} | changes)


def test_tells_versions_with_labels_digests_and_reasons(house: House) -> None:
    entry_id = corrected(house, scope="project/beta")

    found = history(house, entry_id)

    first, second = found.versions
    assert (found.owner, first.facts.version, second.facts.version) == ("ana", 1, 2)
    assert (first.facts.scope, second.facts.scope) == ("project/alpha", "project/beta")
    assert (first.facts.reason, second.facts.reason) == ("", "stated")
    assert (second.facts.at - first.facts.at).total_seconds() == 60
    assert first.facts.digest != second.facts.digest
    assert first.facts.length == len("first words")


def test_without_a_reader_no_text_is_shown(house: House) -> None:
    found = history(house, corrected(house))

    assert [one.text for one in found.versions] == [None, None]
    assert {one.text_state for one in found.versions} == {TextState.KEPT}
    assert "words" not in repr(found)


def test_a_permitted_reader_sees_texts_and_stated_reasons(house: House) -> None:
    found = history(house, corrected(house), **READER)

    assert [one.text for one in found.versions] == ["first words", "second words"]
    assert found.versions[1].stated_reason == "Ana said so in the meeting"
    assert "words" not in repr(found)


@pytest.mark.parametrize(
    "change", [{"scopes": ("elsewhere",)}, {"read_ceiling": Sensitivity.PUBLIC}]
)
def test_another_reader_sees_none(house: House, change: dict[str, Any]) -> None:
    found = history(house, corrected(house), **READER | change)

    assert [(one.permitted, one.text) for one in found.versions] == [(False, None)] * 2


def test_labels_of_today_hide_older_versions_too(house: House) -> None:
    entry_id = corrected(house, sensitivity=Sensitivity.RESTRICTED)

    found = history(house, entry_id, **READER)

    assert [one.text for one in found.versions] == [None, None]


def test_labels_of_then_hide_an_older_version(house: House) -> None:
    entry_id = house.memory.remember(an_entry("first", sensitivity=Sensitivity.RESTRICTED))
    house.memory.correct(entry_id, sensitivity=Sensitivity.PUBLIC, reason="relabelled")

    found = history(house, entry_id, **READER)

    assert [one.text for one in found.versions] == [None, "first"]


def test_of_an_erased_entry_the_log_is_left(house: House) -> None:
    entry_id = corrected(house)
    house.memory.erase(entry_id, reason="requested")

    found = history(house, entry_id, **READER)

    assert (found.erased_at, found.erased_reason) == (house.clock.now(), "requested")
    assert [one.text for one in found.versions] == [None, None]
    assert {one.text_state for one in found.versions} == {TextState.ERASED}
    assert len(found.versions) == 2


def test_another_tenants_or_owners_entry_is_unknown(house: House) -> None:
    entry_id = corrected(house)

    for whose in ({"tenant": "acme-corp"}, {"owner": "ben"}):
        with pytest.raises(UnknownEntryError):
            history(house, entry_id, **whose)
    with pytest.raises(UnknownEntryError):
        history(house, UUID(int=7))


def test_a_reader_is_named_whole(house: House) -> None:
    entry_id = corrected(house)

    with pytest.raises(InvalidInputError):
        history(house, entry_id, principal="agent-7")
