"""Carrying entries to an index elsewhere: none lost, none twice, no erased one afterwards."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.application.agreement import assert_agreement
from tests.application.far_house import Counting, Crashed, FarHouse, Way, open_far_house
from tests.application.house import HardOfHearing, a_context, a_query, an_entry

from remembrancer.application import dense_search, projection
from remembrancer.domain import LeftOutReason, RecallMode
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.identity import version_id


def test_an_entry_is_found_by_vector_once_it_was_carried(far: FarHouse) -> None:
    far.memory.remember(an_entry())
    before = far.memory.recall(a_query(), a_context())

    stands = far.memory.project()

    after = far.memory.recall(a_query(), a_context())
    assert (before.mode, before.mode_reason) == (RecallMode.SPARSE, "vector_index_behind")
    assert (after.mode, after.mode_reason) == (RecallMode.HYBRID, "")
    assert after.entries[0].ranks.dense_rank == 1
    assert (stands.behind, stands.waiting_vectors, stands.waiting_erasures) == (0, 0, 0)


def test_writing_asks_nothing_of_the_index(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry())
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(3)])

    far.memory.correct(entry_id, text="changed", reason="edited")

    assert far.way.calls == []


def test_vectors_are_computed_once(path: Path | None, tmp_path: Path) -> None:
    embedder = Counting()
    with open_far_house(path, tmp_path, embedders=(embedder,)) as house:
        ids = house.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])
        house.memory.project()
        house.memory.correct(ids[0], text="invoice changed", reason="edited")
        house.memory.correct(ids[0], text="invoice changed again", reason="edited")

        house.memory.project()

        assert embedder.texts == 7
        assert_agreement(house.agreeing())


def test_a_superseded_version_is_found_under_its_own_id(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry())
    far.memory.project()
    far.memory.correct(entry_id, text="The fish is old.", reason="edited")

    far.memory.project()

    kept = far.there().kept([entry_id, version_id(entry_id, 1)])
    assert {place: one.version for place, one in kept.items()} == {
        entry_id: 2,
        version_id(entry_id, 1): 1,
    }


def test_an_outdated_vector_is_not_taken_for_the_entrys(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry("fish soup"))
    far.memory.remember(an_entry("paper"))
    far.memory.project()
    far.memory.correct(entry_id, text="unrelated words", reason="edited")

    found = far.memory.recall(a_query("fish soup"), a_context())

    assert found.mode is RecallMode.HYBRID
    assert entry_id not in {one.entry_id for one in found.entries}
    assert [one.reason for one in found.left_out if one.entry_id == entry_id] == [
        LeftOutReason.STALE
    ]


def test_an_outdated_vector_makes_room_for_the_next(far: FarHouse) -> None:
    outdated = far.memory.remember_many([an_entry("fish soup") for _ in range(150)])
    wanted = far.memory.remember(an_entry("fish"))
    far.memory.project()
    far.memory.remember_many([an_entry("paper")])
    for entry_id in outdated:
        far.memory.correct(entry_id, text="unrelated", reason="edited")

    found = far.memory.recall(a_query("fish soup", limit=1), a_context())

    assert [one.entry_id for one in found.entries] == [wanted]


def test_what_words_find_stays_found_though_its_vector_is_outdated(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry("fish soup"))
    far.memory.project()
    far.memory.correct(entry_id, text="fish again", reason="edited")

    found = far.memory.recall(a_query("fish"), a_context())

    assert [one.entry_id for one in found.entries] == [entry_id]
    assert found.entries[0].ranks.dense_rank is None
    assert found.left_out == ()


def test_a_text_without_a_vector_leaves_none_of_its_predecessor(
    path: Path | None, tmp_path: Path
) -> None:
    with open_far_house(path, tmp_path, embedders=(HardOfHearing(),)) as house:
        entry_id = house.memory.remember(an_entry("heard"))
        house.memory.project()
        house.memory.correct(entry_id, text="unheard", reason="edited")

        house.memory.project()

        assert house.there().present([entry_id, version_id(entry_id, 1)]) == {
            version_id(entry_id, 1)
        }


def test_there_is_nothing_to_carry_where_the_store_keeps_the_vectors(
    path: Path | None, tmp_path: Path
) -> None:
    with open_far_house(path, tmp_path, preferred="local") as house:
        house.memory.remember(an_entry())

        stands = house.memory.project()

        assert (stands.index, stands.behind) == (None, 0)
        assert house.way.calls == []


def test_progress_rises_to_the_end_of_the_log(
    far: FarHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection, "EVENTS_AT_ONCE", 10)
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(25)])
    told: list[tuple[int, int]] = []

    far.memory.project(progress=lambda done, total: told.append((done, total)))

    assert told == [(10, 25), (20, 25), (25, 25)]


# -- Erasures ----------------------------------------------------------------


def test_an_erasure_reaches_the_index_before_its_caller_goes_on(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry())
    far.memory.correct(entry_id, text="changed", reason="edited")
    far.memory.project()

    erasure = far.memory.erase(entry_id, reason="user_request")

    assert not erasure.pending
    assert far.there().count() == 0


def test_an_erasure_is_pending_while_the_index_is_away(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry())
    far.memory.project()
    far.way.close()

    erasure = far.memory.erase(entry_id, reason="user_request")

    assert erasure.pending
    assert not far.memory.finish_erasure()
    assert far.memory.status().waiting_erasures == 1
    far.way.open()
    assert far.memory.finish_erasure()
    assert far.there().count() == 0


def test_an_erasure_reaches_what_was_carried_and_not_recorded(
    far: FarHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, stays = far.memory.remember_many([an_entry("invoice one"), an_entry("invoice two")])
    with monkeypatch.context() as broken:
        broken.setattr(type(far.store.indexes), "advance", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            far.memory.project()
    index = far.store.indexes.active()

    erasure = far.memory.erase(gone, reason="user_request")

    assert index is not None
    assert index.position == 0
    assert not erasure.pending
    assert far.there().present([gone, stays]) == {stays}


def test_an_erasure_is_pending_where_nobody_can_say_what_was_carried(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry())
    far.way.close()

    assert far.memory.erase(entry_id, reason="user_request").pending
    far.way.open()
    assert far.memory.finish_erasure()


def test_erasures_go_first(far: FarHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "EVENTS_AT_ONCE", 5)
    first = far.memory.remember(an_entry())
    far.memory.project()
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(20)])
    far.way.close()
    far.memory.erase(first, reason="user_request")
    far.way.open()
    far.way.calls.clear()

    far.memory.project()

    assert next(name for name in far.way.calls if "many" in name) == "delete_many"


def test_what_was_erased_before_it_was_carried_never_arrives(far: FarHouse) -> None:
    gone, stays = far.memory.remember_many([an_entry("invoice one"), an_entry("invoice two")])
    far.memory.erase(gone, reason="user_request")

    far.memory.project()

    assert far.there().present([gone, stays]) == {stays}


def test_what_is_erased_while_it_is_on_its_way_goes_again(far: FarHouse) -> None:
    gone, stays = far.memory.remember_many([an_entry("invoice one"), an_entry("invoice two")])

    def erase_meanwhile(name: str, _number: int) -> None:
        if name == "upsert_many":
            far.way.open()
            far.memory.erase(gone, reason="user_request")

    far.way.before = erase_meanwhile

    far.memory.project()

    assert far.there().present([gone, stays]) == {stays}


def test_what_is_corrected_while_it_is_on_its_way_is_carried_again(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry("invoice one"))

    def correct_meanwhile(name: str, _number: int) -> None:
        if name == "upsert_many":
            far.way.open()
            far.memory.correct(entry_id, text="invoice two", reason="edited")

    far.way.before = correct_meanwhile

    far.memory.project()

    kept = far.there().kept([entry_id, version_id(entry_id, 1)])
    assert {one.version for one in kept.values()} == {1, 2}


# -- Away, and killed --------------------------------------------------------


def test_recall_goes_by_words_while_the_index_is_away(far: FarHouse) -> None:
    far.memory.remember(an_entry())
    far.memory.project()
    far.way.close()

    found = far.memory.recall(a_query(), a_context())

    assert len(found.entries) == 1
    assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "vector_index_unavailable")
    stands = far.memory.status()
    assert (stands.dense, stands.versions_by_vector) == ("vector_index_unavailable", None)


def test_recall_goes_by_words_where_the_index_is_far_behind(
    far: FarHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense_search, "BEHIND_MAX", 3)
    far.memory.remember(an_entry())
    far.memory.project()
    far.memory.remember_many([an_entry() for _ in range(4)])

    found = far.memory.recall(a_query(), a_context())

    assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "vector_index_behind")
    assert len(found.entries) == 5


def test_what_waits_is_carried_once_the_index_is_back(far: FarHouse) -> None:
    far.way.close()
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])
    with pytest.raises(StoreUnavailableError, match="away"):
        far.memory.project()
    assert far.memory.status().waiting_vectors == 5

    far.way.open()
    far.memory.project()

    assert far.there().count() == 5
    assert far.memory.status().waiting_vectors == 0


@pytest.mark.parametrize("effect", ["before", "after"])
@pytest.mark.parametrize("at", range(1, 13))
def test_a_crash_anywhere_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, effect: str
) -> None:
    monkeypatch.setattr(projection, "EVENTS_AT_ONCE", 4)
    path, embedder, way = tmp_path / "memory.db", Counting(), Way()

    def crash(_name: str, number: int) -> None:
        if number == at:
            raise Crashed

    with open_far_house(path, tmp_path, way=way, embedders=(embedder,)) as house:
        ids = house.memory.remember_many([an_entry(f"invoice {number}") for number in range(9)])
        house.memory.correct(ids[1], text="invoice changed", reason="edited")
        setattr(way, effect, crash)
        try:
            house.memory.project()
            house.memory.erase(ids[2], reason="user_request")
            house.memory.correct(ids[3], text="invoice changed", reason="edited")
            house.memory.project()
        except Crashed:
            way.open()
            house.memory.project()
        way.open()
        house.memory.finish_erasure()
        house.memory.project()

        assert_agreement(house.agreeing())
        assert embedder.texts <= 11  # Each text that was written, once.


def test_a_crash_between_arrival_and_record_repeats_the_batch(
    far: FarHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(3)])

    def crash(*_: object) -> None:
        raise Crashed

    with monkeypatch.context() as patched:
        patched.setattr(type(far.store.indexes), "advance", crash)
        with pytest.raises(Crashed):
            far.memory.project()
    assert far.memory.status().waiting_vectors == 3

    far.memory.project()

    assert far.there().count() == 3
    assert far.memory.status().waiting_vectors == 0


def test_of_two_that_carry_one_leaves_it_to_the_other(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_far_house(path, tmp_path) as house:
        house.memory.remember(an_entry())
        index = house.store.indexes.active()
        assert index is not None
        house.store.outbox.claim(index, "another process", lease_s=60)

        stands = house.container.projection()()

        assert (stands.busy, stands.behind) == (True, 1)
        assert house.way.calls == []
        house.store.outbox.release(index, "another process")
        assert not house.container.projection()().busy


def test_entries_written_while_others_are_carried_come_next(far: FarHouse) -> None:
    far.memory.remember(an_entry("invoice one"))
    late = []

    def write_meanwhile(name: str, _number: int) -> None:
        if name == "upsert_many":
            far.way.open()
            late.append(far.memory.remember(an_entry("invoice two")))

    far.way.before = write_meanwhile

    far.memory.project()

    assert far.there().present(late) == set(late)


def test_the_claim_of_one_that_was_killed_ends_by_itself(tmp_path: Path) -> None:
    with open_far_house(tmp_path / "memory.db", tmp_path) as house:
        house.memory.remember(an_entry())
        index = house.store.indexes.active()
        assert index is not None
        house.store.outbox.claim(index, "a killed process", lease_s=projection.LEASE_S)

        house.clock.advance(timedelta(seconds=projection.LEASE_S))

        assert house.memory.project().behind == 0


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
