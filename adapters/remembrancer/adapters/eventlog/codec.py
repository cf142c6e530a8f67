"""Event states as canonical JSON.

The library's transcoder writes and reads NaN, keeps the last of duplicate keys and takes any
spacing.  Hashes need one spelling for one state, and a reader must refuse what no writer of ours
can have written (adr/0006).
"""

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

_TYPE, _DATA = "_type_", "_data_"
_TYPED_KEYS = 2
_AS_THEY_ARE = frozenset({str, int, float, bool, type(None)})
_INNER = frozenset({dict, list, float})


class CanonicalTranscoder(JSONTranscoder):
    """One spelling for one state, and only that spelling is read."""

    def __init__(self) -> None:
        super().__init__()
        self.register(CanonicalUUID())
        self.register(CanonicalDatetime())
        import msgspec  # noqa: PLC0415 - 11 ms, wanted only where a log is opened

        self._decode = msgspec.json.decode
        self._encode = msgspec.json.encode

    @override
    def encode(self, obj: Any) -> bytes:
        """Return the canonical JSON of ``obj``.

        Raises:
            ValueError: NaN, infinity, a lone surrogate, or a key that marks typed values.
            TypeError: a type that would not be read back as it was: without a transcoding, a
                tuple, a subclass, a key that isn't a string.
        """
        return canonical_json(self._plain(obj))

    @override
    def decode(self, data: bytes) -> Any:
        """Read ``data`` back.

        Raises:
            ValueError: not canonical, or a typed value that isn't.
            TypeError: a typed value of unknown type.
        """
        try:
            return self._revived(self._parsed_fast(data), exact=False)
        except _NotProven:
            return self._revived(parse_canonical_json(data), exact=True)

    def _parsed_fast(self, data: bytes) -> Any:
        # What msgspec reads and writes back to the same bytes is canonical: it sorts, spaces and
        # escapes as we do and keeps one of duplicate keys.  Only floats it spells in its own way.
        try:
            value = self._decode(data)
        except ValueError:
            raise _NotProven from None
        if self._encode(value, order="sorted") != data:
            raise _NotProven
        return value

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
        transcoding = self.types.get(kind)
        if transcoding is None:
            raise TranscodingNotRegisteredError(f"{kind.__name__} can't be stored")
        return {_TYPE: transcoding.name, _DATA: transcoding.encode(value)}

    def _revived(self, value: Any, *, exact: bool) -> Any:
        """Put typed values in place; unless ``exact``, stop at a float that needs another look."""
        # In place: the value was parsed a moment ago.
        kind = type(value)
        if kind is dict:
            if _TYPE in value:
                return self._typed(value)
            for key, inner in value.items():
                inner_kind = type(inner)
                if inner_kind is dict and _TYPE in inner:  # Spares a call for the usual case.
                    value[key] = self._typed(inner)
                elif inner_kind in _INNER:
                    value[key] = self._revived(inner, exact=exact)
        elif kind is list:
            for i, inner in enumerate(value):
                if type(inner) in _INNER:
                    value[i] = self._revived(inner, exact=exact)
        elif kind is float and not exact and "e" in repr(value):
            raise _NotProven
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


class _NotProven(Exception):  # noqa: N818 - nobody sees it: look again, exactly
    """The fast reading can't tell whether the bytes are canonical."""


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
        if value.tzinfo is None or value.isoformat() != data:
            raise ValueError("not the canonical spelling of a time")
        return value


@lru_cache(maxsize=UUIDS_REMEMBERED)
def _uuid(text: str) -> UUID:
    value = UUID(text)
    if value.hex != text:
        raise ValueError("not the canonical spelling of a UUID")
    return value
