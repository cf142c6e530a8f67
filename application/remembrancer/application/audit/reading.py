"""Stored states, read strictly: plain values, no event objects.

Exactly the fields of the event's class, of exactly their types, in the one canonical spelling.
What a row says is judged by the classes of the domain, but none of them is ever made.
"""

import json
import types
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json
from remembrancer.domain.stored_format import EVENTS

Decode = Callable[[bytes], Any]
"""Reads canonical JSON, and nothing else.  Raises ValueError."""

State = Any
"""The fields of an event as attributes: UUIDs as 32 hexadecimal digits, times as aware UTC, None
for a field that older or simpler events don't have; entries of a selection likewise."""

ENTRIES = "entries"
"""The one field whose parts have fields of their own."""

RANKS_ARE_SOUND = "_ranks_are_sound_"
"""What a state has whose reader has proved already what :func:`.permitted.check_ranks` checks."""

_IDENTITY = ("originator_id", "originator_version")
_CLASS_VERSION = "class_version"
_TYPE, _DATA = "_type_", "_data_"
_TYPE_MARK = b'"_type_":'
"""A key: a text that says the same is followed by no colon."""
_UUID, _TIME = "uuid_hex", "datetime_iso"
_TYPED: dict[type, str] = {UUID: _UUID, datetime: _TIME}
_TYPED_KEYS = 2
_UUID_DIGITS, _DIGEST_DIGITS = 32, 64
_LENGTH, _LENGTH_FRACTION = 25, 32
"""Of ``2030-01-31T12:00:00+00:00``, and of the same with microseconds."""
_MARKS, _UTC_MARKS = slice(4, 19, 3), "--T::"
_FRACTION = slice(20, 26)
_time_of = datetime.fromisoformat

_StoredShape = tuple[tuple[str, ...], tuple[type, ...]]


class StateReader:
    """Reads states by topic."""

    def __init__(self, decode: Decode = parse_canonical_json) -> None:
        """``decode`` may be a faster reader of the same."""
        self._decode = decode
        self._shapes = {topic: _Shape.of(event) for topic, event in EVENTS.items()}

    def spell(self, value: Any) -> bytes:
        """Return the canonical JSON of ``value``.

        A faster reader may spell rare values otherwise: what it confirms by a digest is so.
        """
        return canonical_json(value)

    def parse(self, data: bytes) -> Any:
        """Return what JSON says; a faster reader may refuse what is rare.

        Raises:
            ValueError: it isn't JSON.
        """
        return json.loads(data)

    def read(self, topic: str, data: bytes) -> tuple[State, str]:
        """Return the state, or what is wrong with it; ``topic`` must be a known one."""
        try:
            raw: dict[str, Any] = self._decode(data)
            shape = self._shapes[topic]
            stored_shape = (tuple(raw), tuple(map(type, raw.values())))
            typed = shape.seen.get(stored_shape)
            if typed is None:
                problem = shape.problem(raw)
                if problem:
                    return None, problem
                typed = shape.remember(stored_shape, raw)
            for name, kind in typed:
                value = raw[name]
                if value[_TYPE] != kind or len(value) != _TYPED_KEYS:
                    return None, "has a typed value of another type"
                text = value[_DATA]
                raw[name] = hexadecimal(text) if kind == _UUID else utc_time(text)
            if ENTRIES in raw:
                raw[ENTRIES] = [SimpleNamespace(**one) for one in raw[ENTRIES]]
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return None, "isn't canonical JSON of known types"
        if data.count(_TYPE_MARK) != len(typed):
            return None, "has a typed value where none belongs"
        return SimpleNamespace(**{**shape.absent, **raw}), ""


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of one event class."""

    class_version: int
    types: dict[str, tuple[type, ...]]
    """By field: the types its stored value may have; empty for any."""
    typed: dict[str, str]
    """Fields that hold a typed value, and of which type."""
    optional: frozenset[str]
    """Fields with a default, which simpler records don't have."""
    absent: dict[str, None]
    """What stands for these where they aren't there."""
    seen: dict[_StoredShape, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Shapes of right states, and which of their fields hold typed values."""

    @classmethod
    def of(cls, event: type[AggregateEvent]) -> "_Shape":
        hints = get_type_hints(event)
        own = [one.name for one in fields(event) if one.name not in _IDENTITY]
        exact = {name: _exact_types(hints[name]) for name in own}
        typed = {
            name: _TYPED[kind] for name, kinds in exact.items() for kind in kinds if kind in _TYPED
        }
        return cls(
            class_version=getattr(event, _CLASS_VERSION, 1),
            types={
                name: tuple(dict if kind in _TYPED else kind for kind in kinds)
                for name, kinds in exact.items()
            },
            typed=typed,
            optional=frozenset(name for name in own if hasattr(event, name)),
            absent={name: None for name in own if hasattr(event, name)},
        )

    def problem(self, raw: dict[str, Any]) -> str:
        """Return what is wrong with the fields and their types, or nothing; never a value."""
        recorded = raw.get(_CLASS_VERSION, 1)
        if type(recorded) is not int or recorded != self.class_version:
            return "is of a class version that this release doesn't know"
        for name, value in raw.items():
            allowed = self.types.get(name)
            if allowed is None:
                if name == _CLASS_VERSION:
                    continue
                return "has a field that its event doesn't have"
            if allowed and type(value) not in allowed:
                return f"{name} is of the wrong type"
        absent = self.types.keys() - raw.keys() - self.optional
        return f"lacks {', '.join(sorted(absent))}" if absent else ""

    def remember(
        self, stored_shape: _StoredShape, raw: dict[str, Any]
    ) -> tuple[tuple[str, str], ...]:
        typed = tuple((name, self.typed[name]) for name in raw if name in self.typed and raw[name])
        if len(self.seen) < _SHAPES_MAX:
            self.seen[stored_shape] = typed
        return typed


_SHAPES_MAX = 64
"""Shapes remembered of one event: it has few, whatever a damaged log holds."""


def hexadecimal(text: str) -> str:
    """Return the digits of a UUID as they are stored.

    Raises:
        ValueError: they aren't.
    """
    if len(text) != _UUID_DIGITS or bytes.fromhex(text).hex() != text:
        raise ValueError("not the canonical spelling of a UUID")
    return text


def is_digest(text: str) -> bool:
    """Say whether this is a SHA-256 hash in hexadecimal, as we write it."""
    if len(text) != _DIGEST_DIGITS:
        return False
    try:
        return bytes.fromhex(text).hex() == text
    except ValueError:
        return False


def utc_time(text: str) -> datetime:
    """Read a time as it is stored.

    Raises:
        ValueError: it isn't spelt as we write times.
    """
    value = _time_of(text)
    # Spelling it again takes longer than all else; our own times, in UTC, are told by their marks:
    # between these only digits were read.
    if text[_MARKS] == _UTC_MARKS and text[-6:] == "+00:00":
        length = len(text)
        if length == _LENGTH or (
            length == _LENGTH_FRACTION and text[19] == "." and text[_FRACTION] != "000000"
        ):
            return value
    if value.isoformat() != text or value.tzinfo is None:
        raise ValueError("not the canonical spelling of a time")
    return value.astimezone(UTC)


def _exact_types(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return ()
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        each = [_exact_types(one) for one in get_args(hint)]
        return tuple(kind for kinds in each for kind in kinds) if all(each) else ()
    found = origin or hint
    return (found,) if isinstance(found, type) else ()
