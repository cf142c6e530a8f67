"""How much a line of an export may be, before anything parses it (adr/0024).

A parsed line can take thirty times its bytes, and a packed file a thousandth of them, so a
hostile file is refused by its bytes.  A canonical line says by its first key what it is.
"""

import re
from typing import Final

from remembrancer.domain.entry import METADATA_KEYS_MAX, SUBJECTS_MAX
from remembrancer.domain.parsed import TEXT_BYTES_MAX

LINE_BYTES_MAX: Final = 268_435_456
"""A longer line is none of ours."""
SMALL_BYTES: Final = 4_096
"""A header, an owner, an end: names of 256 characters, 4 bytes each.  What else is as small is
harmless."""
EVENT_BYTES_MAX: Final = 67_108_864
"""A selection of 100,000 entries, each with its ranks, has about half of that."""
EVENT_MARKS_MAX: Final = 4_194_304
"""Commas and brackets of a state: what it holds, or a reason of 1 MiB of commas."""
_STRING_BYTES_MAX: Final = 6 * TEXT_BYTES_MAX + 2
"""A text of nothing but control characters, as JSON spells them, in its quotes."""
_FIELDS_MAX: Final = 32
_ORIGINAL_MARKS_MAX: Final = _FIELDS_MAX + SUBJECTS_MAX + METADATA_KEYS_MAX
_PACK_MARKS: Final = 3

_EVENT, _ORIGINAL, _SESSION = b'{"hash":', b'{"digest":', b'{"items":'

# A string that isn't ended goes on to the end, so that no byte is looked at twice.
_PART = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|[,\[{]', re.DOTALL)
_QUOTE: Final = ord('"')


def bytes_max(beginning: bytes) -> int:
    """Return how many bytes a line may have that begins like this, with its end."""
    if beginning.startswith(_EVENT):
        return EVENT_BYTES_MAX
    if beginning.startswith((_ORIGINAL, _SESSION)):
        return LINE_BYTES_MAX
    return SMALL_BYTES


def is_within_bounds(line: bytes, *, packs: int) -> bool:
    """Say whether a line may be parsed.

    ``packs`` says how many packs the events before it tell of: a session has no more items.
    """
    if len(line) <= SMALL_BYTES:
        return True
    if len(line) > bytes_max(line):
        return False
    if line.startswith(_EVENT):
        marks = sum(line.count(mark) for mark in (b",", b"[", b"{"))
        return marks <= EVENT_MARKS_MAX and _has_few_parts(line, _FIELDS_MAX, EVENT_BYTES_MAX)
    if line.startswith(_ORIGINAL):
        return _has_few_parts(line, _ORIGINAL_MARKS_MAX, _STRING_BYTES_MAX)
    return _has_few_parts(line, _FIELDS_MAX + _PACK_MARKS * packs, LINE_BYTES_MAX)


def _has_few_parts(line: bytes, marks_max: int, string_bytes_max: int) -> bool:
    """Say whether a line has few commas and brackets outside its strings, and no long string."""
    marks = strings = 0
    for part in _PART.finditer(line):
        start, end = part.span()
        if line[start] == _QUOTE:
            strings += 1
        else:
            marks += 1
        # Of an array or object each part has its comma, and a key besides.
        if end - start > string_bytes_max or marks > marks_max or strings > 2 * marks_max:
            return False
    return True
