from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.identity import (
    EntryId,
    entry_id_for_key,
    entry_ids,
    parse_entry_id,
    spelt,
    stream_id,
    version_id,
)
from remembrancer.domain.l3_selection import L3Selection

names = st.text(st.sampled_from('ab_/-"\\,é '), min_size=1, max_size=5)
keys = st.lists(names, min_size=1, max_size=4)
ids = st.uuids().map(EntryId)


@given(keys, keys)
def test_natural_keys_meet_only_if_they_are_the_same(one: list[str], other: list[str]) -> None:
    same_stream = stream_id(*one) == stream_id(*other)

    assert same_stream == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b_c"), ("a_b", "c")),
        (("acme", "corp"), ("acme-corp", "")),
        (("a", "b"), ("a/b",)),
        (('a","b',), ("a", "b")),
    ],
)
def test_neighbours_with_look_alike_names_never_meet(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert stream_id("memory_entry", *one) != stream_id("memory_entry", *other)


def test_recorded_ids_stay_what_they_were() -> None:
    """Streams are found by these; another value would lose every old recording."""
    entry_id = EntryId(UUID(int=1))

    assert stream_id("a", "b") == UUID("fca2069f-2a64-50ef-8d87-aa3b38b7bc03")
    assert MemoryEntry.create_id("acme", entry_id) == UUID("abc533fd-5a30-5cde-be6a-49ff5c6d5971")
    assert L3Selection.create_id("acme", "s1", "plan") == UUID(
        "5f7c3bad-a88d-55c9-86db-4205002d7317"
    )
    assert entry_id_for_key("acme", "ana", "k1") == UUID("d1a5f727-de77-5ed4-8516-42e5900f1c44")
    assert version_id(entry_id, 2) == UUID("8ff9f83c-0bdf-58d9-be4e-b11369508e29")


@given(names, names, names, names, names, names)
def test_idempotency_key_belongs_to_one_owner(
    tenant: str, owner: str, key: str, tenant2: str, owner2: str, key2: str
) -> None:
    same = entry_id_for_key(tenant, owner, key) == entry_id_for_key(tenant2, owner2, key2)

    assert same == ((tenant, owner, key) == (tenant2, owner2, key2))


@given(ids, ids, st.integers(1, 5), st.integers(1, 5))
def test_every_version_has_an_id_of_its_own(
    one: EntryId, other: EntryId, version: int, version2: int
) -> None:
    same = version_id(one, version) == version_id(other, version2)

    assert same == ((one, version) == (other, version2))
    assert version_id(one, version) != one


@given(st.uuids())
def test_entry_id_is_read_in_every_spelling(id_: UUID) -> None:
    spellings = [str(id_), id_.hex, str(id_).upper(), id_.urn, f"{{{id_}}}", f" {id_}\n"]

    assert {parse_entry_id(spelling) for spelling in spellings} == {id_}


@pytest.mark.parametrize(
    "text",
    ["", "7", "plan", "g" * 32, "1" * 31, "\u0661" * 32, "1_" * 16, "1" * 33, "\ud800" * 32],
)
def test_what_is_no_entry_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_entry_id(text)

    assert str(refusal.value) == "entry id: is not a UUID"


@given(st.lists(ids, max_size=3), st.sampled_from([str, lambda one: one.hex, lambda one: one.urn]))
def test_recorded_ids_are_read_in_every_spelling(
    recorded: list[EntryId], spell: Callable[[EntryId], str]
) -> None:
    odd = [str(one).upper().replace("-", "", 1) for one in recorded]

    assert entry_ids([spell(one) for one in recorded]) == recorded
    assert entry_ids(odd) == recorded


@pytest.mark.parametrize(
    "recorded",
    ["", "4ff9a458", "g" * 32, 7, None, UUID(int=2), UUID(int=2).bytes, str(UUID(int=2)).encode()],
)
def test_what_is_no_spelling_of_an_id_is_refused(recorded: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        entry_ids([str(UUID(int=1)), recorded])


@given(st.lists(ids, max_size=3))
def test_many_ids_are_spelt_as_each(many: list[EntryId]) -> None:
    assert spelt(many) == [str(one) for one in many]
