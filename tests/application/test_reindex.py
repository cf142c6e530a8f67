"""Reindexing: built beside, switched in one step, resumed where it stopped."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.application.agreement import assert_agreement
from tests.application.house import House, a_context, a_query, an_entry, open_house
from typing_extensions import override

from remembrancer.adapters.wordllama.embedder import WordLlamaEmbedder
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.application.ports import IndexState
from remembrancer.application.remember import Progress
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import RecallMode
from remembrancer.domain.errors import SettingsError, StoreUnavailableError
from remembrancer.domain.vector import Vector

MANY = 600
OLD, NEW = HashingEmbedder(), HashingEmbedder(model="second", dimensions=32)
TEXTS = [f"invoice service {number}" for number in range(MANY)]


class Interrupted(Exception):  # noqa: N818 -- stands for whatever ends a process
    """Ends a reindexing halfway."""


def _stopping_at(step: int) -> Progress:
    steps = iter(range(1, step + 1))

    def progress(_done: int, _total: int) -> None:
        if next(steps) == step:
            raise Interrupted

    return progress


def _states(house: House) -> list[tuple[int, IndexState]]:
    return [(one.number, one.state) for one in house.store.indexes.all()]


def test_another_space_takes_over_beside_the_old(house: House) -> None:
    house.memory.remember_many([an_entry() for _ in range(3)])
    house.memory.correct(house.memory.remember(an_entry()), text="edited text", reason="edited")

    done = house.memory.reindex(embedder=NEW)

    assert (done.index.number, done.vectors, done.resumed_from) == (2, 5, 0)
    assert done.index.embedding_tuple == NEW.embedding_tuple
    assert done.retired == (1,)
    assert _states(house) == [(1, IndexState.RETIRED), (2, IndexState.ACTIVE)]
    found = house.memory.recall(a_query(), a_context())
    assert found.mode is RecallMode.HYBRID
    assert found.embedding_tuple == NEW.embedding_tuple
    assert_agreement(house.store)


def test_the_static_model_can_be_cut_to_another_width(path: Path | None) -> None:
    model = StaticModel()
    wide, narrow = (WordLlamaEmbedder(model=model, dimensions=width) for width in (256, 64))
    with open_house(path, embedders=(wide, narrow)) as house:
        ids = house.memory.remember_many([an_entry("How money is kept"), an_entry("Old fish")])

        done = house.memory.reindex(to=narrow.embedding_tuple)

        assert done.index.embedding_tuple.dimensions == 64
        found = house.memory.recall(a_query("storage of cash"), a_context())
        assert found.embedding_tuple == narrow.embedding_tuple
        assert found.entries[0].entry_id == ids[0]
        assert_agreement(house.store)


def test_what_is_written_afterwards_goes_into_the_new_index_alone(house: House) -> None:
    house.memory.remember(an_entry())
    house.memory.reindex(embedder=NEW)

    house.memory.remember(an_entry())

    counts = [house.store.indexes.store(one).count() for one in house.store.indexes.all()]
    assert counts == [1, 2]


def test_retired_indexes_are_dropped_on_request(house: House) -> None:
    house.memory.remember(an_entry())
    house.memory.reindex(embedder=NEW)

    done = house.memory.reindex(drop_retired=True)

    assert done.retired == ()
    assert _states(house) == [(3, IndexState.ACTIVE)]
    assert done.index.embedding_tuple == OLD.embedding_tuple


def test_an_empty_memory_can_be_reindexed(house: House) -> None:
    done = house.memory.reindex()

    assert (done.index.number, done.vectors) == (1, 0)
    house.memory.remember(an_entry())
    assert house.memory.recall(a_query(), a_context()).mode is RecallMode.HYBRID


def test_without_an_embedder_there_is_nothing_to_build(path: Path | None) -> None:
    with open_house(path, embedders=()) as house:
        with pytest.raises(SettingsError, match="embedder"):
            house.memory.reindex()
        with pytest.raises(SettingsError, match="second"):
            house.memory.reindex(to=NEW.embedding_tuple)

        assert _states(house) == []


def test_progress_rises_to_the_end_of_the_log(house: House) -> None:
    house.memory.remember_many([an_entry(text) for text in TEXTS])
    told: list[tuple[int, int]] = []

    house.memory.reindex(progress=lambda done, total: told.append((done, total)))

    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) > 2
    assert told[-1] == (MANY, MANY)


# -- Interrupted -------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3])
def test_answers_come_from_one_space_while_another_is_half_built(house: House, step: int) -> None:
    """Case 23."""
    house.memory.remember_many([an_entry(text) for text in TEXTS])
    before = house.memory.recall(a_query("invoice 17"), a_context())

    with pytest.raises(Interrupted):
        house.memory.reindex(embedder=NEW, progress=_stopping_at(step))

    assert _states(house) == [(1, IndexState.ACTIVE), (2, IndexState.BUILDING)]
    assert house.memory.recall(a_query("invoice 17"), a_context()) == before
    assert before.embedding_tuple == OLD.embedding_tuple


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_interrupted_run_goes_on_in_another_process(tmp_path: Path, step: int) -> None:
    path = tmp_path / "memory.db"
    with open_house(path) as house:
        ids = house.memory.remember_many([an_entry(text) for text in TEXTS])
        with pytest.raises(Interrupted):
            house.memory.reindex(embedder=NEW, progress=_stopping_at(step))

    with open_house(path) as house:
        house.memory.correct(ids[3], text="invoice service changed", reason="edited")
        house.memory.erase(ids[4], reason="user_request")
        house.memory.erase(ids[-1], reason="user_request")
        house.memory.remember(an_entry("invoice service added"))
        done = house.memory.reindex(embedder=NEW)

        assert done.resumed_from > 0
        assert done.vectors == MANY
        assert_agreement(house.store, common_word="invoice")
        found = house.memory.recall(a_query("invoice service changed"), a_context())
        assert found.embedding_tuple == NEW.embedding_tuple
        # Not always the first: some of the others hash to the same vector, and ties go by id.
        assert ids[3] in {entry.entry_id for entry in found.entries}


def test_turning_to_a_third_space_drops_the_half_built_second(house: House) -> None:
    house.memory.remember_many([an_entry(text) for text in TEXTS])
    with pytest.raises(Interrupted):
        house.memory.reindex(embedder=NEW, progress=_stopping_at(1))
    third = HashingEmbedder(model="third")

    done = house.memory.reindex(embedder=third)

    assert (done.resumed_from, done.retired) == (0, (1,))
    assert _states(house) == [(1, IndexState.RETIRED), (3, IndexState.ACTIVE)]


def test_a_half_built_index_goes_only_where_that_is_asked_for(house: House) -> None:
    house.memory.remember_many([an_entry(text) for text in TEXTS])
    with pytest.raises(Interrupted):
        house.memory.reindex(embedder=NEW, progress=_stopping_at(1))

    kept = house.memory.drop_retired_indexes()
    dropped = house.memory.drop_retired_indexes(unfinished=True)

    assert (kept, dropped) == ((), (2,))
    assert _states(house) == [(1, IndexState.ACTIVE)]


# -- Others meanwhile --------------------------------------------------------


def test_a_process_with_the_old_embedder_goes_by_words(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_house(path) as late, open_house(path) as house:
        late.memory.remember(an_entry())
        assert late.memory.recall(a_query(), a_context()).mode is RecallMode.HYBRID

        house.memory.reindex(embedder=NEW, drop_retired=True)

        found = late.memory.recall(a_query(), a_context())
        assert len(found.entries) == 1
        assert (found.mode, found.mode_reason) == (RecallMode.SPARSE, "no_embedder_for_index")
        assert found.embedding_tuple is None
        assert late.memory.status().dense == "no_embedder_for_index"


def test_what_that_process_writes_gets_its_vector_from_the_next_reindexing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    with open_house(path) as late, open_house(path) as house:
        late.memory.remember(an_entry())
        house.memory.reindex(embedder=NEW)
        late.memory.remember(an_entry("late invoice arrives"))
        assert_agreement(house.store, all_have_vectors=False)

        house.memory.reindex(embedder=NEW)

        assert_agreement(house.store)


class _Switching(HashingEmbedder):
    """While it embeds, another process finishes its reindexing."""

    switch: Callable[[], Any] | None = None

    @override
    def embed_query(self, text: str) -> Vector | None:
        self._let_others_switch()
        return super().embed_query(text)

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        self._let_others_switch()
        return super().embed_documents(texts)

    def _let_others_switch(self) -> None:
        switch, self.switch = self.switch, None
        if switch is not None:
            switch()


def test_a_switch_between_question_and_answer_mixes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    embedder = _Switching()
    with (
        open_house(path, embedders=(embedder, NEW)) as house,
        open_house(path, embedders=(OLD, NEW)) as other,
    ):
        house.memory.remember_many([an_entry("invoice one two"), an_entry("invoice")])
        embedder.switch = lambda: other.memory.reindex(to=NEW.embedding_tuple, drop_retired=True)

        found = house.memory.recall(a_query("invoice"), a_context())

        assert found.embedding_tuple == NEW.embedding_tuple
        assert found.mode is RecallMode.HYBRID
        assert found.entries[0].ranks.dense_score == pytest.approx(1.0)


@pytest.mark.parametrize("when", ["before it is embedded", "while it is embedded"])
def test_an_entry_gets_its_vector_through_a_switch(tmp_path: Path, when: str) -> None:
    path = tmp_path / "memory.db"
    embedder = _Switching()
    with (
        open_house(path, embedders=(embedder, NEW)) as house,
        open_house(path, embedders=(OLD, NEW)) as other,
    ):
        first = house.memory.remember(an_entry("invoice one two"))

        def switch() -> None:
            other.memory.reindex(to=NEW.embedding_tuple, drop_retired=True)

        if when == "before it is embedded":
            switch()
        else:
            embedder.switch = switch
        house.memory.remember(an_entry("invoice"))
        other.memory.reindex(to=OLD.embedding_tuple, drop_retired=True)
        embedder.switch = switch
        house.memory.correct(first, text="invoice corrected", reason="edited")

        found = house.memory.recall(a_query("invoice"), a_context())
        assert found.embedding_tuple == NEW.embedding_tuple
        assert_agreement(house.store)


# -- Words -------------------------------------------------------------------


def test_words_are_rebuilt_from_log_and_vault(house: House) -> None:
    ids = house.memory.remember_many([an_entry(text) for text in TEXTS[:300]])
    house.memory.correct(ids[0], text="invoice service changed", reason="edited")
    house.memory.erase(ids[1], reason="user_request")
    before = house.memory.recall(a_query("changed 17"), a_context())
    house.store.sparse.clear()

    house.memory.reindex(words=True)

    assert house.memory.recall(a_query("changed 17"), a_context()).entries == before.entries
    assert_agreement(house.store, common_word="invoice")


@pytest.mark.parametrize("step", [1, 2, 3])
def test_of_two_that_reindex_at_once_one_finishes_for_both(house: House, step: int) -> None:
    house.memory.remember_many([an_entry(text) for text in TEXTS])
    steps = iter(range(1, 1_000))

    def another_does(_done: int, _total: int) -> None:
        if next(steps) == step:
            house.memory.reindex()

    done = house.memory.reindex(progress=another_does)

    assert (done.index.state, done.vectors) == (IndexState.ACTIVE, MANY)
    assert_agreement(house.store, common_word="invoice")


def test_an_index_that_others_have_replaced_is_not_finished(house: House) -> None:
    house.memory.remember_many([an_entry(text) for text in TEXTS])
    steps = iter(range(1, 1_000))

    def others_do(_done: int, _total: int) -> None:
        if next(steps) == 1:
            house.memory.reindex()
            house.memory.reindex()

    with pytest.raises(StoreUnavailableError, match="another was put in its place"):
        house.memory.reindex(progress=others_do)

    assert_agreement(house.store, common_word="invoice")
