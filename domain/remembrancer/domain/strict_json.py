"""JSON that others wrote, in their own spelling, but read strictly.

The standard reader takes NaN and infinities and keeps the last of two equal keys, so that a
document could say one thing to a person and another to us.
"""

import json
from typing import Any


def parse_strict_json(data: bytes) -> Any:
    """Read UTF-8 JSON without NaN, infinities and keys that stand twice.

    Raises:
        ValueError: it isn't that; the message says why and quotes nothing.
    """
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except _TwiceError:
        raise ValueError("says something twice") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError:  # Also for an integer of thousands of digits.
        raise ValueError("isn't JSON in UTF-8") from None


class _TwiceError(ValueError):
    pass


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_twins, parse_constant=_refuse_constant)
