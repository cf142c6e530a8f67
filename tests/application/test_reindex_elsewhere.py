"""Reindexing to an index elsewhere, and back: built beside, looked at, switched in one step."""

from pathlib import Path

import pytest
from tests.application.agreement import assert_agreement
from tests.application.far_house import Counting, Crashed, FarHouse, Way, open_far_house
from tests.application.house import HardOfHearing, a_context, a_query, an_entry

from remembrancer.application import index_building
from remembrancer.application.ports import VectorIndex, VectorPoint
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import RecallMode
from remembrancer.domain.errors import IndexUnfitError, StoreUnavailableError
from remembrancer.domain.identity import version_id


def test_vectors_move_there_and_back_without_being_computed_again(
    path: Path | None, tmp_path: Path
) -> None:
    embedder = Counting()
    with open_far_house(path, tmp_path, embedders=(embedder,), preferred="local") as house:
        ids = house.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])
        house.memory.correct(ids[0], text="invoice changed", reason="edited")
        before = house.memory.recall(a_query(), a_context())
        written, checked = embedder.texts, 6

        there = house.memory.reindex(place="qdrant")

        assert (there.index.place, there.vectors, there.retired) == ("qdrant", 6, (1,))
        assert house.memory.recall(a_query(), a_context()) == before
        assert embedder.texts == written + checked
        assert_agreement(house.agreeing())

        back = house.memory.reindex(place="local", drop_retired=True)

        assert (back.index.place, back.vectors, back.retired) == ("local", 6, ())
        assert house.memory.recall(a_query(), a_context()) == before
        assert embedder.texts == written + 2 * checked
        assert_agreement(house.agreeing())


@pytest.mark.parametrize("to", ["local", "qdrant"])
def test_what_was_never_carried_moves_without_being_computed_again(
    path: Path | None, tmp_path: Path, to: str
) -> None:
    embedder = Counting()
    with open_far_house(path, tmp_path, embedders=(embedder,)) as house:
        house.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])
        written, checked = embedder.texts, 5

        done = house.memory.reindex(place=to, drop_retired=True)

        assert (done.index.place, done.vectors) == (to, 5)
        assert embedder.texts == written + checked
        assert_agreement(house.agreeing())


def test_another_space_is_built_there_beside_the_old(far: FarHouse) -> None:
    """Case 23."""
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])
    far.memory.project()
    other = HashingEmbedder(model="second", dimensions=32)

    done = far.memory.reindex(embedder=other)

    assert (done.index.place, done.index.embedding_tuple) == ("qdrant", other.embedding_tuple)
    found = far.memory.recall(a_query(), a_context())
    assert (found.mode, found.embedding_tuple) == (RecallMode.HYBRID, other.embedding_tuple)


@pytest.mark.parametrize("at", [1, 2, 4, 6, 8])
def test_an_interrupted_move_goes_on_and_mixes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Case 23."""
    monkeypatch.setattr(index_building, "EVENTS_AT_ONCE", 4)
    way = Way()

    def crash(_name: str, number: int) -> None:
        if number == at:
            raise Crashed

    path = tmp_path / "memory.db"
    with open_far_house(path, tmp_path, way=way, preferred="local") as house:
        ids = house.memory.remember_many([an_entry(f"invoice {number}") for number in range(9)])
        before = house.memory.recall(a_query(), a_context())
        way.after = crash
        with pytest.raises(Crashed):
            house.memory.reindex(place="qdrant")
        way.open()
        assert house.memory.recall(a_query(), a_context()) == before
        house.memory.erase(ids[0], reason="user_request")
        house.memory.correct(ids[1], text="invoice changed", reason="edited")

        done = house.memory.reindex(place="qdrant")

        assert (done.index.place, done.vectors) == ("qdrant", 9)
        assert_agreement(house.agreeing())


def test_what_is_written_after_the_move_goes_there_alone(
    path: Path | None, tmp_path: Path
) -> None:
    with open_far_house(path, tmp_path, preferred="local") as house:
        house.memory.remember(an_entry())
        house.memory.reindex(place="qdrant")

        house.memory.remember(an_entry())
        house.memory.project()

        counts = [house.store.indexes.store(one).count() for one in house.store.indexes.all()]
        assert counts == [1, 2]


def test_an_erasure_reaches_retired_indexes_there_too(far: FarHouse) -> None:
    entry_id = far.memory.remember(an_entry())
    far.memory.project()
    far.memory.reindex(place="local")

    erasure = far.memory.erase(entry_id, reason="user_request")

    assert not erasure.pending
    assert [far.store.indexes.store(one).count() for one in far.store.indexes.all()] == [0, 0]


def test_dropping_retired_indexes_destroys_them_there(far: FarHouse) -> None:
    far.memory.remember(an_entry())
    far.memory.project()
    [retired] = far.store.indexes.all()
    far.memory.reindex(place="local")

    dropped = far.memory.drop_retired_indexes()

    assert dropped == (retired.number,)
    with pytest.raises(StoreUnavailableError):
        far.place.store(retired).count()


def test_what_could_not_be_destroyed_there_stays_until_it_can(far: FarHouse) -> None:
    far.memory.remember(an_entry())
    far.memory.project()
    [retired] = far.store.indexes.all()
    far.memory.reindex(place="local")
    far.way.close()
    with pytest.raises(StoreUnavailableError):
        far.memory.drop_retired_indexes()
    kept = far.store.indexes.all()
    far.way.open()

    dropped = far.memory.drop_retired_indexes()

    assert retired.number in {one.number for one in kept}
    assert dropped == (retired.number,)
    with pytest.raises(StoreUnavailableError):
        far.place.store(retired).count()


@pytest.mark.parametrize("drop", ["on request", "after building"])
def test_an_erasure_is_pending_where_an_index_could_not_be_destroyed(
    far: FarHouse, drop: str
) -> None:
    entry_id = far.memory.remember(an_entry())
    far.memory.project()
    [retired] = far.store.indexes.all()
    far.memory.reindex(place="local")
    far.way.close()
    if drop == "on request":
        with pytest.raises(StoreUnavailableError):
            far.memory.drop_retired_indexes()
    else:
        far.memory.reindex(place="local", drop_retired=True)

    erasure = far.memory.erase(entry_id, reason="user_request")

    assert erasure.pending
    far.way.open()
    assert far.place.store(retired).count() == 1


def half_built(house: FarHouse) -> VectorIndex:
    """Begin to build there, and crash at the second batch."""
    batches = iter(range(2))

    def crash(name: str, _number: int) -> None:
        if name == "upsert_many" and next(batches) == 1:
            raise Crashed

    house.way.after = crash
    with pytest.raises(Crashed):
        house.memory.reindex(place="qdrant")
    house.way.open()
    return house.store.indexes.all()[-1]


def test_what_was_half_built_there_goes_when_another_is_begun(
    path: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_building, "EVENTS_AT_ONCE", 1)
    with open_far_house(path, tmp_path, preferred="local") as house:
        house.memory.remember_many([an_entry(), an_entry()])
        half = half_built(house)

        done = house.memory.reindex(place="local")

        assert half.number not in {done.index.number, *done.retired}
        with pytest.raises(StoreUnavailableError):
            house.place.store(half).count()


def test_an_erasure_is_pending_where_something_half_built_could_not_be_destroyed(
    path: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_building, "EVENTS_AT_ONCE", 1)
    with open_far_house(path, tmp_path, preferred="local") as house:
        entry_id, _ = house.memory.remember_many([an_entry(), an_entry()])
        half = half_built(house)
        house.way.close()
        retired = house.memory.reindex(place="local").retired

        erasure = house.memory.erase(entry_id, reason="user_request")

        assert half.number in retired
        assert erasure.pending
        house.way.open()
        assert house.memory.finish_erasure()
        assert half.number in house.memory.drop_retired_indexes()


def test_vectors_come_back_though_the_index_there_is_gone_for_good(far: FarHouse) -> None:
    far.memory.remember_many([an_entry(f"invoice {number}") for number in range(3)])
    far.memory.project()
    far.way.close()

    done = far.memory.reindex(place="local")

    assert (done.index.place, done.vectors) == ("local", 3)
    assert far.memory.recall(a_query(), a_context()).mode is RecallMode.HYBRID


@pytest.mark.parametrize("damage", ["one too many", "one missing", "one exchanged"])
def test_what_was_built_is_looked_at_before_it_answers(
    path: Path | None, tmp_path: Path, damage: str
) -> None:
    with open_far_house(path, tmp_path, preferred="local") as house:
        ids = house.memory.remember_many([an_entry("fish"), an_entry("paper")])
        built: list[VectorIndex] = []

        def harm(name: str, _number: int) -> None:
            if name == "upsert_many" and not built:
                built.append(house.store.indexes.all()[-1])
                store = house.place.store(built[0])
                kept = store.kept(ids)
                if damage == "one too many":
                    store.upsert(version_id(ids[0], 9), kept[ids[0]].vector, {})
                elif damage == "one missing":
                    store.delete(ids[0])
                else:
                    store.upsert_many([VectorPoint(ids[0], kept[ids[1]].vector, {}, 1)])

        house.way.after = harm

        with pytest.raises(IndexUnfitError):
            house.memory.reindex(place="qdrant")

        assert [one.place for one in house.store.indexes.all()] == ["local"]
        with pytest.raises(StoreUnavailableError):
            house.place.store(built[0]).count()
        assert house.memory.reindex(place="qdrant").vectors == 2


def test_missing_vectors_are_given_to_an_index_there(path: Path | None, tmp_path: Path) -> None:
    deaf = HardOfHearing()
    with open_far_house(path, tmp_path, embedders=(deaf,)) as house:
        house.memory.remember_many([an_entry("unheard"), an_entry("heard")])
        house.memory.project()
        house.container.embedders().add(deaf)
        house.container.embedders()._by_space[deaf.embedding_tuple] = HashingEmbedder()

        added = house.memory.reindex_missing()

        assert added == 1
        assert house.there().count() == 2


def test_two_that_build_there_at_once_are_one_too_many(tmp_path: Path) -> None:
    with open_far_house(tmp_path / "memory.db", tmp_path) as house:
        house.memory.remember(an_entry())
        space = house.memory.status().indexes[0].embedding_tuple
        building = house.store.indexes.begin(space, "qdrant")
        house.store.outbox.claim(building, "another process", lease_s=60)

        with pytest.raises(StoreUnavailableError, match="another process builds it"):
            house.memory.reindex()
