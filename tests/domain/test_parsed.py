import pickle
import unicodedata
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import (
    CandidateSelection,
    ContextItem,
    EmbeddingTuple,
    NewEntry,
    RecallContext,
    RecallKind,
    RecallQuery,
    Sensitivity,
)
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.parsed import (
    NAME_CHARACTERS_MAX,
    TEXT_BYTES_MAX,
    Parsed,
    parsed_name,
)

CANARY = "canary-5f3a"
ENTRY: dict[str, Any] = {
    "tenant": "acme",
    "owner": "ana",
    "scope": "project/alpha",
    "text": "We keep texts in the vault.",
    "sensitivity": Sensitivity.INTERNAL,
}
QUERY: dict[str, Any] = {
    "tenant": "acme",
    "owner": "ana",
    "principal": "agent-7",
    "scopes": ("project",),
    "read_ceiling": Sensitivity.INTERNAL,
    "question": "Where are texts kept?",
}
ITEM: dict[str, Any] = {"layer": 0, "id": "rules", "text": "Be brief."}
SPACE: dict[str, Any] = {
    "provider": "wordllama",
    "model": "l2",
    "model_revision": "1",
    "dimensions": 256,
    "input_preparation": "plain@1",
}
CONTEXT: dict[str, Any] = {
    "policy_version": "p1",
    "retrieval_policy_version": "r1",
    "surface": "cli",
    "task_digest": "0",
    "sensitivity_floor": Sensitivity.PUBLIC,
}
VALID = [(NewEntry, ENTRY), (RecallQuery, QUERY), (ContextItem, ITEM), (EmbeddingTuple, SPACE),
         (RecallContext, CONTEXT)]  # fmt: skip

BAD_NAMES = [
    "",
    " ",
    "\u2003",
    "a\nb",
    "a\0",
    "a\x85b",
    "a\u2028b",
    "\ud800",
    "x" * (NAME_CHARACTERS_MAX + 1),
    "\u0958" * 200,  # twice as long in NFC
    "e\u0301" * (NAME_CHARACTERS_MAX + 1),
    None,
    7,
    b"bytes",
    ["a"],
]


def _refused(model: type[Parsed], values: dict[str, Any]) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as refusal:
        model(**values)
    return refusal.value


# -- What every value object promises --------------------------------------


@pytest.mark.parametrize(("model", "values"), VALID)
def test_good_values_pass(model: type[Parsed], values: dict[str, Any]) -> None:
    made = model(**values)

    assert model.parse(values) == made


@pytest.mark.parametrize(("model", "values"), VALID)
def test_every_field_is_checked_and_only_the_field_is_told(
    model: type[Parsed], values: dict[str, Any]
) -> None:
    for field in model.model_fields:
        refusal = _refused(model, values | {field: object()})

        assert refusal.field == f"{model.__name__}.{field}"


@pytest.mark.parametrize(("model", "values"), VALID)
def test_unknown_field_is_refused_without_being_repeated(
    model: type[Parsed], values: dict[str, Any]
) -> None:
    refusal = _refused(model, values | {CANARY: CANARY})

    assert refusal.field == model.__name__
    assert refusal.problem.startswith("unknown field; known are ")
    assert CANARY not in str(refusal)


@pytest.mark.parametrize(("model", "values"), VALID)
def test_missing_field_is_named(model: type[Parsed], values: dict[str, Any]) -> None:
    for field in values:
        rest = {name: value for name, value in values.items() if name != field}

        assert str(_refused(model, rest)) == f"{model.__name__}.{field}: is missing"


@pytest.mark.parametrize(("model", "values"), VALID)
def test_made_values_stay_as_they_are(model: type[Parsed], values: dict[str, Any]) -> None:
    made = model(**values)

    with pytest.raises(InvalidInputError, match="can't be changed") as refused:
        setattr(made, next(iter(values)), "canary")

    assert "canary" not in f"{refused.value!r} {vars(refused.value)} {refused.value.__context__!r}"
    assert made == model(**values)


@pytest.mark.parametrize("values", [None, 7, "text", [("tenant", "a")], b"{}"])
def test_only_objects_are_parsed(values: object) -> None:
    with pytest.raises(InvalidInputError, match="NewEntry: must be an object"):
        NewEntry.parse(values)


def test_field_named_like_the_constructors_own_is_just_unknown() -> None:
    with pytest.raises(InvalidInputError, match="unknown field"):
        NewEntry.parse(ENTRY | {"self": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"text": [CANARY]},
        {"text": CANARY + "\ud800"},
        {"tenant": CANARY + "\n"},
        {"scope": f"{CANARY}//x"},
        {"sensitivity": CANARY},
        {"subjects": CANARY},
        {"subjects": (CANARY + "\0",)},
        {"subjects": (CANARY,) * 65},
        {"metadata": {CANARY: 7}},
        {"metadata": {CANARY + "\n": "x"}},
        {"metadata": {"path": CANARY + "\ud800"}},
        {"metadata": [(CANARY, CANARY)]},
        {"idempotency_key": CANARY * 100},
        {CANARY: 1},
    ],
    ids=str,
)
def test_refused_value_goes_nowhere(change: dict[str, Any]) -> None:
    """Neither the message, nor the fields, nor a chained error of pydantic's may hold it."""
    refusal = _refused(NewEntry, ENTRY | change)

    assert CANARY not in str(refusal)
    assert CANARY not in repr(vars(refusal))
    assert refusal.__cause__ is None
    assert refusal.__context__ is None
    assert CANARY.encode() not in pickle.dumps(refusal)


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (NewEntry, ENTRY | {"text": CANARY, "subjects": (CANARY,), "metadata": {"k": CANARY},
                            "idempotency_key": CANARY}),
        (RecallQuery, QUERY | {"question": CANARY, "subjects": (CANARY,)}),
        (ContextItem, ITEM | {"text": CANARY}),
        (RecallContext, CONTEXT | {"task_digest": CANARY}),
    ],
)  # fmt: skip
def test_private_values_are_not_shown(model: type[Parsed], values: dict[str, Any]) -> None:
    made = model(**values)

    assert CANARY not in f"{made!r} {made!s} {list(made.__repr_args__())}"


# -- Names -----------------------------------------------------------------


@pytest.mark.parametrize("field", ["tenant", "owner", "scope", "kind"])
@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_bad_name_is_refused(field: str, name: object) -> None:
    assert _refused(NewEntry, ENTRY | {field: name}).field == f"NewEntry.{field}"


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_bad_subject_is_refused(name: object) -> None:
    refusal = _refused(NewEntry, ENTRY | {"subjects": ("good", name)})

    assert refusal.field == "NewEntry.subjects"


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_bad_metadata_key_is_refused(name: object) -> None:
    if isinstance(name, list):  # can't be a key at all
        name = tuple(name)

    refusal = _refused(NewEntry, ENTRY | {"metadata": {name: "value"}})

    assert refusal.field == "NewEntry.metadata"


@given(st.text(min_size=1, max_size=300))
def test_accepted_name_is_accepted_again_unchanged(name: str) -> None:
    try:
        made = NewEntry(**ENTRY | {"tenant": name})
    except InvalidInputError:
        return

    assert NewEntry(**ENTRY | {"tenant": made.tenant}).tenant == made.tenant
    assert made.tenant == unicodedata.normalize("NFC", name)


def test_two_spellings_of_a_name_are_one() -> None:
    composed, decomposed = (unicodedata.normalize(form, "Zoë") for form in ("NFC", "NFD"))

    made = NewEntry(**ENTRY | {"owner": decomposed, "subjects": [decomposed]})

    assert (made.owner, made.subjects) == (composed, (composed,))


class _Tenant(StrEnum):
    ACME = "acme"


def test_name_of_another_class_of_string_is_taken_as_its_text() -> None:
    made = NewEntry(**ENTRY | {"tenant": _Tenant.ACME})

    assert (type(made.tenant), made.tenant) == (str, "acme")
    assert type(parsed_name(_Tenant.ACME, field="tenant")) is str


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "must not be blank"),
        (" " * 256, "must not be blank"),
        (" " * 257, "must not be longer than 256 characters"),
        ("x" * 257, "must not be longer than 256 characters"),
        ("a\x7f", "must not hold control characters or line breaks"),
        ("\t", "must not be blank"),
    ],
    ids=ascii,
)
def test_refused_name_is_told_what_is_wrong_with_it(name: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parsed_name(name, field="tenant")

    assert refusal.value.problem == problem


def test_longest_name_passes() -> None:
    made = NewEntry(**ENTRY | {"tenant": "x" * 256, "owner": "e\u0301" * 256})

    assert (len(made.tenant), len(made.owner)) == (256, 256)


# -- Texts -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["x" * TEXT_BYTES_MAX, "é" * (TEXT_BYTES_MAX // 2), "😀" * (TEXT_BYTES_MAX // 4)],
    ids=["1 byte", "2 bytes", "4 bytes"],
)  # fmt: skip
def test_one_mebibyte_of_text_passes_and_one_character_more_does_not(text: str) -> None:
    made = NewEntry(**ENTRY | {"text": text})
    refusal = _refused(NewEntry, ENTRY | {"text": text + "x"})

    assert made.text == text
    assert refusal.problem == "is longer than 1048576 UTF-8 bytes; split it"


@pytest.mark.parametrize("text", ["", " \n\t", "\u3000"])
def test_entry_must_say_something(text: str) -> None:
    assert str(_refused(NewEntry, ENTRY | {"text": text})) == "NewEntry.text: must not be blank"


def test_lone_surrogate_is_named_as_the_problem() -> None:
    refusal = _refused(NewEntry, ENTRY | {"text": "before \ud800 after"})

    assert refusal.problem == "holds a lone surrogate, which isn't valid Unicode"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_text_is_never_changed(text: str) -> None:
    assert RecallQuery(**QUERY | {"question": text}).question == text


# -- Bounds and types of the other fields ----------------------------------


@pytest.mark.parametrize(
    ("model", "values", "field", "bad"),
    [
        (RecallQuery, QUERY, "limit", [0, -1, 100_001, 1.0, True, "7", float("nan"), None]),
        (RecallQuery, QUERY, "scopes", [(), ("a",) * 257, "a", ("a//b",), None]),
        (RecallQuery, QUERY, "read_ceiling", ["secret", 1, None, "PUBLIC"]),
        (RecallQuery, QUERY, "kind", ["best", None, 0]),
        (RecallQuery, QUERY, "candidate_selection", ["newest", None]),
        (RecallQuery, QUERY, "subjects", [("a",) * 65, "ana"]),
        (RecallQuery, QUERY, "as_of", [datetime(2030, 1, 1), "2030-01-01", 0]),  # noqa: DTZ001  # the point
        (NewEntry, ENTRY, "subjects", [("a",) * 65, "ana", ("",)]),
        (NewEntry, ENTRY, "metadata", [{f"k{n}": "" for n in range(65)}, [], {"a": None}]),
        (NewEntry, ENTRY, "sensitivity", [None, "secret", 2]),
        (ContextItem, ITEM, "layer", [-1, 3, True, 1.0, "1"]),
        (ContextItem, ITEM, "required", [1, "yes", None]),
        (EmbeddingTuple, SPACE, "dimensions", [0, 16_385, 2.0, True, "256"]),
        (EmbeddingTuple, SPACE, "distance", ["dot", None]),
    ],
)
def test_value_outside_its_bounds_is_refused(
    model: type[Parsed], values: dict[str, Any], field: str, bad: list[object]
) -> None:
    for value in bad:
        assert _refused(model, values | {field: value}).field == f"{model.__name__}.{field}"


def test_bounds_themselves_pass() -> None:
    query = RecallQuery(**QUERY | {"limit": 100_000, "scopes": ["a"] * 256, "question": ""})
    entry = NewEntry(
        **ENTRY | {"subjects": ["a"] * 64, "metadata": {f"k{n}": "" for n in range(64)}}
    )

    assert (query.limit, len(query.scopes)) == (100_000, 256)
    assert (len(entry.subjects), len(entry.metadata)) == (64, 64)


def test_words_of_plain_data_are_understood() -> None:
    query = RecallQuery.parse(
        QUERY | {"read_ceiling": "restricted", "kind": "people", "subjects": ["Ana"],
                 "candidate_selection": "legacy"}
    )  # fmt: skip

    assert query.read_ceiling is Sensitivity.RESTRICTED
    assert query.kind is RecallKind.PEOPLE
    assert query.candidate_selection is CandidateSelection.LEGACY


# -- Rules that span fields ------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in RecallKind if kind != "historical"])
def test_point_in_time_goes_with_historical_recall_only(kind: RecallKind) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)

    with pytest.raises(InvalidInputError, match=r"RecallQuery\.as_of: goes with kind historical"):
        RecallQuery(**QUERY | {"kind": kind, "as_of": at, "subjects": ("Ana",)})
    with pytest.raises(InvalidInputError, match=r"RecallQuery\.as_of: goes with kind historical"):
        RecallQuery(**QUERY | {"kind": RecallKind.HISTORICAL})
    assert RecallQuery(**QUERY | {"kind": RecallKind.HISTORICAL, "as_of": at}).as_of == at


def test_recall_about_people_names_somebody() -> None:
    with pytest.raises(InvalidInputError, match=r"RecallQuery\.subjects: must name somebody"):
        RecallQuery(**QUERY | {"kind": RecallKind.PEOPLE})


@pytest.mark.parametrize("scope", ["/a", "a/", "a//b", ".", "a/../b", "a/./b", "a/ /b", "/"])
def test_scope_is_names_joined_by_single_slashes(scope: str) -> None:
    assert _refused(NewEntry, ENTRY | {"scope": scope}).problem.startswith("must be names joined")


def test_metadata_of_the_caller_is_copied() -> None:
    metadata = {"path": "adr/0001.md"}
    made = NewEntry(**ENTRY | {"metadata": metadata})

    metadata["path"] = "elsewhere"

    assert made.metadata == {"path": "adr/0001.md"}


def test_entries_do_not_share_their_empty_metadata() -> None:
    assert NewEntry(**ENTRY).metadata is not NewEntry(**ENTRY).metadata
