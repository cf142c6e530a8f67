"""What the page's picture of a log holds, and what it leaves to counts."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.composition.report_world import HOSTILE, START, Rows, small_log

from remembrancer.adapters.eventlog.audit_reader import FastStateReader
from remembrancer.application.audit.finding import AuditScope
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.composition.report import picture as bounds
from remembrancer.composition.report.collecting import collect
from remembrancer.composition.report.picture import Latest, Picture
from remembrancer.domain.errors import StoreCorruptError


def _picture(*parts: Iterator[RawEvent], scope: AuditScope | None = None) -> Picture:
    rows = (row for part in parts for row in part)
    return collect(rows, reader=StateReader(), scope=scope)


def test_charges_count_for_the_day_of_admission_whenever_they_were_settled() -> None:
    rows = Rows()

    found = _picture(rows.reservation("acme", "ana", 1, START, outcome="reconciled"))

    [day] = found.owner_days
    assert (day.day, day.requests, day.reserved_quanta) == ("2030-01-31", 1, 900)
    assert day.charged_quanta == 400


@pytest.mark.parametrize(
    ("outcome", "charged", "reason"),
    [
        ("settled", 400, ""),
        ("unknown", 900, "timeout"),
        ("reconciled", 400, "timeout; reconciled by ana"),
        ("pending", 900, ""),
    ],
)
def test_a_reservation_is_shown_with_its_outcome(outcome: str, charged: int, reason: str) -> None:
    rows = Rows()

    found = _picture(rows.reservation("acme", "ana", 1, START, outcome=outcome))

    [life] = found.reservations
    assert (life.outcome, life.charged_quanta, life.reason) == (outcome, charged, reason)
    assert (life.ended_at is None) == (outcome == "pending")


def test_an_indexing_event_without_its_kind_is_of_kind_indexing() -> None:
    rows = Rows()

    found = _picture(rows.reservation("acme", "ana", 1, START, kind="indexing"))

    assert [life.kind for life in found.reservations] == ["indexing"]


def test_a_selection_is_shown_with_its_pack_and_what_was_left_out() -> None:
    rows = Rows()

    found = _picture(rows.selection("acme", "ana", "s-1", START))

    [selection] = found.selections
    [pack] = selection.packs
    assert [entry.dense_rank for entry in selection.entries] == [1, 2, 3]
    assert [(reason, len(ids)) for reason, ids in selection.left_out] == [("rank", 4)]
    assert pack.included[0] == "rules"
    assert pack.omitted == ((selection.entries[0].entry_id, "budget"),)


def test_an_erasure_is_shown_with_the_labels_that_the_entry_had() -> None:
    rows = Rows()

    found = _picture(rows.entry("acme", "ana", 1, START))

    [erasure] = found.erasures
    assert (erasure.owner, erasure.scope, erasure.reason) == ("ana", "project/alpha", "outdated")
    assert erasure.erased_at - erasure.remembered_at == timedelta(hours=1)


def test_only_what_was_asked_for_is_shown() -> None:
    scope = AuditScope(tenant="acme", owner="bob", since=START)

    found = _picture(small_log(), scope=scope)

    assert {life.owner for life in found.reservations} == {"bob"}
    assert {one.owner for one in found.erasures} == {"bob"}
    assert not len(found.selections)


def test_what_was_before_the_first_day_asked_for_is_left_out() -> None:
    scope = AuditScope(since=START + timedelta(days=3))

    found = _picture(small_log(), scope=scope)

    assert {life.day for life in found.reservations} == {"2030-02-03"}
    assert {day.day for day in found.owner_days} == {"2030-02-03"}


def test_what_cannot_be_read_is_counted_and_passed_over() -> None:
    rows = list(small_log())
    position, stream, version, topic, data, before, own = rows[0]
    damaged = [
        (position, stream, version, "remembrancer.of_a_newer_release", data, before, own),
        (position, stream, version, topic, data[:-1], before, own),
        (position, stream, version, topic, data.replace(b"900", b"-9"), before, own),
    ]

    found = _picture(iter(damaged), iter(rows))

    assert found.unreadable == len(damaged)
    assert found.reservations.count == _picture(small_log()).reservations.count


def test_inner_parts_of_the_wrong_kind_are_unreadable_too() -> None:
    [selected, _] = Rows().selection("acme", "ana", "s-1", START, entries=1)
    *head, data, before, own = selected
    damaged = (*head, data.replace(b'"version":1', b'"version":"1"'), before, own)

    found = _picture(iter([damaged]))  # type: ignore[list-item]  # the same shape

    assert found.unreadable == 1
    assert not len(found.selections)


def test_a_log_that_breaks_off_is_shown_as_far_as_it_goes() -> None:
    def breaking() -> Iterator[RawEvent]:
        yield from Rows().reservation("acme", "ana", 1, START)
        raise StoreCorruptError(store="memory.db", problem="a page is damaged")

    found = _picture(breaking())

    assert "damaged" in found.stopped
    assert found.reservations.count == 1


def test_long_lists_are_cut_and_counted() -> None:
    rows = Rows()

    found = _picture(rows.selection("acme", "ana", "s-1", START, entries=500, left_out=190))

    [selection] = found.selections
    [pack] = selection.packs
    assert (len(selection.entries), selection.entries_count) == (
        bounds.ENTRIES_OF_SELECTION_MAX,
        500,
    )
    assert sum(len(ids) for _, ids in selection.left_out) == bounds.LEFT_OUT_OF_SELECTION_MAX
    assert (len(pack.included), pack.included_count) == (bounds.IDS_OF_PACK_MAX, 500)


def test_a_name_that_a_damaged_log_made_endless_is_cut() -> None:
    found = _picture(Rows().reservation("acme", "o" * 10_000, 1, START))

    [life] = found.reservations
    assert len(life.owner) < 400


def test_characters_that_hide_or_reorder_text_are_shown_as_escapes() -> None:
    found = _picture(*(Rows().reservation(name, "ana", 1, START) for name in HOSTILE))

    assert "\\u{202E}gnihtyna" in {life.tenant for life in found.reservations}


def test_the_latest_are_kept_and_all_are_counted() -> None:
    latest = Latest[int](3)

    for number in (5, 1, 9, 7, 3):
        latest.add(f"{number}", number)

    assert list(latest) == [9, 7, 5]
    assert (len(latest), latest.count) == (3, 5)


def test_progress_tells_how_many_events_were_read() -> None:
    told: list[int] = []
    rows = (row for number in range(3_000) for row in Rows().entry("acme", "ana", number, START))

    collect(rows, reader=StateReader(), progress=told.append)

    assert told == [5_000]


def test_both_readers_of_states_give_one_picture() -> None:
    fast = collect(small_log(), reader=FastStateReader())

    exact = _picture(small_log())

    for name in ("owner_days", "reservations", "selections", "erasures"):
        assert list(getattr(fast, name)) == list(getattr(exact, name))
    assert fast.unreadable == exact.unreadable == 0
