"""Events to and from records, for listed topics only.

The library finds an event's class by importing whatever its record names, and builds it from
whatever fields are there.  Here both are checked first: a record that isn't exactly one of ours is
a typed error, and nothing is imported for it.
"""

import types
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from eventsourcing.domain import AggregateEvent, DomainEventProtocol
from eventsourcing.persistence import Mapper, StoredEvent
from typing_extensions import override

from remembrancer.adapters.eventlog.codec import CanonicalTranscoder, is_plainly_spelt
from remembrancer.adapters.eventlog.usual_state import UsualState
from remembrancer.domain.errors import MalformedRecordError, UnknownTopicError
from remembrancer.domain.stored_format import EVENTS, require_known

_IDENTITY = ("originator_id", "originator_version")
_CLASS_VERSION = "class_version"
_ORIGINATOR_TOPIC = "originator_topic"

_Kinds = tuple[tuple[str, ...], tuple[type, ...]]
"""Names and types of a state's fields."""


class ListedMapper(Mapper[UUID]):
    """Maps the events of :data:`remembrancer.domain.stored_format.EVENTS`."""

    def __init__(self) -> None:
        self._codec = CanonicalTranscoder()
        super().__init__(transcoder=self._codec)
        self._shapes: dict[str, _Shape] = {}

    @override
    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """Return the record of an event.

        Raises:
            UnknownTopicError: its class isn't listed.
            MalformedRecordError: its state has no canonical spelling.
        """
        cls = type(domain_event)
        topic = getattr(cls, "TOPIC", f"{cls.__module__}:{cls.__qualname__}")
        if EVENTS.get(topic) is not cls:
            raise UnknownTopicError(topic)
        stream_id, version = domain_event.originator_id, domain_event.originator_version
        state = dict(vars(domain_event))
        for name in _IDENTITY:
            del state[name]
        shape = self._shape(topic)
        kinds = tuple(state), tuple(map(type, state.values()))
        to_spell = shape.recorded.get(kinds)
        problem = shape.problem(state) if to_spell is None else ""
        if problem:
            raise MalformedRecordError(stream_id=stream_id, version=version, problem=problem)
        if shape.class_version > 1:
            state[_CLASS_VERSION] = shape.class_version
        try:
            if to_spell is None:
                data = self._codec.encode(state)
                if is_plainly_spelt(state):
                    shape.recorded[kinds] = self._codec.to_spell(state)
            else:
                data = self._codec.encode_usual(state, to_spell)
        except (ValueError, TypeError) as error:
            raise MalformedRecordError(
                stream_id=stream_id, version=version, problem="has no canonical spelling"
            ) from error
        return StoredEvent(stream_id, version, topic, data)

    @override
    def to_domain_event(self, stored_event: StoredEvent) -> AggregateEvent:
        """Return the event of a record.

        Raises:
            UnknownTopicError: its topic, or that of the aggregate it begins, isn't listed.
            MalformedRecordError: the record isn't canonical, or hasn't the fields of its event.
        """
        topic, version = stored_event.topic, stored_event.originator_version
        stream_id = stored_event.originator_id
        if not isinstance(stream_id, UUID):
            stream_id = UUID(stream_id)
        shape = self._shapes.get(topic) or self._shape(topic)
        state = shape.usual.read(stored_event.state)
        if state is None:
            state, problem = self._state(topic, stored_event.state)
            if problem:
                raise MalformedRecordError(stream_id=stream_id, version=version, problem=problem)
        else:
            if _ORIGINATOR_TOPIC in state:
                require_known(topic, state[_ORIGINATOR_TOPIC])
            if shape.class_version > 1:
                del state[_CLASS_VERSION]  # It was the present one.
        state["originator_id"] = stream_id
        state["originator_version"] = version
        # A frozen dataclass whose fields were checked: built as the library does it.
        domain_event = object.__new__(EVENTS[topic])
        object.__setattr__(domain_event, "__dict__", state)
        return domain_event

    def _state(self, topic: str, data: bytes) -> tuple[dict[str, Any], str]:
        """Return the checked state, or what is wrong with it."""
        try:
            raw = self._codec.parsed(data)
            if type(raw) is not dict:
                return {}, "isn't the state of an event"
            return self._checked(topic, raw)
        except (ValueError, TypeError, RecursionError):
            return {}, "isn't canonical JSON of known types"

    def _checked(self, topic: str, raw: dict[str, Any]) -> tuple[dict[str, Any], str]:
        originator_topic = raw.get(_ORIGINATOR_TOPIC)
        if type(originator_topic) is str:
            require_known(topic, originator_topic)
        shape = self._shape(topic)
        state = self._codec.revived(raw)
        if type(state) is not dict:
            return {}, "isn't the state of an event"
        recorded = state.pop(_CLASS_VERSION, 1)
        if type(recorded) is not int or not 1 <= recorded <= shape.class_version:
            return {}, "is of a class version that this release doesn't know"
        try:
            for older in range(recorded, shape.class_version):
                getattr(EVENTS[topic], f"upcast_v{older}_v{older + 1}")(state)
        except (KeyError, TypeError, ValueError):  # An upcast may rely on its version's fields.
            return {}, f"isn't an event of class version {recorded}"
        return state, shape.problem(state) or shape.missing(state)

    def _shape(self, topic: str) -> "_Shape":
        """Return the shape of a listed topic's event.

        Raises:
            UnknownTopicError: it isn't listed.
        """
        shape = self._shapes.get(topic)
        if shape is None:
            require_known(topic)
            shape = self._shapes[topic] = _Shape.of(EVENTS[topic], self._codec)
        return shape


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of one event class."""

    class_version: int
    types: dict[str, tuple[type, ...]]
    """By field: the exact types its value may have; empty for any."""
    optional: frozenset[str]
    """Fields with a default, which older records don't have."""
    usual: UsualState
    """Reads records of the present class version."""
    recorded: dict[_Kinds, tuple[str, ...]] = field(default_factory=dict)
    """What states of right types were recorded already, and which of their fields aren't JSON."""

    @classmethod
    def of(cls, event: type[AggregateEvent], codec: CanonicalTranscoder) -> "_Shape":
        hints = get_type_hints(event)
        names = [one.name for one in fields(event) if one.name not in _IDENTITY]
        optional = frozenset(name for name in names if hasattr(event, name))
        class_version = getattr(event, _CLASS_VERSION, 1)
        stored = {name: hints[name] for name in names}
        if class_version > 1:
            stored[_CLASS_VERSION] = Literal[class_version]
        return cls(
            class_version=class_version,
            types={name: _exact_types(hints[name]) for name in names},
            optional=optional,
            usual=UsualState(stored, optional=optional, codec=codec),
        )

    def problem(self, state: dict[str, Any]) -> str:
        """Return what is wrong with the fields of ``state``, or nothing; never a value."""
        for name, value in state.items():
            allowed = self.types.get(name)
            if allowed is None:
                return "has a field that its event doesn't have"
            if allowed and type(value) not in allowed:
                return f"{name} is of the wrong type"
        return ""

    def missing(self, state: dict[str, Any]) -> str:
        """Return which fields ``state`` lacks, or nothing."""
        absent = self.types.keys() - state.keys() - self.optional
        return f"lacks {', '.join(sorted(absent))}" if absent else ""


def _exact_types(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return ()
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        each = [_exact_types(one) for one in get_args(hint)]
        return tuple(kind for kinds in each for kind in kinds) if all(each) else ()
    found = origin or hint
    return (found,) if isinstance(found, type) else ()
