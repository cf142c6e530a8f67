"""Stored states, read strictly and fast: plain dictionaries, no event objects.

Exactly the fields of the event's class, of exactly their types, in the one canonical spelling.
What a row says is judged by the classes of the domain, but none of them is ever made.
"""

import re
import types
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from eventsourcing.domain import AggregateEvent

from remembrancer.domain.canonical_json import parse_canonical_json
from remembrancer.domain.stored_format import EVENTS

Decode = Callable[[bytes], Any]
"""Reads canonical JSON, and nothing else.  Raises ValueError."""

State = dict[str, Any]
"""Fields of an event by name: UUIDs as 32 hexadecimal digits, times as aware UTC."""

AT = "timestamp"

_IDENTITY = ("originator_id", "originator_version")
_CLASS_VERSION = "class_version"
_TYPE, _DATA = "_type_", "_data_"
_TYPE_MARK = b'"_type_"'
_UUID, _TIME = "uuid_hex", "datetime_iso"
_TYPED: dict[type, str] = {UUID: _UUID, datetime: _TIME}
_UUID_HEX = re.compile(r"[0-9a-f]{32}")

_StoredShape = tuple[tuple[str, ...], tuple[type, ...]]


class StateReader:
    """Reads states by topic."""

    def __init__(self, decode: Decode = parse_canonical_json) -> None:
        """``decode`` may be a faster reader of the same."""
        self._decode = decode
        self._shapes = {topic: _Shape.of(event) for topic, event in EVENTS.items()}

    def read(self, topic: str, data: bytes) -> tuple[State, str]:
        """Return the state, or what is wrong with it; ``topic`` must be a known one."""
        try:
            raw = self._decode(data)
            shape = self._shapes[topic]
            stored_shape = (tuple(raw), tuple(map(type, raw.values())))
            typed = shape.seen.get(stored_shape)
            if typed is None:
                problem = shape.problem(raw)
                if problem:
                    return {}, problem
                typed = shape.remember(stored_shape, raw)
            for name, kind in typed:
                raw[name] = _revived(raw[name], kind)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return {}, "isn't canonical JSON of known types"
        if data.count(_TYPE_MARK) != len(typed):
            return {}, "has a typed value where none belongs"
        return raw, ""


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of one event class."""

    class_version: int
    types: dict[str, tuple[type, ...]]
    """By field: the types its stored value may have; empty for any."""
    typed: dict[str, str]
    """Fields that hold a typed value, and of which type."""
    optional: frozenset[str]
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


def _revived(value: dict[str, str], kind: str) -> Any:
    data = value[_DATA]
    if value[_TYPE] != kind or len(value) != len((_TYPE, _DATA)):
        raise ValueError("another type")
    return _uuid_hex(data) if kind == _UUID else _time(data)


@lru_cache(maxsize=4096)
def _uuid_hex(text: str) -> str:
    if _UUID_HEX.fullmatch(text) is None:
        raise ValueError("not the canonical spelling of a UUID")
    return text


def _time(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    if value.isoformat() != text or value.tzinfo is None:
        raise ValueError("not the canonical spelling of a time")
    return value if value.tzinfo is UTC else value.astimezone(UTC)


def _exact_types(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return ()
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        each = [_exact_types(one) for one in get_args(hint)]
        return tuple(kind for kinds in each for kind in kinds) if all(each) else ()
    found = origin or hint
    return (found,) if isinstance(found, type) else ()
