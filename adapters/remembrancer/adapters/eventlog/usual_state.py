"""States of events as they usually are: decoded, typed and proven in one go.

msgspec is told the fields of an event's class and their types, and decodes nothing else.  What it
writes back to the same bytes is spelt canonically; floats it reads only where it spells them as we
do.  Whatever isn't as usual (an older class version, a rare float, a damaged record) is left to
the exact reading of :mod:`.codec` and :mod:`.mapper`, which says what is wrong with it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from remembrancer.adapters.eventlog.codec import (
    SPELT_ALIKE_FROM,
    SPELT_ALIKE_TO,
    CanonicalTranscoder,
    canonical_float,
)

_FLOAT = Annotated[float, msgspec.Meta(ge=SPELT_ALIKE_FROM, lt=SPELT_ALIKE_TO)]
_DATA, _TYPE = "_data_", "_type_"


class UsualState:
    """Reads the states of one event class."""

    def __init__(
        self,
        hints: Mapping[str, Any],
        *,
        optional: Collection[str],
        codec: CanonicalTranscoder,
    ) -> None:
        """Learn types by field, and which fields older records don't have."""
        shape = {name: _shape(hint, codec) for name, hint in sorted(hints.items())}
        for name in optional:
            shape[name] = NotRequired[shape[name]]
        decoder = msgspec.json.Decoder(_typed_dict(shape), float_hook=canonical_float)
        self._decode = decoder.decode
        self._encode = msgspec.json.Encoder(order="sorted").encode
        self._revivals: list[tuple[str, Callable[[Any], Any]]] = [
            (name, revival)
            for name, hint in hints.items()
            for revival in [_revival(hint, codec)]
            if revival is not None
        ]

    def read(self, data: bytes) -> dict[str, Any] | None:
        """Return the state, or None where the exact reading must see to it."""
        try:
            state: dict[str, Any] = self._decode(data)
            if self._encode(state) != data:
                return None
            for name, revival in self._revivals:
                value = state.get(name)
                if value is not None:
                    state[name] = revival(value)
        except (ValueError, TypeError, RecursionError):  # Among them msgspec's own.
            return None
        return state


def _shape(hint: Any, codec: CanonicalTranscoder) -> Any:
    """Return what msgspec shall decode where a value of type ``hint`` is stored."""
    if hint in codec.types:
        return _typed_dict({_DATA: str, _TYPE: Literal[codec.types[hint].name]})
    if hint is float:
        return _FLOAT
    if is_typeddict(hint):
        return _typed_dict({name: _shape(h, codec) for name, h in get_type_hints(hint).items()})
    parts = tuple(_shape(part, codec) for part in get_args(hint))
    origin = get_origin(hint)
    if origin in {list, dict}:
        return origin[parts]
    return reduce(or_, parts) if origin in {Union, UnionType} else hint


def _revival(hint: Any, codec: CanonicalTranscoder) -> Callable[[Any], Any] | None:
    """Return what puts typed values in their place in what was decoded; None where none can be."""
    kinds = set(_leaves(hint)) - {type(None)}
    if not kinds.intersection({*codec.types, Any}):
        # Among keys of any name there might be the one that marks a typed value.
        if not _has_any_keys(hint):
            return None
        if get_origin(hint) is dict and not any(map(_has_any_keys, get_args(hint))):
            return _unmarked
    [kind] = kinds if len(kinds) == 1 else [None]
    if kind in codec.types and get_origin(hint) not in {list, dict}:
        decode = codec.types[kind].decode
        return lambda value: decode(value[_DATA])

    def revived(value: Any) -> Any:
        in_place = codec.revived(value)
        if type(in_place) is not type(value):
            raise TypeError("a typed value in the place of what holds some")
        return in_place

    return revived


def _unmarked(value: dict[str, Any]) -> dict[str, Any]:
    if _TYPE in value:
        raise TypeError("a typed value in the place of what holds none")
    return value


def _leaves(hint: Any) -> Iterator[Any]:
    parts = get_type_hints(hint).values() if is_typeddict(hint) else get_args(hint)
    if not parts:
        yield hint
    for part in parts:
        yield from _leaves(part)


def _has_any_keys(hint: Any) -> bool:
    parts = get_type_hints(hint).values() if is_typeddict(hint) else get_args(hint)
    return get_origin(hint) is dict or any(map(_has_any_keys, parts))


def _typed_dict(shape: dict[str, Any]) -> Any:
    return TypedDict("State", shape)  # type: ignore[operator]  # made as the program runs
