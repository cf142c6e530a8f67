r"""Fences around originals in a pack: what is inside is quoted data, whatever it says.

A fence carries a random label that is drawn once per pack, so nobody who wrote an original can
have known it; and originals are escaped so that no fence mark, and no character that hides or
reorders text, survives in them.  Escapes are written ``\u{HEX}`` and can be undone (design 4.1).
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

LABEL_BYTES = 8
OPEN, CLOSE = "<<<", ">>>"

_ESCAPED = re.compile(
    r"\\(?=u\{)"  # our own escapes, so that they can be undone
    r"|<<<|>>>"
    r"|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # controls, but for line ends and tabs
    r"|[\u2028\u2029]"  # line ends that few programs show as such
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # bidirectional controls
    # What is shown as nothing at all, among it tag letters and variation selectors...
    r"|[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u2800"
    r"\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
    # ...and what is shown as nobody knows what: private use and noncharacters.
    r"|[\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff]"
)
"""What is escaped.  Spelt out rather than asked of ``unicodedata``, which changes with every
Python, so that a replay years later writes the same bytes.  The two joiners (U+200C, U+200D) and
the two selectors (U+FE0E, U+FE0F) that Persian, Indic scripts and emoji need are kept.
"""
_SUSPECT = re.compile(
    r"[^\t\n\x20-;=?-\[\]-~\xa0-\xac\xae-\u034e\u0350-\u061b\u061d-\u115e\u2010-\u2027"
    r"\u3000-\u3163\u3165-\u33ff\u4e00-\u9fff\uac00-\ud7a3]"
)
"""Found in each text with something to escape and in few others, in a tenth of the time."""
_PLAIN = bytes(code for code in range(128) if _SUSPECT.search(chr(code)) is None)
"""What nothing is to be escaped in, of ASCII."""
_NOT_PLAIN = re.compile(r"[^\x20!#-;=?-\[\]-~]")
"""Found in each value that isn't quoted as it stands; most are letters, digits and slashes."""
_ESCAPE = re.compile(r"\\u\{(10[0-9A-F]{4}|[0-9A-F]{1,5})\}")
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class Quotation(NamedTuple):
    """An original as a pack quotes it, and where it comes from."""

    entry_id: str
    version: int
    scope: str
    kind: str
    sensitivity: str
    source: str
    """Private, as is the text: not shown by ``repr``.  It is a value of the metadata."""
    text: str
    gone: str | None = None
    """Why the text can't be shown, where it can't."""

    def __repr__(self) -> str:
        return f"Quotation({self[:_SOURCE]!r}, gone={self.gone!r})"

    def block(self, label: str) -> str:
        """Return the passage as it stands in a pack: between two fence lines, or what is left."""
        entry_id, version, scope, kind, sensitivity, source, text, reason = self
        if reason is not None:
            return gone(entry_id, reason, label=label)
        labels = labels_shown(scope, kind, sensitivity, source)
        return passage(text, entry_id, version, labels=labels, label=label)


_SOURCE = Quotation._fields.index("source")


def blocks(quotations: Sequence[Quotation], label: str) -> list[str]:
    """Return :meth:`Quotation.block` of each: most need no escape, and one look at all tells."""
    if not quotations:
        return []
    _, _, scopes, kinds, _, sources, texts, reasons = zip(*quotations, strict=True)
    if (
        any(reasons)
        or _NOT_PLAIN.search("".join(scopes + kinds + sources))
        or not _is_plain("".join(texts))
    ):
        return [one.block(label) for one in quotations]
    return [
        f'{OPEN}memory {label} id={entry_id} version={version} scope="{scope}" kind="{kind}"'
        f' sensitivity={sensitivity} source="{source}"{CLOSE}\n{text}\n{OPEN}end {label}{CLOSE}'
        for entry_id, version, scope, kind, sensitivity, source, text, _ in quotations
    ]


def passage(text: str, entry_id: str, version: int, *, labels: str, label: str) -> str:
    """Return ``text`` as a passage; ``labels`` are as :func:`labels_shown` spells them."""
    return (
        f"{OPEN}memory {label} id={entry_id} version={version} {labels}{CLOSE}\n"
        f"{escaped(text)}\n{OPEN}end {label}{CLOSE}"
    )


def labels_shown(scope: str, kind: str, sensitivity: str, source: str) -> str:
    """Return the labels of an original as its fence shows them."""
    if _NOT_PLAIN.search(f"{scope}{kind}{source}") is None:  # One search for most.
        return f'scope="{scope}" kind="{kind}" sensitivity={sensitivity} source="{source}"'
    return (
        f"scope={_quoted(scope)} kind={_quoted(kind)} sensitivity={sensitivity}"
        f" source={_quoted(source)}"
    )


def gone(entry_id: str, reason: str, *, label: str) -> str:
    """Return what stands in a replayed pack where an original can't be shown any more."""
    return f"{OPEN}gone {label} id={entry_id} reason={_quoted(reason)}{CLOSE}"


def escaped(text: str) -> str:
    """Return ``text`` without fence marks and without characters that hide or reorder text."""
    if _is_plain(text):
        return text
    # Of a mark its last character is escaped: no three in a row are left of any run.
    return _ESCAPED.sub(lambda match: f"{match[0][:-1]}\\u{{{ord(match[0][-1]):X}}}", text)


def _is_plain(text: str) -> bool:
    """Say whether surely nothing is to be escaped."""
    if text.isascii():  # Most texts are, and translating them takes a tenth of searching.
        return not text.encode().translate(None, _PLAIN)
    return _SUSPECT.search(text) is None


def unescaped(text: str) -> str:
    """Undo :func:`escaped`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _quoted(value: str) -> str:
    if _NOT_PLAIN.search(value) is None:
        return f'"{value}"'
    return _ENCODER.encode(escaped(value))
