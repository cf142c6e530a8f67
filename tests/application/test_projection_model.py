"""Whatever is written, erased, interrupted and moved: in the end index and vault agree."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.application.agreement import assert_agreement
from tests.application.far_house import AWAY, Crashed, FarHouse, open_far_house
from tests.application.house import an_entry

from remembrancer.application import index_building, projection
from remembrancer.application.entry_index import index_id
from remembrancer.application.ports import IndexState
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.identity import EntryId

numbers = st.integers(0, 9)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("remember"), st.integers(1, 6)),
        st.tuples(st.just("correct"), numbers),
        st.tuples(st.just("erase"), numbers),
        st.tuples(st.just("project"), st.just(0)),
        st.tuples(st.just("crash before"), st.integers(1, 5)),
        st.tuples(st.just("crash after"), st.integers(1, 5)),
        st.tuples(st.just("away"), st.integers(1, 5)),
        st.tuples(st.just("to qdrant"), st.just(0)),
        st.tuples(st.just("to local"), st.just(0)),
    ),
    min_size=3,
    max_size=16,
)


def _interrupted_at(house: FarHouse, calls: int, effect: str, error: BaseException) -> None:
    """Let the way fail at one of its next calls."""
    last = len(house.way.calls) + calls

    def fail(_name: str, number: int) -> None:
        if number >= last:
            raise error

    house.way.open()
    setattr(house.way, effect, fail)


def _do(house: FarHouse, ids: list[EntryId], name: str, number: int) -> None:
    memory = house.memory
    match name:
        case "remember":
            ids += memory.remember_many(
                [an_entry(f"invoice {len(ids) + one}") for one in range(number)]
            )
        case "correct" if ids:
            entry_id = ids[number % len(ids)]
            if house.store.vault.current([entry_id]):
                memory.correct(entry_id, text=f"changed {len(house.events())}", reason="edited")
        case "erase" if ids:
            memory.erase(ids[number % len(ids)], reason="user_request")
        case "project":
            memory.project()
        case "crash before" | "crash after":
            _interrupted_at(house, number, name.removeprefix("crash "), Crashed())
        case "away":
            _interrupted_at(house, number, "before", AWAY)
        case "to qdrant" | "to local":
            memory.reindex(place=name.removeprefix("to "))


def _assert_exact(house: FarHouse) -> None:
    """Every version has its own text's vector, under its own number."""
    embedder = HashingEmbedder()
    ids = {EntryId(event.entry_id) for event in house.events() if hasattr(event, "entry_id")}
    for entry_id in ids:
        for one in house.store.vault.history(entry_id):
            kept = house.there().kept([index_id(one)])[index_id(one)]
            [vector] = embedder.embed_documents([one.text])
            assert vector is not None
            assert list(kept.vector) == list(vector)
            assert kept.version in {None, one.version}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(operations=OPERATIONS)
def test_in_the_end_the_index_holds_what_the_vault_does(
    operations: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(index_building, "EVENTS_AT_ONCE", 3)
    ids: list[EntryId] = []
    with TemporaryDirectory() as folder, open_far_house(None, Path(folder)) as house:
        for name, number in operations:
            with suppress(Crashed, StoreUnavailableError):
                _do(house, ids, name, number)
        house.way.open()
        house.memory.project()
        house.memory.finish_erasure()
        for one in house.store.indexes.all():
            if one.state is not IndexState.ACTIVE:
                house.store.indexes.drop(one)

        if ids:
            _assert_exact(house)
        assert_agreement(house.agreeing())
