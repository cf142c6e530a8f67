"""Whatever a host passes to the facade: it works, or a typed error says what it must be."""

import unicodedata
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import anyio
import pytest
from tests.application.house import House, a_context, a_query, an_entry, open_house, replay_of

from remembrancer.composition import Remembrancer, embedded
from remembrancer.domain import ContextItem, NewEntry, Sensitivity
from remembrancer.domain.errors import InvalidInputError, SettingsError, UnknownEntryError

ITEM = ContextItem(layer=0, id="rules", text="Be brief.")
WHO = {"tenant": "acme", "owner": "ana"}
SURROGATE = "half \ud83d"
NFC = "Jos\u00e9"
NFD = unicodedata.normalize("NFD", NFC)


@pytest.fixture
def house() -> Iterator[House]:
    with open_house(None) as house:
        yield house


def _pack(memory: Remembrancer, **given: Any) -> Any:
    wanted: dict[str, Any] = {"items": [ITEM], "token_budget": 500} | given
    return memory.build_pack("s", "plan", a_query(), a_context(), **wanted)


def _reconcile(memory: Remembrancer, **given: Any) -> Any:
    known: dict[str, Any] = {
        "reservation_id": uuid4(), **WHO, "charged_quanta": 1, "evidence": b"{}", "by": "ana",
    }  # fmt: skip
    return memory.reconcile(**known | given)


WRONG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "remember a dict": ("entry", lambda m: m.remember({"text": "x"})),
    "remember None": ("entry", lambda m: m.remember(None)),
    "remember a string": ("entries", lambda m: m.remember_many("abc")),
    "remember a number": ("entries", lambda m: m.remember_many(3)),
    "remember some": (r"entries\[1\]", lambda m: m.remember_many([an_entry(), None])),
    "batch of a string": ("batch_size", lambda m: m.remember_many([], batch_size="3")),
    "batch of True": ("batch_size", lambda m: m.remember_many([], batch_size=True)),
    "batch of none": ("batch_size", lambda m: m.remember_many([], batch_size=0)),
    "correct a number": ("entry id", lambda m: m.correct(3, text="x", reason="r")),
    "correct a word": ("entry id", lambda m: m.correct("first", text="x", reason="r")),
    "erase None": ("entry id", lambda m: m.erase(None, reason="r")),
    "recall a string": ("query", lambda m: m.recall("what?", a_context())),
    "recall without context": ("context", lambda m: m.recall(a_query(), None)),
    "select with a dict": ("context", lambda m: m.select("s", "plan", a_query(), {})),
    "select for nobody": ("session", lambda m: m.select(None, "plan", a_query(), a_context())),
    "a dict as item": (r"items\[0\]", lambda m: _pack(m, items=[{"id": "a"}])),
    "no items": ("items", lambda m: _pack(m, items=None)),
    "budget of bytes": ("token_budget", lambda m: _pack(m, token_budget=b"500")),
    "budget of a float": ("token_budget", lambda m: _pack(m, token_budget=500.5)),
    "budget of NaN": ("token_budget", lambda m: _pack(m, token_budget=float("nan"))),
    "budget of True": ("token_budget", lambda m: _pack(m, token_budget=True)),
    "budget of None": ("token_budget", lambda m: _pack(m, token_budget=None)),
    "replay a lone scope": ("scopes", lambda m: m.replay("s", "p", **replay_of(scopes="project"))),
    "replay no scopes": ("scopes", lambda m: m.replay("s", "p", **replay_of(scopes=None))),
    "replay a string": (
        "pack_number",
        lambda m: m.replay("s", "plan", **replay_of(pack_number="1")),
    ),
    "erase no session": ("session", lambda m: m.erase_session(None, tenant="acme")),
    "erase half a session": ("session", lambda m: m.erase_session(SURROGATE, tenant="acme")),
    "erase no owner": ("owner", lambda m: m.erase_owner(tenant="acme", owner=None, reason="r")),
    "erase half an owner": (
        "owner",
        lambda m: m.erase_owner(tenant="acme", owner=SURROGATE, reason="r"),
    ),
    "erase no tenant": ("tenant", lambda m: m.erase_owner(tenant="", owner="ana", reason="r")),
    "spend of half a tenant": ("tenant", lambda m: m.spend(tenant=SURROGATE)),
    "spend since a number": ("since", lambda m: m.spend(tenant="acme", since=3)),
    "spend since no day": ("since", lambda m: m.spend(tenant="acme", since="2030-02-30")),
    "prepare nothing": ("queries", lambda m: m.prepare(None, a_context(), **WHO)),
    "prepare a string": (r"queries\[0\]", lambda m: m.prepare("what?", a_context(), **WHO)),
    "prepare a dict": (r"queries\[0\]", lambda m: m.prepare([{}], a_context(), **WHO)),
    "prepare without context": ("context", lambda m: m.prepare([a_query()], None, **WHO)),
    "prepare five": ("queries", lambda m: m.prepare([a_query()] * 5, a_context(), **WHO)),
    "prepare without end": (
        "queries",
        lambda m: m.prepare(repeat(a_query()), a_context(), **WHO),
    ),
    "prepare in turn": (
        r"queries\[0\]",
        lambda m: anyio.run(lambda: m.aprepare([None], a_context(), **WHO)),
    ),
    "withdraw for no reason": ("reason", lambda m: m.withdraw_admission(reason=None)),
    "withdraw for half a one": ("reason", lambda m: m.withdraw_admission(reason=SURROGATE)),
    "reconcile a word": ("reservation_id", lambda m: _reconcile(m, reservation_id="first")),
    "reconcile by a string": ("evidence", lambda m: _reconcile(m, evidence="invoice.json")),
    "reindex to a string": ("to", lambda m: m.reindex(to="another")),
    "import a lone path": (
        "roots",
        lambda m: m.import_documents(
            "adr", tenant="a", owner="b", scope="c", sensitivity=Sensitivity.PUBLIC
        ),
    ),
}


@pytest.mark.parametrize(("field", "call"), WRONG.values(), ids=WRONG.keys())
def test_the_wrong_kind_of_argument_is_named(
    house: House, field: str, call: Callable[[Remembrancer], Any]
) -> None:
    house.memory.remember(an_entry())
    _pack(house.memory)
    recorded = len(house.events())

    with pytest.raises(InvalidInputError, match=field):
        call(house.memory)

    assert len(house.events()) == recorded


@pytest.mark.parametrize("subjects", ["Bob", 3, [None]], ids=repr)
def test_subjects_are_never_a_lone_string(house: House, subjects: Any) -> None:
    entry_id = house.memory.remember(an_entry())

    with pytest.raises(InvalidInputError, match="subjects"):
        house.memory.correct(entry_id, subjects=subjects, reason="edited")


def test_anything_that_gives_entries_or_items_one_by_one_will_do(house: House) -> None:
    ids = house.memory.remember_many(an_entry(text) for text in ("invoice one", "invoice two"))

    pack = _pack(house.memory, items=iter([ITEM]))

    assert pack.included[0] == "rules"
    assert set(pack.included[1:]) == set(map(str, ids))


def test_an_id_works_as_a_pack_spells_it(house: House) -> None:
    house.memory.remember(an_entry())
    [_, spelt] = _pack(house.memory).included

    assert house.memory.correct(spelt, text="invoice, corrected", reason="edited") == 2
    assert house.memory.erase(spelt.upper(), reason="user_request").erased == 1


def test_documents_may_be_named_by_strings(house: House, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Heading\n\nWords.\n", encoding="utf-8")

    report = house.memory.import_documents(
        [str(tmp_path)], tenant="acme", owner="ana", scope="docs", sensitivity="internal"  # type: ignore[arg-type]  # as from JSON
    )  # fmt: skip

    assert len(report.added) == 1


# -- Names are the same name however they are composed --------------------------


def test_an_owner_is_erased_in_any_spelling_of_the_name(house: House) -> None:
    house.memory.remember(an_entry(tenant=NFD, owner=NFD))

    erasure = house.memory.erase_owner(tenant=NFD, owner=NFD, reason="left")

    assert erasure.erased == 1
    assert house.store.vault.count() == 0


def test_a_session_is_erased_in_any_spelling_of_its_name(house: House) -> None:
    house.memory.select(NFD, "plan", a_query(tenant=NFD), a_context())

    assert house.memory.erase_session(NFD, tenant=NFD).erased == 1


def test_two_metadata_keys_that_are_one_name_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"NewEntry\.metadata: two keys"):
        an_entry(metadata={NFC: "one", NFD: "another"})


# -- A host that acts for somebody says for whom --------------------------------

ANOTHERS = [{"tenant": "other"}, {"owner": "bob"}, {"tenant": "acme", "owner": "bob"}]


@pytest.mark.parametrize("whose", ANOTHERS, ids=repr)
@pytest.mark.parametrize("erased", [False, True])
def test_anothers_entry_is_as_unknown_as_none(
    house: House, whose: dict[str, Any], *, erased: bool
) -> None:
    entry_id = house.memory.remember(an_entry())
    if erased:
        house.memory.erase(entry_id, reason="left")
    recorded = len(house.events())
    told = []

    for one in (entry_id, uuid4()):
        with pytest.raises(UnknownEntryError) as correcting:
            house.memory.correct(one, text="mine now", reason="edited", **whose)
        with pytest.raises(UnknownEntryError) as erasing:
            house.memory.erase(one, reason="edited", **whose)
        told.append({str(error.value).replace(str(one), "") for error in (correcting, erasing)})

    assert told[0] == told[1]
    assert len(house.events()) == recorded


def test_ones_own_entry_is_corrected_and_erased_by_name(house: House) -> None:
    entry_id: UUID = house.memory.remember(_joses())
    whose: dict[str, Any] = {"tenant": "acme", "owner": NFD}

    assert house.memory.correct(entry_id, text="another", reason="edited", **whose) == 2
    assert house.memory.erase(entry_id, reason="left", **whose).erased == 1
    assert house.memory.erase(entry_id, reason="left", **whose).erased == 0


def _joses() -> NewEntry:
    return an_entry(owner=NFC)


@pytest.mark.parametrize("path", [None, 3, b"memory.db"], ids=repr)
def test_a_path_is_a_string_or_a_path(path: Any) -> None:
    with pytest.raises(SettingsError, match="path"):
        embedded(path)
