"""BM25, defined once, so that every sparse index weighs words alike (adr/0008).

What a word weighs comes from the *collection*: the documents of the owners that a question goes
to, whatever else it is filtered by.  Another owner's texts have no part in it.
"""

import math
from collections.abc import Sequence

K1, B = 1.2, 0.75
STEPS_PER_UNIT = 10_000_000_000
"""Scores are whole steps of this size, so that equal documents tie in every adapter."""

MATCHES_MIN = 50_000
"""Matches of words in documents that a question may always have looked at."""
MATCHES_PER_DOCUMENT = 2
"""As many as this times the documents, in a large collection."""


def inverse_document_frequency(*, documents: int, holding: int) -> float:
    """Return the weight of a word that ``holding`` of ``documents`` hold; always above zero."""
    return math.log1p((documents - holding + 0.5) / (holding + 0.5))


def term_weight(*, occurrences: int, length: int, mean_length: float) -> float:
    """Return what a word's occurrences in a document of ``length`` words count for."""
    return occurrences * (K1 + 1.0) / (occurrences + K1 * (1.0 - B + B * length / mean_length))


def literal_score(occurrences: int) -> float:
    """Return the score of a document that holds punctuation asked for so many times (1 or more).

    Only how often counts: punctuation has neither a document frequency that means anything nor a
    part in a document's length.
    """
    return occurrences * (K1 + 1.0) / (occurrences + K1)


def in_steps(score: float) -> int:
    """Return the nearest whole number of steps, 1 or more."""
    return max(1, int(score * STEPS_PER_UNIT + 0.5))


def affordable(holding: Sequence[int], *, documents: int) -> list[int]:
    """Return which words of a question are looked for, as places in ``holding``, rising.

    ``holding`` says how many of ``documents`` hold each.  The rarest go first, at least one of
    them, until they have so many matches that a long question would take too long.
    """
    room = max(MATCHES_MIN, MATCHES_PER_DOCUMENT * documents)
    chosen: list[int] = []
    for place in sorted(range(len(holding)), key=lambda place: (holding[place], place)):
        room -= holding[place]
        if chosen and room < 0:
            break
        chosen.append(place)
    return sorted(chosen)
