"""What an audit keeps while it reads: sums and numbers, however long the log is."""

import tracemalloc
from collections.abc import Iterator
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.application.recorded_log import Lives

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.application.audit import joined
from remembrancer.application.audit.agreement import Agreement
from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Findings
from remembrancer.application.audit.joined import Joined, Share
from remembrancer.application.audit.walk import Walk
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.hash_chain import GENESIS, event_hash

FIELDS = ("id", "what")
records = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), max_size=12)


def _spelt(pair: tuple[str, str]) -> str:
    return "\x1f".join(pair)


# -- Agreements --------------------------------------------------------------


@given(expected=records, chance=st.randoms())
def test_equal_lists_agree_in_any_order(expected: list[tuple[str, str]], chance: object) -> None:
    agreement = Agreement(FIELDS, keys=1)
    found = list(expected)
    chance.shuffle(found)  # type: ignore[attr-defined]  # Hypothesis has no type for it
    for one in expected:
        agreement.expect(_spelt(one))
    for one in found:
        agreement.find(_spelt(one))

    assert not agreement.differing


@given(
    expected=st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz")),
    found=st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz")),
)
def test_what_differs_is_named(expected: dict[str, str], found: dict[str, str]) -> None:
    agreement = Agreement(FIELDS, keys=1)
    for one in expected.items():
        agreement.expect(_spelt(one))
    for one in found.items():
        agreement.find(_spelt(one))

    named = agreement.naming()
    for one in expected.items():
        named.expect(_spelt(one))
    for one in found.items():
        named.find(_spelt(one))

    differing = {key for key in expected | found if expected.get(key) != found.get(key)}
    assert {one.key[0] for one in named.differences()} == differing
    assert bool(agreement.differing) == bool(differing)


def test_what_was_withdrawn_is_not_expected() -> None:
    agreement = Agreement(FIELDS, keys=1)

    agreement.withdraw(agreement.expect("a\x1fx"))

    assert not agreement.differing


# -- Relations ---------------------------------------------------------------


@given(
    offered=st.sets(st.integers(0, 40)),
    wanted=st.lists(st.integers(0, 40)),
    shares=st.integers(1, 4),
)
def test_shares_together_find_what_one_finds(
    offered: set[int], wanted: list[int], shares: int
) -> None:
    unmet: set[int] = set()
    for number in range(shares):
        relation = Joined(Share(number, shares), once=False)
        for one in wanted:
            relation.want(("fact", one), 0, 9)
        for one in offered:
            relation.offer(("fact", one), 5, 5)
        unmet |= set(relation.unmet())

    assert unmet == {hash(("fact", one)) for one in set(wanted) - offered}


def test_popular_wishes_are_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "FACTS_MAX", 20)
    relation = Joined(Share(), once=False)

    for at in range(1_000):
        relation.want_all([("fact", 1), ("fact", 2)], 0, 1_000 - at)

    assert sum(map(len, relation._wanted)) < 200 * 8
    relation.offer(("fact", 1), 1, 1)
    assert set(relation.unmet()) == {hash(("fact", 1)), hash(("fact", 2))}


@pytest.mark.parametrize(("events", "shares"), [(0, 1), (1, 1), (2_000_000, 1), (2_000_001, 2)])
def test_a_longer_log_is_read_in_more_shares(events: int, shares: int) -> None:
    assert len(Share.all_of(events)) == shares


# -- All of it ---------------------------------------------------------------


def _many_streams(event: RawEvent, count: int) -> Iterator[RawEvent]:
    """Yield one event again and again, each in a stream of its own, a row at a time."""
    _, _, _, topic, state, _, _ = event
    for number in range(count):
        entry = UUID(int=number).hex.encode()
        at = state.index(b'"entry_id":{"_data_":"') + 22
        told = state[:at] + entry + state[at + 32 :]
        own = event_hash(GENESIS, topic, told)
        yield number + 1, UUID(int=number).bytes, 1, topic, told, GENESIS, own


def _peak_bytes(events: Iterator[RawEvent]) -> int:
    findings = Findings(is_mute=True)
    walk = Walk(findings, Facts(Share()), FastStateReader())
    tracemalloc.start()
    try:
        walk.read(events)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_stream_more_costs_a_few_numbers() -> None:
    """24 bytes for the version that a selection may want, and room to grow."""
    event = next(row for row in Lives(1).live(50) if row[3].endswith("entry_remembered"))

    few, many = (_peak_bytes(_many_streams(event, count)) for count in (2_000, 12_000))

    assert (many - few) / 10_000 < 64
