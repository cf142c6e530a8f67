"""Selecting: the first request decides, and what it decided is committed."""

import threading
from array import array
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
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

from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.adapters.sealing.aes_gcm import AesGcmSealer
from remembrancer.composition.store import Store
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import RecallKind, Selection, Sensitivity
from remembrancer.domain.errors import InvalidInputError, SealBrokenError, StoreFullError
from remembrancer.domain.l3_selection import L3Selection

STREAM = L3Selection.create_id("acme", "s", "plan")
RACERS = 8


def _without_indexes(store: Store) -> Store:
    return replace(
        store,
        sparse=Forbidden("the sparse index"),
        indexes=Forbidden("a vector index"),
    )


def test_what_recall_finds_is_committed_with_how_it_was_found(house: House) -> None:
    house.memory.remember_many([an_entry("invoice retry"), an_entry("invoice storage")])
    query = a_query("invoice storage", limit=1, scopes=("project/alpha", "project"))

    selection = house.memory.select("s", "plan", query, a_context())

    found = house.memory.recall(query, a_context())
    assert [
        (one.entry_id, one.version, one.digest, one.score, one.ranks) for one in selection.entries
    ] == [(one.entry_id, one.version, one.digest, one.score, one.ranks) for one in found.entries]
    assert (selection.mode, selection.mode_reason) == (found.mode, found.mode_reason)
    assert selection.left_out == found.left_out
    assert selection.left_out_count == found.left_out_count == 1
    assert selection.limit == 1
    assert selection.embedding_tuple == HashingEmbedder().embedding_tuple
    assert selection.filter["scopes"] == ("project/alpha", "project")
    assert selection.filter["sensitivity"] == ("public", "internal")


def test_what_is_committed_reads_back_the_same(house: House) -> None:
    house.memory.remember_many([an_entry(), an_entry()])

    selected = house.memory.select("s", "plan", a_query(), a_context())
    again = house.memory.select("s", "plan", a_query(), a_context())

    assert again == selected
    assert len(house.events()) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"question": "something else"},
        {"limit": 1},
        {"scopes": ("elsewhere",)},
        {"principal": "agent-8"},
        {"read_ceiling": Sensitivity.PUBLIC},
        {"kind": RecallKind.CORE},
    ],
    ids=str,
)
def test_a_second_request_asks_no_index(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "memory.db"
    with open_house(path) as house:
        house.memory.remember_many([an_entry(), an_entry()])
        selected = house.memory.select("s", "plan", a_query(), a_context())

    with open_house(path, altered=_without_indexes) as house:
        again = house.memory.select("s", "plan", a_query(**changes), a_context())

    assert again == selected


def test_stages_sessions_and_tenants_have_selections_of_their_own(house: House) -> None:
    house.memory.remember(an_entry())
    query = a_query()

    made = [
        house.memory.select("s", "plan", query, a_context()),
        house.memory.select("s", "do", query, a_context()),
        house.memory.select("t", "plan", query, a_context()),
        house.memory.select("s", "plan", a_query(tenant="other"), a_context()),
    ]

    assert [len(one.entries) for one in made] == [1, 1, 1, 0]
    assert len(house.events()) == 5


def test_another_owner_is_refused(house: House) -> None:
    house.memory.select("s", "plan", a_query(), a_context())

    with pytest.raises(InvalidInputError, match="another owner"):
        house.memory.select("s", "plan", a_query(owner="bob"), a_context())

    assert len(house.events()) == 1


@pytest.mark.parametrize(("session", "stage"), [("", "plan"), ("s", " "), ("s\n", "plan")])
def test_session_and_stage_are_names(house: House, session: str, stage: str) -> None:
    with pytest.raises(InvalidInputError):
        house.memory.select(session, stage, a_query(), a_context())


def test_nothing_found_is_a_selection_too(house: House) -> None:
    selection = house.memory.select("s", "plan", a_query(), a_context())

    assert selection.entries == ()
    assert len(house.events()) == 1


# -- The question's vector ---------------------------------------------------


def test_the_query_vector_is_sealed_with_a_key_in_the_vault(house: House) -> None:
    house.memory.remember(an_entry())
    selection = house.memory.select("s", "plan", a_query("invoice service"), a_context())
    sealer = AesGcmSealer(randomness=SystemRandomness())

    key = house.store.sessions.key(STREAM)

    assert key is not None
    assert selection.sealed_query_vector is not None
    sealed = b64decode(selection.sealed_query_vector)
    plain = HashingEmbedder().embed_query("invoice service")
    assert plain is not None
    opened = sealer.open(sealed, key=key, identity=STREAM.bytes)
    assert opened == array("f", plain).tobytes()
    assert opened not in sealed
    with pytest.raises(SealBrokenError):
        sealer.open(sealed, key=key, identity=L3Selection.create_id("acme", "s", "do").bytes)


def test_neither_question_nor_subject_is_in_the_log(house: House) -> None:
    house.memory.remember(an_entry())
    query = a_query("canaryquestion", kind=RecallKind.PEOPLE, subjects=("canarysubject",))

    house.memory.select("s", "plan", query, a_context())

    assert "canary" not in repr([vars(event) for event in house.events()])


def test_erasing_the_session_destroys_the_key_and_keeps_the_selection(house: House) -> None:
    house.memory.remember(an_entry())
    selected = house.memory.select("s", "plan", a_query(), a_context())

    house.memory.erase_session("s", tenant="acme")

    assert house.store.sessions.key(STREAM) is None
    assert house.memory.select("s", "plan", a_query(), a_context()) == selected
    assert house.store.sessions.key(STREAM) is None


# -- Races and failures ------------------------------------------------------


@pytest.fixture
def racers(path: Path | None) -> Iterator[list[House]]:
    """Open the memory once a thread where that can be, each as a process would."""
    with ExitStack() as stack:
        if path is None:
            yield [stack.enter_context(open_house(None))] * RACERS
        else:
            yield [stack.enter_context(open_house(path)) for _ in range(RACERS)]


def test_of_those_that_race_one_commits_and_the_others_adopt(racers: list[House]) -> None:
    racers[0].memory.remember_many([an_entry(f"invoice number {n}") for n in range(RACERS)])
    together = threading.Barrier(RACERS)
    got: list[Selection] = []

    def select(number: int) -> None:
        together.wait()
        query = a_query(f"number {number}", limit=2)
        got.append(racers[number].memory.select("s", "plan", query, a_context()))

    threads = [threading.Thread(target=select, args=(number,)) for number in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(got) == RACERS
    assert all(one == got[0] for one in got)
    assert len(racers[0].events()) == RACERS + 1
    sealed, key = got[0].sealed_query_vector, racers[0].store.sessions.key(STREAM)
    assert sealed is not None
    assert key is not None
    sealer = AesGcmSealer(randomness=SystemRandomness())
    assert sealer.open(b64decode(sealed), key=key, identity=STREAM.bytes)


class NoRoomForKeys:
    """A session vault that keeps nothing."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def keep_key(self, *_: object, **__: object) -> None:
        raise StoreFullError(store="disk")


def test_no_selection_without_its_key(path: Path | None) -> None:
    with open_house(
        path, altered=lambda store: replace(store, sessions=NoRoomForKeys(store.sessions))
    ) as house:
        with pytest.raises(StoreFullError):
            house.memory.select("s", "plan", a_query(), a_context())

        assert house.events() == []
