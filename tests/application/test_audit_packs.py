"""The quick way to a pack's digest: it comes to what the domain comes to, and only confirms."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.application.audit.pack_digests import exact_digest, quick_digest
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.build_pack import items_as_json
from remembrancer.application.ports.audit_source import RawText
from remembrancer.domain.context_pack import ContextItem
from remembrancer.domain.fences import _SUSPECT, escaped

SPELLINGS = [StateReader().spell, FastStateReader().spell]

anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(
    str.strip
)
marked = st.lists(st.sampled_from(["<<<", ">>>", "\\u{3C}", "\x7f", "\u2028", "é", "a\n"])).map(
    lambda parts: "".join(["x", *parts])
)
texts = anything | marked


@st.composite
def rows(draw: st.DrawFn) -> RawText:
    said = draw(st.dictionaries(st.sampled_from(["source", "path", "heading"]), names))
    return (
        draw(st.uuids()).bytes,
        draw(st.integers(1, 99)),
        draw(names),
        draw(names),
        "internal",
        bytes(32),
        json.dumps(said),
        draw(texts),
    )


@st.composite
def packs(draw: st.DrawFn) -> tuple[Any, Any, bytes, list[RawText]]:
    quoted = draw(st.lists(rows(), max_size=3, unique_by=lambda row: row[0]))
    ids = draw(st.lists(names, max_size=4, unique=True))
    given_items = [
        ContextItem(layer=draw(st.integers(0, 2)), id=one, text="i" + draw(texts)) for one in ids
    ]
    shown = [one.id for one in sorted(given_items, key=lambda one: one.layer)]
    left = shown[: draw(st.integers(0, len(shown)))]
    pack = SimpleNamespace(
        included=[one for one in shown if one not in left]
        + [str(UUID(bytes=row[0])) for row in quoted],
        omitted=[[one, "budget"] for one in left],
        label="41d14e218b1a72ae",
        token_budget=draw(st.integers(0, 10**8)),
        tokens=draw(st.integers(0, 10**8)),
        token_counter=draw(names),
    )
    selection = SimpleNamespace(
        tenant=draw(names),
        owner="ana",
        principal="agent-7",
        session=draw(names),
        stage=draw(names),
    )
    return selection, pack, items_as_json(given_items), quoted


@pytest.mark.parametrize("spell", SPELLINGS)
@given(made=packs())
def test_the_quick_way_comes_to_what_the_domain_does(
    spell: Callable[[Any], bytes], made: tuple[Any, Any, bytes, list[RawText]]
) -> None:
    exact = exact_digest(*made)

    quick = quick_digest(*made, spell=spell)

    assert quick == exact


@given(text=texts)
def test_what_is_plain_is_told_without_a_search(text: str) -> None:
    """ASCII is looked at otherwise than the rest; both must say the same."""
    assert (escaped(text) == text) >= (_SUSPECT.search(text) is None)
    assert escaped(f"é{text}") == f"é{escaped(text)}"
