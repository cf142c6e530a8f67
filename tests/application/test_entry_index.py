"""Entries in the indexes: where each version stands, and under which labels."""

from hypothesis import given

from remembrancer.application.entry_index import (
    index_id,
    labels,
    searchable_text,
    subject_label,
)
from remembrancer.application.ports import Original
from remembrancer.contracts.originals import MORNING, an_original, originals
from remembrancer.domain import Sensitivity
from remembrancer.domain.identity import version_id


def test_a_current_version_stands_under_its_entrys_id() -> None:
    original = an_original(version=3)

    assert index_id(original) == original.entry_id
    assert labels(original)["state"] == "current"


def test_a_superseded_version_stands_under_an_id_of_its_own() -> None:
    old = an_original(version=3, superseded_at=MORNING)

    assert index_id(old) == version_id(old.entry_id, 3)
    assert index_id(old) != index_id(old._replace(version=4))
    assert labels(old)["state"] == "superseded"


def test_labels_are_what_a_filter_may_ask_for() -> None:
    original = an_original(
        kind="core", sensitivity=Sensitivity.RESTRICTED, subjects=("Straße", "ANA")
    )

    assert labels(original) == {
        "tenant": "acme",
        "owner": "ana",
        "scope": "project/alpha",
        "kind": "core",
        "sensitivity": "restricted",
        "state": "current",
        "subject:strasse": "1",
        "subject:ana": "1",
    }


def test_subjects_are_compared_without_case_and_width() -> None:
    assert subject_label("STRASSE") == subject_label("straße")
    assert subject_label("\uff21na") == subject_label("ana")


def test_subjects_are_searched_like_text() -> None:
    assert searchable_text(an_original(text="one", subjects=("two", "three"))) == "one\ntwo\nthree"


def test_a_section_is_found_by_the_headings_it_stands_under() -> None:
    section = an_original(text="one", subjects=("two",), metadata={"heading": "Guide > Setup"})

    assert searchable_text(section) == "one\nGuide > Setup\ntwo"


@given(originals)
def test_no_subject_passes_for_another_label(original: Original) -> None:
    known = {"tenant", "owner", "scope", "kind", "sensitivity", "state"}

    assert {key for key in labels(original) if not key.startswith("subject:")} == known
