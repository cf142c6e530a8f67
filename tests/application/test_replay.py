"""Replaying: from log and vault alone, the same bytes, or exactly what differs and why."""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    replay_of,
)
from typing_extensions import override

from remembrancer.application.ports import Original
from remembrancer.composition.store import Store
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import ContextItem, ContextPack, EntryId, Sensitivity
from remembrancer.domain.errors import (
    InvalidInputError,
    StoreReadOnlyError,
    UnknownPackError,
    UnknownSelectionError,
)
from remembrancer.domain.l3_selection import L3Selection

RULES = ContextItem(layer=0, id="rules", text="Answer from the sources.", required=True)


def _pack(house: House, *, budget: int = 2_000, session: str = "s") -> ContextPack:
    return house.memory.build_pack(
        session, "plan", a_query(), a_context(), items=[RULES], token_budget=budget
    )


def _replay(house: House, session: str = "s", **changes: Any) -> ContextPack:
    return house.memory.replay(session, "plan", **replay_of(**changes))


class _ReadOnly:
    """The log, for reading."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name == "append":
            raise StoreReadOnlyError(store="log")
        return getattr(self._real, name)


def _blinded(store: Store) -> Store:
    return replace(
        store,
        log=_ReadOnly(store.log),
        sparse=Forbidden("the sparse index"),
        indexes=Forbidden("a vector index"),
    )


class _Silent(HashingEmbedder):
    """Another model, which mustn't be asked."""

    @override
    def embed_query(self, text: str) -> Any:
        raise AssertionError("the embedder was asked")

    @override
    def embed_documents(self, texts: Any) -> Any:
        raise AssertionError("the embedder was asked")


@dataclass(frozen=True, slots=True)
class Opening:
    """Opens the memory again, with everything failing that a replay mustn't touch."""

    path: Path

    def __call__(self) -> Any:
        return open_house(
            self.path,
            altered=_blinded,
            embedders=(_Silent(model="another"),),
            tokens=Forbidden("the token counter"),
        )


@pytest.fixture
def blind(tmp_path: Path) -> Opening:
    return Opening(tmp_path / "memory.db")


def test_a_blind_replay_names_what_is_gone(blind: Opening) -> None:
    """Case 12, whole."""
    with open_house(blind.path) as house:
        ids = house.memory.remember_many([an_entry(f"invoice of {n}") for n in range(5)])
        sent = _pack(house)
        ranked = [one.entry_id for one in sent.selection.entries]
        corrected, erased, revoked, raised, kept = ranked
        house.memory.correct(corrected, text="something else", reason="edited")
        house.memory.erase(erased, reason="user_request")
        house.memory.correct(revoked, scope="private", reason="moved")
        house.memory.correct(raised, sensitivity=Sensitivity.RESTRICTED, reason="raised")
        recorded = len(house.events())

    with blind() as house:
        again = _replay(house)

        assert len(house.events()) == recorded
    assert set(ids) == set(ranked)
    assert [one.entry_id for one in again.selection.entries] == ranked
    assert again.selection == sent.selection
    assert (again.included, again.omitted) == (sent.included, sent.omitted)
    assert [(one.id, one.reason) for one in again.differences] == [
        (str(erased), "erased"),
        (str(revoked), "no longer permitted"),
        (str(raised), "no longer permitted"),
    ]
    assert again.digest != sent.digest
    texts = {str(entry_id): f"invoice of {ids.index(entry_id)}" for entry_id in ranked}
    shown = {entry_id for entry_id, text in texts.items() if text in again.text}
    assert shown == {str(corrected), str(kept)}
    places = [again.text.index(str(entry_id)) for entry_id in ranked]
    assert places == sorted(places)


def test_a_blind_replay_of_what_still_stands_is_the_same_bytes(blind: Opening) -> None:
    with open_house(blind.path) as house:
        house.memory.remember_many([an_entry(f"invoice of {n}") for n in range(5)])
        sent = _pack(house)
        house.memory.remember_many([an_entry(f"invoice after {n}") for n in range(5)])

    with blind() as house:
        again = _replay(house)

    assert (again.text, again.digest, again.tokens) == (sent.text, sent.digest, sent.tokens)
    assert again == sent
    assert not again.differences


def test_each_pack_of_a_stage_can_be_replayed(house: House) -> None:
    house.memory.remember_many([an_entry() for _ in range(5)])
    packs = [_pack(house), _pack(house, budget=120)]

    again = [_replay(house, pack_number=number) for number in (1, 2)]

    assert again == packs
    assert _replay(house) == packs[1]


@pytest.mark.parametrize("number", [0, -1, 2])
def test_a_pack_that_was_never_assembled_is_unknown(house: House, number: int) -> None:
    _pack(house)

    with pytest.raises(UnknownPackError, match=rf"no pack {number} of .*; there is 1$"):
        _replay(house, pack_number=number)


def test_a_selection_without_a_pack_has_none_to_replay(house: House) -> None:
    house.memory.select("s", "plan", a_query(), a_context())

    with pytest.raises(UnknownPackError):
        _replay(house)


@pytest.mark.parametrize("changes", [{"tenant": "other"}, {"session": "t"}], ids=str)
def test_another_tenant_or_session_has_nothing_to_replay(
    house: House, changes: dict[str, Any]
) -> None:
    house.memory.remember(an_entry())
    _pack(house)

    with pytest.raises(UnknownSelectionError):
        _replay(house, **changes)


@pytest.mark.parametrize(
    "changes",
    [{"scopes": ("elsewhere",)}, {"read_ceiling": Sensitivity.PUBLIC}],
    ids=str,
)
def test_whoever_may_read_less_sees_less(house: House, changes: dict[str, Any]) -> None:
    entry_id = house.memory.remember(an_entry("canary invoice"))
    _pack(house)

    again = _replay(house, **changes)

    assert [(one.id, one.reason) for one in again.differences] == [
        (str(entry_id), "no longer permitted")
    ]
    assert "canary" not in again.text


@pytest.mark.parametrize(
    "changes",
    [{"scopes": ("a//b",)}, {"scopes": ()}, {"tenant": ""}, {"principal": "\n"}],
    ids=str,
)
def test_who_replays_must_say_so_in_bounds(house: House, changes: dict[str, Any]) -> None:
    _pack(house)

    with pytest.raises(InvalidInputError):
        _replay(house, **changes)


def test_an_erased_sessions_items_are_named(house: House) -> None:
    house.memory.remember(an_entry())
    sent = _pack(house)

    house.memory.erase_session("s", tenant="acme")

    again = _replay(house)
    assert [(one.id, one.reason) for one in again.differences] == [("rules", "erased")]
    assert RULES.text not in again.text
    assert again.included == sent.included
    assert "invoice" in again.text


def test_without_items_nothing_is_missing_after_erasing_the_session(house: House) -> None:
    house.memory.remember(an_entry())
    house.memory.build_pack("s", "plan", a_query(), a_context(), token_budget=500)

    house.memory.erase_session("s", tenant="acme")

    assert not _replay(house).differences


# -- What was altered behind our back ----------------------------------------


class _Altered:
    """A vault whose texts somebody edited."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def in_order(self, wanted: Any) -> list[Original | None]:
        return [one._replace(text=one.text + "!") for one in self._real.in_order(wanted)]


class _AlteredSource(_Altered):
    """A vault whose labels somebody edited: the text's own digest still fits."""

    def in_order(self, wanted: Any) -> list[Original | None]:
        return [one._replace(metadata={"path": "x"}) for one in self._real.in_order(wanted)]


def _with_vault(kind: Callable[[Any], Any]) -> Callable[[Store], Store]:
    return lambda store: replace(store, vault=kind(store.vault))


@pytest.fixture
def sent(tmp_path: Path) -> tuple[Path, ContextPack, EntryId]:
    path = tmp_path / "memory.db"
    with open_house(path) as house:
        entry_id = house.memory.remember(an_entry())
        return path, _pack(house), entry_id


def test_an_altered_text_is_said(sent: tuple[Path, ContextPack, EntryId]) -> None:
    path, _, entry_id = sent
    with open_house(path, altered=_with_vault(_Altered)) as house:
        again = _replay(house)

    assert [(one.id, one.reason) for one in again.differences] == [(str(entry_id), "altered")]
    assert "invoice" not in again.text


def test_an_altered_source_is_said(sent: tuple[Path, ContextPack, EntryId]) -> None:
    path, _, _ = sent
    with open_house(path, altered=_with_vault(_AlteredSource)) as house:
        again = _replay(house)

    assert [(one.id, one.reason) for one in again.differences] == [("pack", "altered")]


@pytest.mark.parametrize(
    "items", [b"[]", b"{", b'[{"layer": 9}]', b'[{"layer":0,"id":"rules","text":"Other."}]']
)
def test_altered_items_are_said(sent: tuple[Path, ContextPack, EntryId], items: bytes) -> None:
    path, _, _ = sent
    with open_house(path) as house:
        stream = L3Selection.create_id("acme", "s", "plan")
        house.store.sessions.keep_items(stream, number=1, items=items)

        again = _replay(house)

    assert [(one.id, one.reason) for one in again.differences] == [("rules", "altered")]
    assert "Other" not in again.text
    assert "invoice" in again.text
