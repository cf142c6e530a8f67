"""Event states as canonical JSON.

The library's transcoder writes and reads NaN, keeps the last of duplicate keys and takes any
spacing.  Hashes need one spelling for one state, and a reader must refuse what no writer of ours
can have written (adr/0006).
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    DatetimeAsISO,
    JSONTranscoder,
    TranscodingNotRegisteredError,
    UUIDAsHex,
)
from typing_extensions import override

from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json

UUIDS_REMEMBERED = 1024
"""An entry's id stands in each of its events; making a UUID costs more than finding it."""

SPELT_ALIKE_FROM, SPELT_ALIKE_TO = 1e-4, 1e16
"""Floats between these msgspec spells as Python does: writing one back is proof enough."""

_TYPE, _DATA = "_type_", "_data_"
_TYPED_KEYS = 2
_DIGITS_TO_0 = bytes.maketrans(b"0123456789", b"0000000000")
_UTC_PATTERNS = frozenset({b"0000-00-00T00:00:00+00:00", b"0000-00-00T00:00:00.000000+00:00"})
_FRACTION = slice(19, 26)
_TO_REVIVE = frozenset({dict, list})
_AS_THEY_ARE = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})
_PLAINLY_SPELT = frozenset({str, int, bool, type(None), UUID, datetime})


class CanonicalTranscoder(JSONTranscoder):
    """One spelling for one state, and only that spelling is read."""

    def __init__(self) -> None:
        super().__init__()
        self.register(CanonicalUUID())
        self.register(CanonicalDatetime())
        import msgspec  # noqa: PLC0415 - 11 ms, wanted only where a log is opened

        self._decode = msgspec.json.Decoder(float_hook=canonical_float).decode
        self._encode = msgspec.json.Encoder(order="sorted").encode

    @override
    def encode(self, obj: Any) -> bytes:
        """Return the canonical JSON of ``obj``.

        Raises:
            ValueError: NaN, infinity, a lone surrogate, or a key that marks typed values.
            TypeError: a type that would not be read back as it was: without a transcoding, a
                tuple, a subclass, a key that isn't a string.
        """
        plain = self._plain(obj)
        return self._spelt(plain) if is_plainly_spelt(obj) else canonical_json(plain)

    def encode_usual(self, state: dict[str, Any], to_spell: Iterable[str]) -> bytes:
        """Return the same for a plainly spelt state of which these fields aren't JSON.

        Changes ``state`` itself.
        """
        for name in to_spell:
            state[name] = self._typed_form(state[name])
        return self._spelt(state)

    def to_spell(self, state: dict[str, Any]) -> tuple[str, ...]:
        """Return which fields of a state :meth:`encode_usual` is to be told."""
        return tuple(name for name, value in state.items() if type(value) in self.types)

    def _spelt(self, plain: Any) -> bytes:
        """Return the JSON of a plainly spelt state in its plain form, in a sixth of the time."""
        try:
            return self._encode(plain)
        except OverflowError:  # It writes no whole number of over 64 bits.
            return canonical_json(plain)

    @override
    def decode(self, data: bytes) -> Any:
        """Read ``data`` back.

        Raises:
            ValueError: not canonical, or a typed value that isn't.
            TypeError: a typed value of unknown type.
        """
        return self.revived(self.parsed(data))

    def parsed(self, data: bytes) -> Any:
        """Return canonical JSON as it is, typed values in their stored form.

        Raises:
            ValueError: not canonical.
        """
        # What msgspec reads and writes back to the same bytes is canonical: it sorts, spaces and
        # escapes as we do and keeps one of duplicate keys.  Only very small and very large floats
        # it spells in its own way.
        try:
            value = self._decode(data)
            if self._encode(value) == data:
                return value
        except ValueError:
            pass  # The exact reading decides, and says why.
        return parse_canonical_json(data)

    def _plain(self, value: Any) -> Any:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is dict:
            if _TYPE in value:
                raise ValueError(f"a key named {_TYPE} can't be told from a typed value")
            return {
                key: one if type(one) in _AS_THEY_ARE else self._plain(one)
                for key, one in value.items()
            }
        if kind is list:
            return [one if type(one) in _AS_THEY_ARE else self._plain(one) for one in value]
        return self._typed_form(value)

    def _typed_form(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        transcoding = self.types.get(kind)
        if transcoding is None:
            raise TranscodingNotRegisteredError(f"{kind.__name__} can't be stored")
        return {_TYPE: transcoding.name, _DATA: transcoding.encode(value)}

    def revived(self, value: Any) -> Any:
        """Return what was parsed with its typed values in place; changes ``value`` itself.

        Raises:
            ValueError: a typed value that isn't canonical.
            TypeError: a typed value of unknown type.
        """
        kind = type(value)
        if kind is dict:
            if _TYPE in value:
                return self._typed(value)
            for key, inner in value.items():
                if type(inner) in _TO_REVIVE:
                    value[key] = self.revived(inner)
        elif kind is list:
            for i, inner in enumerate(value):
                if type(inner) in _TO_REVIVE:
                    value[i] = self.revived(inner)
        return value

    def _typed(self, value: dict[str, Any]) -> Any:
        try:
            name, data = value[_TYPE], value[_DATA]
            transcoding = self.names[name]
        except (KeyError, TypeError):
            raise TranscodingNotRegisteredError("a typed value is of an unknown type") from None
        if len(value) != _TYPED_KEYS or type(data) is not str:
            raise ValueError("a typed value has a type and text, nothing else")
        return transcoding.decode(data)


def canonical_float(text: str) -> float:
    """Read a float, which must be spelt as Python does.

    Raises:
        ValueError: it isn't.
    """
    value = float(text)
    if not SPELT_ALIKE_FROM <= value < SPELT_ALIKE_TO and repr(value) != text:
        raise ValueError("not the canonical spelling of a float")
    return value


class CanonicalUUID(UUIDAsHex):
    """32 lower-case hexadecimal digits; the library reads other spellings as well."""

    @override
    def decode(self, data: str) -> UUID:
        return _uuid(data)


class CanonicalDatetime(DatetimeAsISO):
    """ISO 8601 as Python writes it, always with an offset."""

    @override
    def encode(self, obj: datetime) -> str:
        if obj.tzinfo is None:
            raise ValueError("a time without its offset")
        return obj.isoformat()

    @override
    def decode(self, data: str) -> datetime:
        value = datetime.fromisoformat(data)
        # Spelling it again takes longer than all else; our own times, in UTC, are told by pattern.
        pattern = data.encode().translate(_DIGITS_TO_0)
        if pattern in _UTC_PATTERNS and data[_FRACTION] != ".000000":
            return value
        if value.tzinfo is None or value.isoformat() != data:
            raise ValueError("not the canonical spelling of a time")
        return value


@lru_cache(maxsize=UUIDS_REMEMBERED)
def _uuid(text: str) -> UUID:
    value = UUID(text)
    if value.hex != text:
        raise ValueError("not the canonical spelling of a UUID")
    return value


def is_plainly_spelt(state: object) -> bool:
    """Say whether msgspec writes the same as we do: string keys, no floats, nothing nested."""
    return (
        type(state) is dict
        and _PLAINLY_SPELT.issuperset(map(type, state.values()))
        and _TEXT.issuperset(map(type, state))
    )
