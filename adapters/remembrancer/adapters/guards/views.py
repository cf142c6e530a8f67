"""The views of a text in which rules look for what somebody may have hidden (adr/0012).

Each view undoes one kind of disguise, once: compatibility forms and invisible characters,
lookalikes and accents, lines and spaces in between, escapes, base64, hexadecimal.  Whatever is
decoded is normalised again, never decoded again.  All of it is linear in the text, and a text
that unfolds to far more than it says is not read to the end but reported.
"""

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from remembrancer.adapters.guards.confusables import CONFUSABLES, CONFUSABLES_VERSION
from remembrancer.domain.canonical_json import canonical_json

VIEWS_VERSION = f"views@1 {CONFUSABLES_VERSION}"
VIEW_CHARACTERS_MAX = 65_536
"""As many as the longest text can have; NFKC makes up to 18 characters of one."""

_MARKS_IN_A_ROW_MAX = 30
"""As in the Stream-Safe Text Format (UAX 15): sorting longer runs takes quadratic time."""
_PRINTABLE_SHARE_MIN = 0.85

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TAGS = re.compile("[\U000e0020-\U000e007e]++")
_BREAK = re.compile(r"[ \t]{0,64}+\\?\r?\n[ \t]{0,64}+|[\"'] {0,8}[+.]? {0,8}[\"']")
_LETTERS = re.compile(r"(?<!\S)\S(?: \S(?!\S)){4,}+")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ ._*-][^\W_](?![^\W_])){4,}+")
_GAPS = re.compile(r"[ ._*-]")
_ESCAPE = re.compile(
    r"(?:%[0-9A-Fa-f]{2})++|\\u([0-9A-Fa-f]{4})|\\u\{([0-9A-Fa-f]{1,6})\}|\\U([0-9A-Fa-f]{8})"
    r"|\\x([0-9A-Fa-f]{2})|&#x([0-9A-Fa-f]{1,6});?|&#([0-9]{1,7});?"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}+={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9A-Fa-f]{2}[ :,-]?(?:0x)?){12,}+")
_NOT_HEX = re.compile(r"0x|[^0-9A-Fa-f]")
_URL_SAFE = str.maketrans("-_", "+/")
_CODE_POINTS = 0x110000


class UnfoldsTooFarError(Exception):
    """A view is longer than :data:`VIEW_CHARACTERS_MAX`."""


@dataclass(frozen=True, slots=True)
class View:
    """One reading of a text."""

    name: str
    text: str = field(repr=False)


def views_digest() -> str:
    """Return the SHA-256 of everything that decides what the views of a text are."""
    patterns = (_INVISIBLE, _TAGS, _BREAK, _LETTERS, _SPACED, _GAPS, _ESCAPE, _BASE64, _HEX)
    bounds = (VIEW_CHARACTERS_MAX, _MARKS_IN_A_ROW_MAX, _PRINTABLE_SHARE_MIN)
    content = [VIEWS_VERSION, *(one.pattern for one in patterns), str(bounds)]
    content += [f"{lookalike}{latin}" for lookalike, latin in sorted(CONFUSABLES.items())]
    return hashlib.sha256(canonical_json(content)).hexdigest()


def views(text: str) -> Iterator[View]:
    """Yield the text and its distinct views.

    Raises:
        UnfoldsTooFarError: while iterating.
    """
    seen: set[str] = set()
    for view in _all_views(text):
        if len(view.text) > VIEW_CHARACTERS_MAX:
            raise UnfoldsTooFarError
        if view.text and view.text not in seen:
            seen.add(view.text)
            yield view


def normal(text: str) -> str:
    """Return ``text`` in NFKC, without characters that nobody sees."""
    if text.isascii():
        return text
    visible = _INVISIBLE.sub("", text)
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", _without_mark_towers(visible)))


def folded(text: str) -> str:
    """Return normal ``text`` with lookalikes as Latin letters, digits as ASCII, no accents."""
    if text.isascii():
        return text
    latin = text.translate(CONFUSABLES)
    parts = unicodedata.normalize("NFKD", _without_mark_towers(latin))
    plain = {ord(character): _plain(character) for character in set(parts)}
    return parts.translate(plain).translate(CONFUSABLES)


def _all_views(text: str) -> Iterator[View]:
    yield View("raw", text)
    plain = normal(text)
    if len(plain) > VIEW_CHARACTERS_MAX:
        raise UnfoldsTooFarError
    yield View("normal", plain)
    latin = folded(plain)
    yield View("folded", latin)
    joined = _BREAK.sub("", latin)
    yield View("joined", joined)
    yield View("spaced", _SPACED.sub(lambda match: _GAPS.sub("", match[0]), latin))
    yield View("letters", _LETTERS.sub(lambda match: match[0].replace(" ", ""), latin))
    tags = "".join(chr(ord(tag) - 0xE0000) for run in _TAGS.findall(text) for tag in run)
    yield View("tags", tags)
    decoded = (
        ("escapes", _ESCAPE.sub(_unescaped, plain)),
        ("base64", "\n".join(_base64_in(joined))),
        ("hex", "\n".join(_hex_in(joined))),
    )
    for name, content in decoded:
        # A lone surrogate can come out of an escape; it must not reach the rules.
        whole = content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        shown = normal(whole)
        yield View(name, shown)
        yield View(f"{name} folded", folded(shown))


def _without_mark_towers(text: str) -> str:
    marks = "".join(sorted(filter(unicodedata.combining, set(text))))
    if not marks:
        return text
    mark = f"[{re.escape(marks)}]"
    return re.sub(f"({mark}{{{_MARKS_IN_A_ROW_MAX}}}){mark}++", r"\1", text)


def _plain(character: str) -> str:
    if unicodedata.combining(character):
        return ""
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


def _unescaped(match: re.Match[str]) -> str:
    if match[0].startswith("%"):
        return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")
    number = match[match.lastindex or 0]
    value = int(number, 10 if match.lastindex == match.re.groups else 16)
    return chr(value) if value < _CODE_POINTS else "\ufffd"


def _base64_in(text: str) -> Iterator[str]:
    for run in _BASE64.findall(text):
        whole = _base64(run)
        if whole is not None:
            yield whole
        elif "/" in run:
            # A path: what is encoded may be one part of it.
            yield from filter(None, map(_base64, run.split("/")))


def _base64(run: str) -> str | None:
    digits = run.rstrip("=").translate(_URL_SAFE)
    usable = len(digits) - (len(digits) % 4 == 1)
    if usable < 16:  # noqa: PLR2004 - twelve bytes: less hides nothing that a rule looks for
        return None
    padded = digits[:usable] + "=" * (-usable % 4)
    return _readable(base64.b64decode(padded))


def _hex_in(text: str) -> Iterator[str]:
    for run in _HEX.findall(text):
        digits = _NOT_HEX.sub("", run)
        shown = _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))
        if shown is not None:
            yield shown


def _readable(decoded: bytes) -> str | None:
    """Return bytes as text, if a text is what they most likely are."""
    if decoded[1::2].count(0) > len(decoded) // 3:
        decoded = decoded.replace(b"\0", b"")  # UTF-16, as Windows shells encode.
    text = decoded.decode("utf-8", "replace")
    good = sum(character.isprintable() or character in "\t\r\n" for character in text)
    good -= text.count("\ufffd")
    return text if good >= _PRINTABLE_SHARE_MIN * len(text) else None
