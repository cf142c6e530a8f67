"""The terms of a text, as they stand in postings."""

import hashlib
from array import array
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from remembrancer.domain.search_text import words

STEMS_KEPT = 65_536
STEMMED_CHARACTERS_MIN = 3
"""Shorter words are their own stems, as in the other adapters."""
STEMMED_BYTES_MAX = 64
"""So are longer ones; they stand as a digest, since a key of an index has to fit into a page."""


def terms_of(prepared_text: str) -> dict[str, "array[int]"]:
    """Return the places of each term of a prepared text, rising."""
    found: dict[str, array[int]] = {}
    for place, word in enumerate(words(prepared_text)):
        term = term_of(word)
        places = found.get(term)
        if places is None:
            found[term] = array("I", [place])
        else:
            places.append(place)
    return found


def occurrences(phrase: Sequence[str], places: Sequence[bytes]) -> int:
    """Count where the terms of a phrase follow each other.

    Args:
        phrase: terms, which may repeat.
        places: of each of the phrase's distinct terms in one document, in the order in which they
            are first named.
    """
    distinct = dict(zip(dict.fromkeys(phrase), map(_read, places), strict=True))
    first, *others = (distinct[term] for term in phrase)
    return sum(
        all(place + step in other for step, other in enumerate(others, start=1)) for place in first
    )


def _read(places: bytes) -> frozenset[int]:
    found = array("I")
    found.frombytes(places)
    return frozenset(found)


@lru_cache(maxsize=STEMS_KEPT)
def term_of(word: str) -> str:
    """Return what a word of a prepared text or question is looked for as."""
    if len(word) < STEMMED_CHARACTERS_MIN:
        return word
    spelt = word.encode()
    if len(spelt) > STEMMED_BYTES_MAX:
        # No word has a sign in it.
        return f"#{hashlib.blake2b(spelt, digest_size=16).hexdigest()}"
    stem: str = _stemmer().stemWord(word)
    return stem


@cache
def _stemmer() -> Any:
    # Half the languages of Europe come with it; only who looks for words pays for them.
    import snowballstemmer  # noqa: PLC0415

    return snowballstemmer.stemmer("porter")
