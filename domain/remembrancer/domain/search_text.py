"""How a text is made ready for word search, and how a question becomes words and phrases.

A *prepared* text consists of ASCII and of characters that are parts of words, nothing else, so
that "a word is a run of ASCII letters, digits and non-ASCII characters" is the whole rule of
tokenising, the same in every index (adr/0008):

- letters lose case, width, ligature and accent; digits of any script become ``0`` to ``9``;
- characters of scripts that set no spaces (and of Hangul, whose particles cling to words) stand
  as words of their own, and so do emoji and other symbols;
- punctuation becomes ASCII, controls become spaces, invisible characters go.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

TERMS_MAX = 64
"""Distinct words and phrases of one question; what follows is left out."""
PHRASE_WORDS_MAX = 32
"""Words of one phrase; a longer one is found by its beginning."""
LITERALS_MAX = 4
LITERAL_CHARACTERS_MAX = 64

_FILLING = (
    "a about after again all also am an and any are as at be because been before being between"
    " both but by can could did do does doing done down during each few for from further had has"
    " have having he her here hers him his how i if in into is it its itself just may me might"
    " more most my no nor not now of off on once only or other our ours out over own same she"
    " should so some such than that the their theirs them then there these they this those"
    " through to too under until up upon very was we were what when where which while who whom"
    " whose why will with would you your yours"
)
STOPWORDS = frozenset(_FILLING.split())
"""English words that say nothing; dropped from a question unless it has no others."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for: any of ``phrases``, or, where there is none, any of ``literals``."""

    phrases: tuple[tuple[str, ...], ...] = field(repr=False)
    """Each one word, or several that must follow each other."""
    literals: tuple[str, ...] = field(default=(), repr=False)
    """Punctuation to be found as it stands in prepared texts."""


def prepared(text: str) -> str:
    """Return ``text`` as indexes keep it."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = _HALF_WIDTH.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
        text = _NON_ASCII.sub(lambda run: run[0].translate(_SPELLINGS), text)
    return text.replace("\0", " ") if "\0" in text else text


def words(prepared_text: str) -> list[str]:
    """Return the words of a prepared text, in order, unstemmed."""
    return _WORD.findall(prepared_text.lower())


def parsed_question(text: str) -> Question:
    """Take a question apart; any text will do.

    Each piece between white space is a word, or a phrase if there is punctuation inside it. Of a
    run of characters without spaces every two neighbours are a phrase.
    """
    telling: dict[tuple[str, ...], None] = {}
    filling: dict[tuple[str, ...], None] = {}
    literals: dict[str, None] = {}
    for piece in dict.fromkeys(text.split()):
        spelt = prepared(piece).lower()
        found = False
        for phrase in _phrases(spelt):
            found = True
            chosen = filling if len(phrase) == 1 and phrase[0] in STOPWORDS else telling
            if len(chosen) < TERMS_MAX:
                chosen[phrase] = None
            if len(telling) == TERMS_MAX:
                return Question(tuple(telling))
        if not found and len(literals) < LITERALS_MAX:
            literals[spelt.strip()[:LITERAL_CHARACTERS_MAX]] = None
    if telling or filling:
        return Question(tuple(telling or filling))
    literals.pop("", None)
    return Question((), tuple(literals))


_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_HALF_WIDTH = re.compile(r"[\uff61-\uff9f]+")
_WORD = re.compile(r"[0-9a-z\x80-\U0010ffff]+")
_BREAK = re.compile(r"\s-+\s|--|\.\.\.")
"""What separates words even without white space: dashes and dots that aren't inside a word."""

_SET_APART = (
    (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue, Khmer symbols
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x3007),
    (0x3021, 0x31FF),  # Kana, Bopomofo, compatibility Jamo
    (0x3400, 0x4DBF),
    (0x4E00, 0xA4CF),  # Han, Yi
    (0xA960, 0xA97F),  # Hangul Jamo
    (0xA9E0, 0xA9FF),  # Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),  # Kana
    (0x20000, 0x3FFFF),  # Han
)
_PLAIN_LETTERS = str.maketrans(
    # Letters that differ by a stroke from the one people type in their stead.
    {
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "ł": "l",
        "ħ": "h",
        "ŧ": "t",
        "\u0131": "i",
        "æ": "ae",
        "œ": "oe",
    }
)
_SIGNS = frozenset("§¶†‡‰※")
"""Punctuation by category that people look for like symbols."""
_SINGLE_QUOTES = frozenset("\u2018\u2019\u201a\u201b\u2039\u203a")
_ZERO_WIDTH_SPACE = "\u200b"


def _phrases(spelt: str) -> Iterator[tuple[str, ...]]:
    """Yield the words and phrases of one prepared, lower-case piece of a question."""
    for part in _BREAK.split(spelt):
        run: list[str] = []
        apart, end = False, 0
        for match in _WORD.finditer(part):
            word = match[0]
            is_apart = len(word) == 1 and _is_set_apart(word)
            # Characters set apart are neighbours while only the spaces we set are between them.
            if run and (is_apart != apart or (apart and not part[end : match.start()].isspace())):
                yield from _closed(run, apart=apart)
                run = []
            run.append(word)
            apart, end = is_apart, match.end()
        yield from _closed(run, apart=apart)


def _closed(run: list[str], *, apart: bool) -> Iterator[tuple[str, ...]]:
    if apart and len(run) > 1:
        yield from pairwise(run)
    elif run:
        yield tuple(run[:PHRASE_WORDS_MAX])


def _is_set_apart(character: str) -> bool:
    code = ord(character)
    return code >= _SET_APART[0][0] and any(low <= code <= high for low, high in _SET_APART)


class _Spellings(dict[int, str]):
    """How each non-ASCII character is spelt in prepared texts; filled as they are met."""

    def __missing__(self, code: int) -> str:
        spelling = self[code] = _spelling(chr(code))
        return spelling


_SPELLINGS = _Spellings()


def _spelling(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] in "LMN":
        return _letters(character)
    if category[0] == "P" and character not in _SIGNS:
        return _punctuation(character, category)
    if category[0] in "SP" or category in {"Cn", "Co"}:
        return _symbol(character)
    if category == "Cf" and character != _ZERO_WIDTH_SPACE:
        return ""
    return " "  # White space, controls, lone surrogates.


def _letters(character: str) -> str:
    spelt = ""
    for letter in unicodedata.normalize("NFKC", character):
        if _is_set_apart(letter):
            spelt += f" {letter} "
            continue
        # Folding turns Cherokee's small letters into capitals: the one alphabet it does so with.
        for part in unicodedata.normalize("NFKD", letter).casefold().lower():
            category = unicodedata.category(part)
            if category == "Nd":
                spelt += str(unicodedata.digit(part))
            elif category[0] not in "LMN":
                spelt += "/"  # Inside a fraction or a ligature.
            elif not _is_accent(part):
                spelt += part.translate(_PLAIN_LETTERS)
    return spelt


def _is_accent(character: str) -> bool:
    """Say whether a mark may go: not the vowel signs, nuktas and viramas of Indic scripts."""
    if unicodedata.category(character)[0] != "M":
        return False
    combining = unicodedata.combining(character)
    return (
        combining == 1
        or combining >= 10  # noqa: PLR2004  # Unicode's classes of positional marks begin here.
        or unicodedata.category(character) == "Me"
        or unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    )


def _symbol(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    if plain.isalnum():
        return f" {_letters(character)} "
    if plain.isascii():
        return plain
    return f" {plain if len(plain) == 1 else character} "


def _punctuation(character: str, category: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    if plain.isascii():
        return plain
    if character == "\u2014":  # The dash between words, not inside them.
        return " - "
    if category in {"Pi", "Pf", "Ps", "Pe"} or character in _SINGLE_QUOTES:
        return "'" if character in _SINGLE_QUOTES else '"'
    return {"Pd": "-", "Pc": "_"}.get(category, ".")
