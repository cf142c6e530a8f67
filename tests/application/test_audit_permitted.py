"""A selection holds what its recorded bounds let through, found in ways that there are."""

import pytest
from tests.application.recorded_log import OWNER, TENANT, changed
from tests.application.test_audit_tampering import CORRECTED, REMEMBERED, SELECTED, sound

from remembrancer.application.audit import permitted
from remembrancer.application.audit.records import audit_records
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.canonical_json import parse_canonical_json

Rows = list[RawEvent]
PERMITTED, RANKS = "selected-was-permitted", "ranks-are-sound"
BOUNDS = {
    "tenant": [TENANT],
    "owner": [OWNER],
    "scopes": ["project"],
    "sensitivity": ["public", "internal"],
}


def bounded(rows: Rows, **bounds: list[str]) -> Rows:
    """Return rows whose selection has other bounds."""
    return changed(rows, SELECTED, 0, filter={**BOUNDS, **bounds})


def ranked(rows: Rows, **ranks: int) -> Rows:
    """Return rows whose first selected entry was found in another way."""
    state = next(parse_canonical_json(row[4]) for row in rows if row[3] == SELECTED)
    entries = [{**state["entries"][0], **ranks}, *state["entries"][1:]]
    return changed(rows, SELECTED, 0, entries=entries)


CASES: dict[str, tuple[str, Rows]] = {
    "an entry above the ceiling": (
        PERMITTED,
        bounded(changed(sound(), CORRECTED, 0, sensitivity="restricted")),
    ),
    "an entry of another scope": (PERMITTED, changed(sound(), REMEMBERED, 1, scope="projects/b")),
    "other scopes": (PERMITTED, bounded(sound(), scopes=["zzz"])),
    "a lower ceiling": (PERMITTED, bounded(sound(), sensitivity=["public"])),
    "no ceiling": (PERMITTED, bounded(sound(), sensitivity=["internal"])),
    "another tenant's bounds": (PERMITTED, bounded(sound(), tenant=["other"])),
    "another owner's bounds": (PERMITTED, bounded(sound(), owner=["bo"])),
    "no bounds": (PERMITTED, changed(sound(), SELECTED, 0, filter={})),
    "a rank of nothing": (RANKS, ranked(sound(), sparse_rank=0)),
    "a rank by vectors of no space": (RANKS, ranked(sound(), dense_rank=1)),
}


def test_entries_of_another_owner_may_have_been_permitted() -> None:
    """A policy may widen whose entries are looked among, and no event says so."""
    assert audit_records(changed(sound(), REMEMBERED, 1, owner="bo")) == []


def test_bounds_that_let_the_entries_through_are_no_finding() -> None:
    assert audit_records(bounded(sound())) == []


@pytest.mark.parametrize("case", CASES)
def test_what_lies_outside_is_found(case: str) -> None:
    invariant, rows = CASES[case]

    assert {one.invariant for one in audit_records(rows)} == {invariant}


def test_a_selected_entry_outside_is_named_by_its_selection() -> None:
    rows = bounded(sound(), scopes=["zzz"])

    findings = audit_records(rows)

    selected = next(row for row in rows if row[3] == SELECTED)
    assert {(one.position, one.version) for one in findings} == {(selected[0], selected[2])}


def test_of_too_many_labels_nothing_is_concluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; the audit tells that it didn't compare them."""
    monkeypatch.setattr(permitted, "LABELS_BYTES_MAX", 100)
    labels = permitted.Labels()

    numbers = [labels.of_version(f"scope/{n}", "internal") for n in range(3)]

    assert numbers == [0, 0, 0]
    assert labels.are_too_many
    assert labels.fit(0, labels.of_bounds(["other"], ["public"]))
