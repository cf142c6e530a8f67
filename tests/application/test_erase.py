"""Erasing: nothing of the text can be had or confirmed, and the log stays as it is."""

from pathlib import Path
from uuid import UUID

import pytest
from tests.application.agreement import assert_agreement
from tests.application.house import House, a_context, a_query, an_entry, open_house, replay_of

from remembrancer.application.erase import AT_ONCE
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import InvalidInputError, UnknownEntryError
from remembrancer.domain.l3_selection import L3Selection


def test_an_erased_entry_is_nowhere(house: House) -> None:
    entry_id = house.memory.remember(an_entry())
    house.memory.correct(entry_id, text="another invoice", reason="edited")

    erasure = house.memory.erase(entry_id, reason="user_request")

    assert (erasure.erased, erasure.pending) == (1, False)
    assert house.memory.recall(a_query(), a_context()).entries == ()
    assert house.store.vault.history(entry_id) == []
    assert_agreement(house.store)


def test_erasing_again_changes_nothing(house: House) -> None:
    entry_id = house.memory.remember(an_entry())
    house.memory.erase(entry_id, reason="user_request")

    again = house.memory.erase(entry_id, reason="user_request")

    assert (again.erased, again.pending) == (0, False)
    assert len(house.events()) == 2


def test_an_unknown_entry_cannot_be_erased(house: House) -> None:
    with pytest.raises(UnknownEntryError):
        house.memory.erase(UUID(int=1), reason="user_request")


@pytest.mark.parametrize("reason", ["", "half \ud83d of a pair"], ids=ascii)
def test_a_reason_must_be_one(house: House, reason: str) -> None:
    entry_id = house.memory.remember(an_entry())

    with pytest.raises(InvalidInputError, match=r"Reason\.reason"):
        house.memory.erase(entry_id, reason=reason)
    with pytest.raises(InvalidInputError, match=r"Reason\.reason"):
        house.memory.erase_owner(tenant="acme", owner="ana", reason=reason)

    assert len(house.events()) == 1


def test_words_of_a_reason_are_kept_nowhere(house: House) -> None:
    entry_id = house.memory.remember(an_entry())

    house.memory.erase(entry_id, reason="Bob asked for it")

    last = house.events()[-1]
    assert isinstance(last, MemoryEntry.EntryErased)
    assert last.reason == "stated"


def test_more_of_an_owner_than_fits_into_one_transaction_goes(house: House) -> None:
    entry_ids = house.memory.remember_many([an_entry() for _ in range(AT_ONCE + 1)])

    erasure = house.memory.erase_owner(tenant="acme", owner="ana", reason="left")

    assert erasure.erased == AT_ONCE + 1
    with house.store.transactions.over_all_tenants():
        assert not house.store.vault.current(entry_ids)


def test_all_of_an_owner_goes_and_nothing_of_another(house: House) -> None:
    house.memory.remember_many([an_entry() for _ in range(5)])
    others = house.memory.remember_many(
        [an_entry(owner="bob"), an_entry(tenant="other"), an_entry(owner="ana2")]
    )
    told: list[tuple[int, int]] = []

    erasure = house.memory.erase_owner(
        tenant="acme",
        owner="ana",
        reason="left",
        progress=lambda done, total: told.append((done, total)),
    )

    assert (erasure.erased, erasure.pending) == (5, False)
    assert told == [(done, 5) for done in range(1, 6)]
    with house.store.transactions.over_all_tenants():
        assert set(house.store.vault.current(others)) == set(others)
    assert_agreement(house.store)


def _packed(house: House, session: str = "s", owner: str = "ana") -> UUID:
    house.memory.build_pack(
        session, "plan", a_query(owner=owner), a_context(), items=[], token_budget=500
    )
    return L3Selection.create_id("acme", session, "plan")


def test_a_sessions_key_goes_with_the_session(house: House) -> None:
    house.memory.remember(an_entry())
    erased, kept = _packed(house, "s1"), _packed(house, "s2")

    erasure = house.memory.erase_session("s1", tenant="acme")

    assert (erasure.erased, erasure.pending) == (1, False)
    assert house.store.sessions.key(erased) is None
    assert house.store.sessions.key(kept) is not None


def test_another_tenants_session_of_that_name_stays(house: House) -> None:
    stream = _packed(house)

    erasure = house.memory.erase_session("s", tenant="other")

    assert erasure.erased == 0
    assert house.store.sessions.key(stream) is not None


def test_an_owners_sessions_go_with_the_owner(house: House) -> None:
    anas, bobs = _packed(house, "s1"), _packed(house, "s2", owner="bob")

    house.memory.erase_owner(tenant="acme", owner="ana", reason="left")

    assert house.store.sessions.key(anas) is None
    assert house.store.sessions.key(bobs) is not None


def test_a_replay_names_what_was_erased(house: House) -> None:
    gone, kept = house.memory.remember_many([an_entry("canary invoice"), an_entry()])
    _packed(house)

    house.memory.erase(gone, reason="user_request")

    again = house.memory.replay("s", "plan", **replay_of())
    assert [(one.id, one.reason) for one in again.differences] == [(str(gone), "erased")]
    assert str(kept) in again.included
    assert "canary" not in again.text


def test_retired_indexes_are_cleared_too(house: House) -> None:
    entry_id = house.memory.remember(an_entry())
    house.memory.reindex(embedder=HashingEmbedder(model="second"))

    house.memory.erase(entry_id, reason="user_request")

    indexes = house.store.indexes.all()
    assert len(indexes) == 2
    assert [house.store.indexes.store(one).count() for one in indexes] == [0, 0]


class Interrupted(Exception):  # noqa: N818 -- stands for whatever ends a process
    """Ends a reindexing halfway."""


def test_erasing_while_a_reindexing_waits_leaves_nothing_in_either(house: House) -> None:
    ids = house.memory.remember_many(
        [an_entry(f"invoice service {number}") for number in range(600)]
    )
    erased = []

    def erase_two(_done: int, _total: int) -> None:
        # One that is in the new index already, and one that isn't yet.
        for entry_id in (ids[0], ids[-1]):
            if entry_id not in erased:
                house.memory.erase(entry_id, reason="user_request")
                erased.append(entry_id)

    done = house.memory.reindex(embedder=HashingEmbedder(model="second"), progress=erase_two)

    assert done.vectors == 598
    for index in house.store.indexes.all():
        assert not house.store.indexes.store(index).vectors(erased)
    assert_agreement(house.store, common_word="invoice")


def test_a_building_index_that_was_left_is_cleared_too(house: House) -> None:
    ids = house.memory.remember_many(
        [an_entry(f"invoice service {number}") for number in range(300)]
    )

    def stop(_done: int, _total: int) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        house.memory.reindex(embedder=HashingEmbedder(model="second"), progress=stop)

    house.memory.erase(ids[0], reason="user_request")

    assert [one.state.value for one in house.store.indexes.all()] == ["active", "building"]
    for index in house.store.indexes.all():
        assert not house.store.indexes.store(index).vectors([ids[0]])


def test_pending_is_said_while_a_reader_holds_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_house(path) as house, open_house(path) as reader:
        entry_id = house.memory.remember(an_entry())
        with reader.store.transactions.snapshot():
            reader.store.vault.count()
            erasure = house.memory.erase(entry_id, reason="user_request")
            assert (erasure.erased, erasure.pending) == (1, True)
            assert not house.memory.finish_erasure()

        assert house.memory.finish_erasure()
