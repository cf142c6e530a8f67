"""Canonical JSON: one value, one spelling, so that bytes can be hashed and compared.

Keys sorted by code point, no white space, UTF-8 unescaped, whole numbers and finite floats only.
Reading refuses what writing can't have written: NaN, infinities, duplicate keys, other spacing
(adr/0006).
"""

import json
from typing import Any

_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
    check_circular=False,
)


def canonical_json(value: Any) -> bytes:
    """Return the one spelling of ``value``.

    Raises:
        ValueError: a float isn't finite, or a string holds a lone surrogate.
        TypeError: ``value`` holds what JSON can't, or a key that isn't a string.
    """
    return _ENCODER.encode(value).encode()


def parse_canonical_json(data: bytes) -> Any:
    """Read ``data`` back.

    Raises:
        ValueError: it isn't JSON, or not spelt canonically (which also catches duplicate keys).
    """
    value = json.loads(data, parse_constant=_refuse_constant)
    if canonical_json(value) != data:
        raise ValueError("not canonical JSON (duplicate keys, spacing, order or escapes)")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
