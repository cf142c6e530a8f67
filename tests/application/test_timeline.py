"""Timelines: an owner's or a session's events, in order, in words, a page at a time."""

from datetime import timedelta
from typing import Any

import pytest
from tests.application.house import House, a_context, a_query, an_entry

from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.timeline import _TOLD, Timeline
from remembrancer.contracts.spending import FIRST_ID, QUERY, SECOND_ID, Spender
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.reservation import UnknownReason
from remembrancer.domain.stored_format import EVENTS


def timeline(house: House, **asked: Any) -> Timeline:
    return house.memory.timeline(**{"tenant": "acme", "owner": "ana"} | asked)


def what(found: Timeline) -> list[str]:
    return [one.what for one in found.happenings]


def test_tells_an_owners_events_in_order(house: House) -> None:
    entry_id = house.memory.remember(an_entry("invoice one"))
    house.clock.advance(timedelta(minutes=1))
    house.memory.correct(entry_id, text="invoice two", reason="outdated")
    house.memory.build_pack("s", "plan", a_query(), a_context(), token_budget=500)
    house.memory.erase(entry_id, reason="requested")
    house.memory.remember(an_entry("another's", owner="ben"))

    found = timeline(house)

    assert what(found) == [
        "entry_remembered", "entry_corrected", "entries_selected", "pack_assembled",
        "entry_erased"]  # fmt: skip
    assert [one.at for one in found.happenings] == sorted(one.at for one in found.happenings)
    assert found.next_after is None
    about = [one.about for one in found.happenings]
    assert about == [str(entry_id)] * 2 + ["s/plan"] * 2 + [str(entry_id)]


def test_tells_them_in_words_without_a_text(house: House) -> None:
    entry_id = house.memory.remember(an_entry("invoice one"))
    house.memory.correct(entry_id, text="invoice two", reason="outdated")
    house.memory.build_pack("s", "plan", a_query(), a_context(), token_budget=500)

    words = [one.words for one in timeline(house).happenings]

    assert words[0] == "remembered: note in project/alpha, internal, 11 bytes"
    assert words[1].startswith("corrected (outdated), version 2 now: note in project/alpha")
    assert words[2].startswith("1 entry selected for agent-7, hybrid; ")
    assert words[3].startswith("pack 1 assembled: 1 piece in, 0 omitted, ")
    assert not [one for one in words if "invoice" in one]


def at(usd: str, request: int) -> str:
    """Return how far the day is, under the ceilings of the suite."""
    return f"is at {usd} of 0.001000 USD, request {request} of 100"


def test_tells_what_was_spent(house: House) -> None:
    spender = Spender(house.store.ledger)
    spender.admit(FIRST_ID, kind=QUERY, charge=10)
    spender.settle(FIRST_ID, charge=3, usage=7)
    spender.admit(SECOND_ID, charge=20)
    spender.lose(SECOND_ID, reason=UnknownReason.TIMEOUT)

    told = timeline(house).happenings

    day = told[0].at.date().isoformat()  # By the store's own clock.
    assert [one.words for one in told] == [
        f"reserved 0.000010 USD (query); {day} {at('0.000010', 1)}",
        "settled at 0.000003 USD for 7 tokens",
        f"reserved 0.000020 USD (indexing); {day} {at('0.000023', 2)}",
        "became unknown (timeout), keeps 0.000020 USD",
    ]


def test_tells_what_became_of_caches(house: House) -> None:
    surface = Surface(tenant="acme", owner="ana", surface="ide")
    contexts = CacheContexts(
        log=house.store.log, transactions=house.store.transactions, clock=house.clock
    )
    contexts.bind(surface, context_digest="a" * 64, configuration_digest="b" * 64)
    contexts.record_prepared(surface, 1, reservation_id=FIRST_ID, vectors=2)
    contexts.bind(surface, context_digest="c" * 64, configuration_digest="b" * 64)
    contexts.withdraw(surface, reason="evidence_revoked")

    found = timeline(house)

    assert {one.about for one in found.happenings} == {"ide"}
    assert [one.words for one in found.happenings] == [
        "cache context bound, generation 1",
        f"2 query vectors prepared in generation 1, paid by reservation {FIRST_ID}",
        "cache context replaced, generation 2 begins",
        "admission withdrawn (evidence_revoked), generation 3",
    ]


def test_a_sessions_timeline_has_all_its_stages(house: House) -> None:
    house.memory.remember(an_entry("invoice one"))
    for session, stage in (("s", "plan"), ("other", "plan"), ("s", "act")):
        house.memory.build_pack(session, stage, a_query(), a_context(), token_budget=500)
    house.memory.erase_session("s", tenant="acme")

    found = timeline(house, owner=None, session="s")

    assert [one.about for one in found.happenings] == ["s/plan"] * 2 + ["s/act"] * 2


def test_pages_go_on_where_the_last_one_ended(house: House) -> None:
    house.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])

    first = timeline(house, limit=2)
    assert first.next_after is not None
    second = timeline(house, limit=3, after=first.next_after)

    assert [len(page.happenings) for page in (first, second)] == [2, 3]
    assert second.next_after is None
    positions = [one.position for page in (first, second) for one in page.happenings]
    assert positions == sorted(set(positions))


def test_the_newest_come_in_order(house: House) -> None:
    ids = house.memory.remember_many([an_entry(f"invoice {number}") for number in range(5)])

    found = timeline(house, limit=2, newest=True)

    assert [one.about for one in found.happenings] == [str(one) for one in ids[3:]]
    assert found.next_after is None


@pytest.mark.parametrize(
    "asked",
    [
        {"owner": None},
        {"owner": ""},
        {"limit": 0},
        {"limit": 10_001},
        {"limit": "2"},
        {"after": -1},
        {"tenant": ""},
        {"session": "\n"},
    ],
    ids=str,
)
def test_what_breaks_a_bound_is_refused(house: House, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        timeline(house, **asked)


def test_of_nobody_there_is_nothing_to_tell(house: House) -> None:
    assert timeline(house, owner="nobody") == Timeline(happenings=(), next_after=None)


def test_every_event_can_be_told() -> None:
    assert set(_TOLD) == set(EVENTS.values())
