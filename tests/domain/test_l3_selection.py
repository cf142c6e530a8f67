from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import EmbeddingTuple, LeftOut, LeftOutReason, RecallKind, RecallMode
from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import (
    LEFT_OUT_MAX,
    AssembledPack,
    L3Selection,
    SelectedEntry,
    Selection,
)
from remembrancer.domain.recall import Ranks

START = datetime(2030, 1, 1, tzinfo=UTC)
SPACE = EmbeddingTuple(
    provider="wordllama",
    model="l2",
    model_revision="1",
    dimensions=2,
    input_preparation="plain@1",
)
names = st.text("ab-/é", min_size=1, max_size=6)
entry_ids = st.uuids().map(EntryId)
scores = st.floats(-1, 40, allow_nan=False)
ranks = st.builds(
    Ranks,
    dense_rank=st.none() | st.integers(1, 100),
    dense_score=st.none() | scores,
    sparse_rank=st.none() | st.integers(1, 100),
    sparse_score=st.none() | scores,
)
selections = st.builds(
    Selection,
    tenant=names,
    owner=names,
    principal=names,
    session=names,
    stage=names,
    kind=st.sampled_from(RecallKind),
    entries=st.lists(
        st.builds(
            SelectedEntry,
            entry_id=entry_ids,
            version=st.integers(1, 9),
            digest=st.text("0123456789abcdef", min_size=64, max_size=64),
            score=scores,
            ranks=ranks,
        ),
        max_size=4,
    ).map(tuple),
    mode=st.sampled_from(RecallMode),
    mode_reason=st.sampled_from(["", "no_usable_vector"]),
    left_out=st.lists(
        st.builds(LeftOut, entry_id=entry_ids, reason=st.sampled_from(LeftOutReason)), max_size=3
    ).map(tuple),
    left_out_count=st.integers(0, 10_000),
    limit=st.integers(1, 100_000),
    filter=st.dictionaries(names, st.lists(names, max_size=3).map(tuple), max_size=3),
    embedding_tuple=st.none() | st.just(SPACE),
    sealed_query_vector=st.none() | st.just("c2VhbGVk"),
)
packs = st.builds(
    AssembledPack,
    number=st.just(0),
    digest=st.sampled_from(["0" * 64, "1" * 64]),
    label=st.just("0123456789abcdef"),
    format_version=st.just(1),
    included=st.lists(names, max_size=3).map(tuple),
    omitted=st.lists(st.tuples(names, st.just("budget")), max_size=3).map(tuple),
    token_budget=st.integers(0, 1000),
    tokens=st.integers(0, 1000),
    token_counter=st.just("words@1"),
    items_digest=st.just("2" * 64),
)


def _replayed(facts: Sequence[Any]) -> L3Selection | None:
    stage: L3Selection | None = None
    for fact in facts:
        stage = fact.mutate(stage)
    return stage


@given(selections)
def test_committed_selection_is_what_was_chosen(selection: Selection) -> None:
    stage = L3Selection.select(selection, at=START)

    assert stage.selection == selection
    assert stage.packs == ()
    assert stage.id == L3Selection.create_id(selection.tenant, selection.session, selection.stage)


@given(selections, st.lists(packs, max_size=4))
def test_replay_agrees(selection: Selection, assembled: list[AssembledPack]) -> None:
    stage = L3Selection.select(selection, at=START)
    for pack in assembled:
        stage.assemble(pack, at=START)

    assert _replayed(stage.collect_events()) == stage


@given(selections, st.lists(packs, max_size=4))
def test_fields_of_events_are_plain_data(
    selection: Selection, assembled: list[AssembledPack]
) -> None:
    """What JSON gives back must be what was there: no tuple, no enum, no model."""
    stage = L3Selection.select(selection, at=START)
    for pack in assembled:
        stage.assemble(pack, at=START)

    for fact in stage.pending_events:
        state: dict[str, Any] = {
            name: value
            for name, value in vars(fact).items()
            if name not in {"originator_id", "timestamp"}
        }
        assert parse_canonical_json(canonical_json(state)) == state


@given(selections, st.lists(packs, max_size=6))
def test_packs_are_numbered_and_the_same_again_is_no_news(
    selection: Selection, assembled: list[AssembledPack]
) -> None:
    stage = L3Selection.select(selection, at=START)
    news: list[AssembledPack] = []
    for pack in assembled:
        if not news or news[-1].digest != pack.digest:
            news.append(replace(pack, number=len(news) + 1))

        stage.assemble(pack, at=START)

    assert stage.packs == tuple(news)
    assert len(stage.pending_events) == 1 + len(news)


@given(selections)
def test_packs_do_not_change_the_selection(selection: Selection) -> None:
    stage = L3Selection.select(selection, at=START)

    stage.assemble(_pack("0" * 64), at=START)

    assert stage.selection == selection


@given(selections)
def test_only_the_best_of_many_left_out_are_named(selection: Selection) -> None:
    many = tuple(
        LeftOut(entry_id=EntryId(UUID(int=number)), reason=LeftOutReason.RANK)
        for number in range(LEFT_OUT_MAX + 5)
    )

    stage = L3Selection.select(replace(selection, left_out=many, left_out_count=205), at=START)

    assert stage.selection.left_out == many[:LEFT_OUT_MAX]
    assert stage.selection.left_out_count == 205


@given(selections)
def test_left_out_are_recorded_in_runs_of_one_reason(selection: Selection) -> None:
    rank, stale = LeftOutReason.RANK, LeftOutReason.STALE
    left_out = tuple(
        LeftOut(entry_id=EntryId(UUID(int=number)), reason=reason)
        for number, reason in enumerate([rank, rank, stale, rank])
    )

    stage = L3Selection.select(replace(selection, left_out=left_out), at=START)

    assert vars(stage.pending_events[0])["left_out"] == [
        ["rank", f"{0:032x} {1:032x}"],
        ["stale", f"{2:032x}"],
        ["rank", f"{3:032x}"],
    ]
    assert len(stage.selection.left_out) == 4
    assert tuple(stage.selection.left_out) == left_out


@given(selections)
def test_order_of_the_filters_keys_does_not_show(selection: Selection) -> None:
    turned = replace(selection, filter=dict(reversed(list(selection.filter.items()))))

    one, other = (L3Selection.select(each, at=START) for each in (selection, turned))

    assert list(vars(one.pending_events[0])["filter"]) == sorted(selection.filter)
    assert one.selection == other.selection


def _pack(digest: str) -> AssembledPack:
    return AssembledPack(
        number=0,
        digest=digest,
        label="0123456789abcdef",
        format_version=1,
        included=("rules",),
        omitted=(),
        token_budget=100,
        tokens=10,
        token_counter="words@1",  # noqa: S106  # counts tokens, is no password
        items_digest="2" * 64,
    )
