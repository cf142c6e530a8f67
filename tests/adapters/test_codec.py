"""Canonical JSON of event states, and events to and from records."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import msgspec
import pytest
from eventsourcing.domain import Aggregate, AggregateEvent
from eventsourcing.persistence import StoredEvent
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.adapters.eventlog import mapper as mapper_module
from remembrancer.adapters.eventlog.codec import CanonicalTranscoder
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json
from remembrancer.domain.errors import MalformedRecordError

TRANSCODER = CanonicalTranscoder()
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs"]))
keys = texts.filter(lambda key: key != "_type_")
moments = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]))
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
leaves = plain | st.uuids() | moments
states = st.dictionaries(
    keys,
    st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=5,
)


@given(states)
def test_reads_back_what_it_wrote(state: dict[str, Any]) -> None:
    data = TRANSCODER.encode(state)

    assert TRANSCODER.decode(data) == state


@given(states)
def test_writes_one_spelling(state: dict[str, Any]) -> None:
    data = TRANSCODER.encode(state)

    assert TRANSCODER.encode(TRANSCODER.decode(data)) == data
    assert TRANSCODER.encode(dict(reversed(state.items()))) == data


@given(st.dictionaries(keys, plain, max_size=5))
def test_spells_as_the_domain_does(state: dict[str, Any]) -> None:
    """The fast writing must not spell anything in its own way."""
    assert TRANSCODER.encode(state) == canonical_json(state)


@given(st.recursive(plain, lambda inner: st.lists(inner, max_size=3), max_leaves=6))
def test_takes_no_other_spelling_than_the_domain(value: Any) -> None:
    """The fast reading must not accept what the exact one refuses."""
    for spelling in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, separators=(",", ":")),
        json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    ):
        try:
            expected = parse_canonical_json(spelling.encode())
        except ValueError:
            with pytest.raises(ValueError):  # noqa: PT011 - the same refusal
                TRANSCODER.decode(spelling.encode())
        else:
            assert TRANSCODER.decode(spelling.encode()) == expected


@pytest.mark.parametrize("number", ["1e16", "1E+16", "0.00001", "1e-5", "1.50", "-0", "01", "1."])
def test_takes_no_other_spelling_of_a_number(number: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - not canonical
        TRANSCODER.decode(f'{{"x":{number}}}'.encode())


@pytest.mark.parametrize(
    ("moment", "canonical"),
    [
        ("2030-01-01T12:00:00+00:00", True),
        ("2030-01-01T12:00:00.000001+00:00", True),
        ("2030-01-01T12:00:00+05:45", True),
        ("2030-01-01T12:00:00.000000+00:00", False),
        ("2030-01-01T12:00:00.001+00:00", False),
        ("2030-01-01T12:00:00,000001+00:00", False),
        ("2030-01-01 12:00:00+00:00", False),
        ("2030-01-01T12:00:00-00:00", False),
        ("2030-01-01T12:00:00Z", False),
        ("2030-01-01T12:00:00", False),
        ("2030-01-01T12:00+00:00", False),
        ("20300101T120000+0000", False),
        ("2030-W01-1T12:00:00+00:00", False),
        ("2030-13-01T12:00:00+00:00", False),
        ("２030-01-01T12:00:00+00:00", False),  # noqa: RUF001 - a digit of another script
        ("2030-01-01T12:00:00+00:00 ", False),
    ],
)
def test_takes_one_spelling_of_a_time(moment: str, canonical: bool) -> None:  # noqa: FBT001  # a case
    data = f'{{"x":{{"_data_":"{moment}","_type_":"datetime_iso"}}}}'.encode()

    try:
        TRANSCODER.decode(data)
    except ValueError:
        taken = False
    else:
        taken = True

    assert taken == canonical


@pytest.mark.parametrize(
    "value", [(1, 2), {1}, b"x", object(), type("Text", (str,), {})("x"), {1: 2}, {None: 1}]
)
def test_refuses_what_would_come_back_as_something_else(value: Any) -> None:
    with pytest.raises(TypeError):
        TRANSCODER.encode({"x": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"_type_": "uuid_hex"}])
def test_refuses_what_can_not_be_read(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json and codecs word it
        TRANSCODER.encode({"x": value})


@pytest.mark.parametrize(
    "value",
    [
        {"_type_": "uuid_hex"},
        {"_type_": "uuid_hex", "_data_": 7},
        {"_type_": "uuid_hex", "_data_": "7"},
        {"_type_": "uuid_hex", "_data_": "0" * 32, "more": 1},
        {"_type_": ["uuid_hex"], "_data_": "0" * 32},
        {"_type_": "decimal_str", "_data_": "1"},
        {"_type_": "datetime_iso", "_data_": "2030-01-01"},
    ],
)
def test_refuses_a_typed_value_that_is_none(value: Any) -> None:
    data = json.dumps({"x": value}, sort_keys=True, separators=(",", ":")).encode()

    with pytest.raises((ValueError, TypeError)):
        TRANSCODER.decode(data)


class Kept(Aggregate):
    """Of which an older release stored other fields."""

    TOPIC = "test.kept"

    class Created(Aggregate.Created):
        """It began."""

        TOPIC = "test.kept.created"

    class Changed(Aggregate.Event):
        """Its amount changed; version 1 called it otherwise."""

        TOPIC = "test.kept.changed"
        class_version = 2
        amount_quanta: int
        note: str = "none"

        @staticmethod
        def upcast_v1_v2(state: dict[str, Any]) -> None:
            state["amount_quanta"] = state.pop("amount")


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AggregateEvent]:
    """Return how to read an event from the state in its record."""
    listed = {Kept.Changed.TOPIC: Kept.Changed}
    monkeypatch.setattr(mapper_module, "EVENTS", listed)
    monkeypatch.setattr(mapper_module, "require_known", lambda topic, _=None: listed[topic])
    mapper = ListedMapper()

    def read(fields: str) -> AggregateEvent:
        state = (
            "{" + fields + ',"timestamp":{"_data_":"2030-01-01T12:00:00+00:00",'
            '"_type_":"datetime_iso"}}'
        )
        record = StoredEvent(UUID(int=1), 2, Kept.Changed.TOPIC, state.encode())
        return mapper.to_domain_event(record)

    return read


def test_an_older_class_version_is_upcast(changed: Callable[[str], AggregateEvent]) -> None:
    event = changed('"amount":7')

    assert vars(event)["amount_quanta"] == 7


def test_a_field_with_a_default_may_be_absent(changed: Callable[[str], AggregateEvent]) -> None:
    event = changed('"amount_quanta":7,"class_version":2')

    assert "note" not in vars(event)
    assert event.note == "none"  # type: ignore[attr-defined]  # of Kept.Changed


@pytest.mark.parametrize("version", ["3", "0", "-1", "true", '"2"', "2.0"])
def test_an_unknown_class_version_is_refused(
    changed: Callable[[str], AggregateEvent], version: str
) -> None:
    with pytest.raises(MalformedRecordError):
        changed(f'"amount_quanta":7,"class_version":{version}')


def _changed(**fields: Any) -> Kept.Changed:
    return Kept.Changed(originator_id=UUID(int=1), originator_version=2, timestamp=NOON, **fields)


@pytest.mark.usefixtures("changed")
def test_the_class_version_is_written() -> None:
    event = _changed(amount_quanta=7)

    state = json.loads(ListedMapper().to_stored_event(event).state)

    assert state["class_version"] == 2


def test_a_state_is_spelt_alike_the_first_time_and_later(
    changed: Callable[[str], AggregateEvent],
) -> None:
    mapper = ListedMapper()
    event = changed('"amount_quanta":36893488147419103232,"class_version":2,"note":"\u00e4"')

    spelt = [mapper.to_stored_event(event).state for _ in range(3)]

    assert len(set(spelt)) == 1
    assert changed(spelt[0].decode()[1:-1].rsplit(',"timestamp"', 1)[0]) == event


@pytest.mark.usefixtures("changed")
def test_a_field_of_the_wrong_type_is_refused_also_behind_right_ones() -> None:
    mapper = ListedMapper()
    mapper.to_stored_event(_changed(amount_quanta=7))

    with pytest.raises(MalformedRecordError, match="wrong type"):
        mapper.to_stored_event(_changed(amount_quanta="7"))
    with pytest.raises(MalformedRecordError, match="canonical"):
        mapper.to_stored_event(_changed(amount_quanta=7, note="\ud800"))


def test_an_upcast_that_fails_is_a_malformed_record(
    changed: Callable[[str], AggregateEvent],
) -> None:
    with pytest.raises(MalformedRecordError):
        changed('"sum":7')


@given(st.floats(1e-4, 1e16, exclude_max=True))
def test_a_float_that_needs_no_exponent_is_spelt_alike_by_both_writers(value: float) -> None:
    assert msgspec.json.encode(value).decode() == repr(value)


@pytest.mark.parametrize("spelt", [b"0.00001", b"1e16", b"1.50", b"0.10000000000000001", b"1e-5"])
def test_a_float_in_another_spelling_is_refused(spelt: bytes) -> None:
    with pytest.raises(ValueError, match="canonical"):
        TRANSCODER.decode(b'{"score":' + spelt + b"}")
