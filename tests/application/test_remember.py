"""Remembering: event, text, words and vector together, or nothing."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.application.agreement import assert_agreement
from tests.application.house import House, a_context, a_query, an_entry, open_house

from remembrancer.application.ports import Original
from remembrancer.composition.store import Store
from remembrancer.domain import EntryId, NewEntry
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import (
    EntryErasedError,
    IdempotencyConflictError,
    InvalidInputError,
    StoreFullError,
)
from remembrancer.domain.parsed import TEXT_BYTES_MAX

THREADS = 8


def test_what_is_remembered_is_found_at_once(house: House) -> None:
    entry_id = house.memory.remember(an_entry("pre-edit hooks run first", subjects=("hooks",)))

    [found] = house.memory.recall(a_query("pre-edit"), a_context()).entries

    assert (found.entry_id, found.version) == (entry_id, 1)
    assert (found.text, found.subjects) == ("pre-edit hooks run first", ("hooks",))
    assert found.recorded_at == house.clock.now()


def test_the_log_gets_digest_and_labels_and_nothing_private(house: House) -> None:
    house.memory.remember(
        an_entry("canarytext", subjects=("canarysubject",), metadata={"canarykey": "canaryvalue"})
    )

    [event] = house.events()

    assert isinstance(event, MemoryEntry.EntryRemembered)
    assert event.length == len("canarytext")
    assert "canary" not in repr(vars(event))


def test_many_come_back_with_their_ids_in_order(house: House) -> None:
    entries = [an_entry(f"text number {number}") for number in range(30)]

    ids = house.memory.remember_many(entries)

    kept = house.store.vault.current(ids)
    assert [kept[entry_id].text for entry_id in ids] == [one.text for one in entries]
    assert_agreement(house.store, common_word="text")


def test_nothing_to_remember_is_no_error(house: House) -> None:
    assert house.memory.remember_many([]) == []
    assert house.events() == []


class BrokenHalfway:
    """A sparse index that fails when it is written to for the nth time."""

    def __init__(self, real: Any, *, at: int) -> None:
        self._real, self._left = real, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def upsert_many(self, documents: Any) -> None:
        self._left -= 1
        if not self._left:
            raise StoreFullError(store="disk")
        self._real.upsert_many(documents)


def _broken(at: int) -> Callable[[Store], Store]:
    return lambda store: replace(store, sparse=BrokenHalfway(store.sparse, at=at))


def test_a_failure_leaves_nothing_of_the_batch(path: Path | None) -> None:
    with open_house(path, altered=_broken(1)) as house:
        with pytest.raises(StoreFullError):
            house.memory.remember_many([an_entry("one"), an_entry("two")])

        assert house.events() == []
        assert not assert_agreement(house.store, all_have_vectors=False)


def test_batches_before_the_failed_one_stand(path: Path | None) -> None:
    entries = [an_entry(f"entry {number}") for number in range(6)]
    with open_house(path, altered=_broken(3)) as house:
        with pytest.raises(StoreFullError):
            house.memory.remember_many(entries, batch_size=2)

        assert len(assert_agreement(house.store, common_word="entry")) == 4


def test_progress_rises_over_all_batches(house: House) -> None:
    told: list[tuple[int, int]] = []
    entries = [an_entry(f"entry {number}") for number in range(5)]

    house.memory.remember_many(
        entries, batch_size=2, progress=lambda done, total: told.append((done, total))
    )

    assert told == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_must_hold_something(house: House, size: int) -> None:
    with pytest.raises(InvalidInputError, match="batch_size"):
        house.memory.remember_many([an_entry()], batch_size=size)


# -- What isn't let in -------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n\t", "half \ud83d of a pair"], ids=ascii)
def test_a_text_that_is_none_is_refused_at_the_edge(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"NewEntry\.text"):
        an_entry(text)


def test_a_mebibyte_is_kept_and_one_byte_more_is_refused(house: House) -> None:
    largest = "words " * (TEXT_BYTES_MAX // 6)
    largest += "x" * (TEXT_BYTES_MAX - len(largest))
    entry_id = house.memory.remember(an_entry(largest))

    with pytest.raises(InvalidInputError, match="split it"):
        an_entry(largest + "x")

    assert house.store.vault.current([entry_id])[entry_id].text == largest


@pytest.mark.parametrize("text", ["a\0b", "\r\nline\u2028", "e\u0301", "\N{ROCKET}"], ids=ascii)
def test_a_text_is_kept_as_it_came(house: House, text: str) -> None:
    entry_id = house.memory.remember(an_entry(text))

    [found] = house.memory.recall(a_query(text), a_context()).entries

    assert found.entry_id == entry_id
    assert found.text == text


# -- Retries -----------------------------------------------------------------


def test_a_key_used_again_names_the_same_entry(house: House) -> None:
    entry = an_entry(idempotency_key="retry-1")

    first, second = house.memory.remember(entry), house.memory.remember(entry)

    assert first == second
    assert len(house.events()) == 1


def test_without_a_key_the_same_text_is_two_entries(house: House) -> None:
    first, second = house.memory.remember_many([an_entry(), an_entry()])

    assert first != second


def test_a_key_twice_in_one_batch_names_one_entry(house: House) -> None:
    entry = an_entry(idempotency_key="retry-1")

    first, second, other = house.memory.remember_many([entry, entry, an_entry()])

    assert first == second != other
    assert len(house.events()) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "other"},
        {"kind": "decision"},
        {"scope": "project"},
        {"subjects": ("x",)},
        {"metadata": {"a": "b"}},
        {"sensitivity": "public"},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("together", [True, False])
def test_a_key_with_other_content_is_refused(
    house: House, changes: dict[str, Any], *, together: bool
) -> None:
    plain = an_entry(idempotency_key="retry-1")
    other = NewEntry.parse({**dict(plain), **changes})
    if not together:
        house.memory.remember(plain)

    with pytest.raises(IdempotencyConflictError):
        house.memory.remember_many([plain, other])

    assert len(house.events()) == (0 if together else 1)


def test_keys_are_each_owners_own(house: House) -> None:
    ids = [
        house.memory.remember(an_entry(tenant=tenant, owner=owner, idempotency_key=key))
        for tenant, owner, key in (
            ("a", "b_c", "k"),
            ("a_b", "c", "k"),
            ("a", "b", "c_k"),
            ("acme", "ana", "k"),
            ("acme-corp", "ana", "k"),
        )
    ]

    assert len(set(ids)) == len(ids)


def test_a_retry_after_a_correction_is_the_corrected_entry(house: House) -> None:
    entry = an_entry(idempotency_key="retry-1")
    entry_id = house.memory.remember(entry)
    house.memory.correct(entry_id, text="It retries four times.", reason="outdated")

    again = house.memory.remember(entry)

    assert again == entry_id
    assert house.store.vault.current([entry_id])[entry_id].text == "It retries four times."
    assert len(house.events()) == 2


def test_the_key_of_an_erased_entry_is_spent(house: House) -> None:
    entry = an_entry(idempotency_key="retry-1")
    entry_id = house.memory.remember(entry)
    house.memory.erase(entry_id, reason="user_request")

    with pytest.raises(EntryErasedError) as refused:
        house.memory.remember(entry)

    assert refused.value.entry_id == entry_id


def test_an_identical_write_that_commits_just_before_is_adopted() -> None:
    """Not taken for an erased entry: its event is there, and the vault was read before it."""
    entry = an_entry(idempotency_key="same")
    others: list[EntryId] = []

    def overtaken(store: Store) -> Store:
        versions = store.vault.versions

        def read(wanted: Sequence[tuple[EntryId, int]]) -> dict[tuple[EntryId, int], Original]:
            found = versions(wanted)
            if not others:
                others.append(EntryId(UUID(int=0)))  # Only once; its own reading comes here too.
                others[:] = [house.memory.remember(entry)]
            return found

        store.vault.versions = read  # type: ignore[method-assign]  # one that is slower than another
        return store

    with open_house(None, altered=overtaken) as house:
        adopted = house.memory.remember(entry)

        assert [adopted] == others
        assert len(house.events()) == 1


@pytest.mark.parametrize(("key", "made"), [("same", 1), (None, THREADS)])
def test_identical_writes_at_once(house: House, key: str | None, made: int) -> None:
    """Case 24, in threads; in processes it is among the whole-kind cases."""
    together = threading.Barrier(THREADS)
    ids: list[EntryId] = []

    def write() -> None:
        together.wait()
        ids.append(house.memory.remember(an_entry(idempotency_key=key)))

    threads = [threading.Thread(target=write) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ids) == THREADS
    assert len(set(ids)) == len(house.events()) == made
