"""Fences around originals in a pack: what is inside is quoted data, whatever it says.

A fence carries a random label that is drawn once per pack, so nobody who wrote an original can
have known it; and originals are escaped so that no fence mark, and no character that hides or
reorders text, survives in them.  Escapes are written ``\\u{HEX}`` and can be undone (design 4.1).
"""

import json
import re
import unicodedata
from dataclasses import dataclass

LABEL_BYTES = 8
OPEN, CLOSE = "<<<", ">>>"

_KEPT = "\n\t\u200c\u200d"
"""Line ends, tabs, and the two joiners that Persian, Indic scripts and emoji need."""
_HIDING = {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}
_PLAIN = re.compile(r"[\n\t\x20-\x7e\xa0-\xac\xae-\u02ff]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a quoted original comes from."""

    entry_id: str
    version: int
    scope: str
    kind: str
    sensitivity: str
    source: str


def fenced(text: str, provenance: Provenance, *, label: str) -> str:
    """Return ``text`` as a quoted passage between two fence lines."""
    facts = " ".join(
        (
            f"id={provenance.entry_id}",
            f"version={provenance.version}",
            f"scope={_quoted(provenance.scope)}",
            f"kind={_quoted(provenance.kind)}",
            f"sensitivity={provenance.sensitivity}",
            f"source={_quoted(provenance.source)}",
        )
    )
    return f"{OPEN}memory {label} {facts}{CLOSE}\n{escaped(text)}\n{OPEN}end {label}{CLOSE}"


def gone(entry_id: str, reason: str, *, label: str) -> str:
    """Return what stands in a replayed pack where an original can't be shown any more."""
    return f"{OPEN}gone {label} id={entry_id} reason={reason}{CLOSE}"


def escaped(text: str) -> str:
    """Return ``text`` without fence marks and without characters that hide or reorder text."""
    text = text.replace("\\u{", "\\u{5C}u{").replace(OPEN, "\\u{3C}<<").replace(CLOSE, "\\u{3E}>>")
    if _PLAIN.fullmatch(text):
        return text
    return "".join(map(_visible, text))


def unescaped(text: str) -> str:
    """Undo :func:`escaped`."""
    return re.sub(r"\\u\{([0-9A-F]{1,6})\}", lambda match: chr(int(match[1], 16)), text)


def _visible(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _HIDING:
        return character
    return f"\\u{{{ord(character):X}}}"


def _quoted(value: str) -> str:
    return json.dumps(escaped(value), ensure_ascii=False)
