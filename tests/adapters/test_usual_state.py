"""The quick reading of events: it must say what the exact one says, of every record."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.eventlog.usual_state import UsualState
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import RemembrancerError

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDS = [
    (record["topic"], canonical_json(record["state"]))
    for path in sorted(GOLDEN.glob("*.jsonl"))
    for record in map(json.loads, path.read_text().splitlines())
]
MAPPER = ListedMapper()

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(2**64), 10**30])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1e-4, 9.9e-5, 1e-5, 0.5, 1e15, 1e16, 1e17, -0.25])
    | st.sampled_from(["", "text", "4ff9a458-7dc4-46a8-b647-65fc3f6201aa"])
    | st.sampled_from(
        [
            {"_data_": "0" * 32, "_type_": "uuid_hex"},
            {"_data_": "0" * 31, "_type_": "uuid_hex"},
            {"_data_": "2030-01-01T12:00:00+00:00", "_type_": "datetime_iso"},
            {"_data_": "2030-01-01", "_type_": "datetime_iso"},
            {"_data_": "x", "_type_": "unknown"},
            {"_type_": "uuid_hex"},
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "_type_", "version"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def _read(topic: str, data: bytes) -> str:
    """Return what is read, down to the types, or what is said of the record."""
    try:
        event = MAPPER.to_domain_event(StoredEvent(UUID(int=1), 1, topic, data))
    except RemembrancerError as error:
        return f"{type(error).__name__}: {error}"
    return f"{type(event).__name__} {sorted(vars(event).items())}"


def _read_exactly(topic: str, data: bytes) -> str:
    with patch.object(UsualState, "read", lambda _, __: None):
        return _read(topic, data)


@pytest.mark.parametrize(("topic", "state"), RECORDS)
def test_recorded_events_are_read_as_the_exact_reading_reads_them(
    topic: str, state: bytes
) -> None:
    read = _read(topic, state)

    assert read == _read_exactly(topic, state)
    assert "Error" not in read


def test_what_is_written_today_is_usual() -> None:
    """Else nothing would be gained, and nobody would notice."""
    topics = [topic for topic, state in RECORDS if _is_usual(topic, state)]

    assert set(topics) == {topic for topic, _ in RECORDS}


def _is_usual(topic: str, data: bytes) -> bool:
    return MAPPER._shape(topic).usual.read(data) is not None


@given(st.sampled_from(RECORDS), st.data())
def test_altered_field_is_taken_or_refused_as_by_the_exact_reading(
    record: tuple[str, bytes], data: st.DataObject
) -> None:
    topic, state = record
    fields = json.loads(state)
    place = data.draw(st.sampled_from([*_places(fields), (fields, "class_version")]))
    container, key = place
    container[key] = data.draw(values)

    altered = canonical_json(fields)

    assert _read(topic, altered) == _read_exactly(topic, altered)


@pytest.mark.parametrize(("topic", "state"), RECORDS)
@pytest.mark.parametrize("marked", [[], ["a"], "a", "uuid_hex", 1, None, {}], ids=repr)
def test_marked_value_is_refused_wherever_keys_may_have_any_name(
    topic: str, state: bytes, marked: object
) -> None:
    """No writer can have recorded it: it couldn't be told from a typed value."""
    for number in range(len(_places(json.loads(state)))):
        fields = json.loads(state)
        container, key = _places(fields)[number]
        if not isinstance(container[key], dict):
            continue
        container[key]["_type_"] = marked

        altered = canonical_json(fields)

        assert _read(topic, altered) == _read_exactly(topic, altered)


@given(st.sampled_from(RECORDS), st.data())
def test_missing_field_is_refused_as_by_the_exact_reading(
    record: tuple[str, bytes], data: st.DataObject
) -> None:
    topic, state = record
    fields = json.loads(state)
    container, key = data.draw(st.sampled_from(_places(fields)))
    del container[key]

    lacking = canonical_json(fields)

    assert _read(topic, lacking) == _read_exactly(topic, lacking)


@given(st.sampled_from(RECORDS), st.data())
def test_other_spelling_is_refused_as_by_the_exact_reading(
    record: tuple[str, bytes], data: st.DataObject
) -> None:
    topic, state = record
    place = data.draw(st.integers(0, len(state)))
    inserted = data.draw(
        st.sampled_from([b" ", b"0", b"e", b"\\u0061", b"\0", b",", b"{", b"\xff"])
    )

    respelt = state[:place] + inserted + state[place:]

    assert _read(topic, respelt) == _read_exactly(topic, respelt)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a state that something stands in."""
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    else:
        return []
    return [(value, key) for key in keys] + [
        place for key in keys for place in _places(value[key])
    ]
