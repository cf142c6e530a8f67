"""Beginnings of words that FTS5 keeps after the words themselves are gone.

FTS5 finds a page of its words through ``sparse_words_idx``, which holds for each page a
*separator*: the first letters of the page's first word, as many as tell it from the word before.
Among ``invoice4711`` and ``invoice4712`` that is the whole word.  ``secure-delete`` takes the word
out of its page but leaves the separator (seen in a third of random workloads, adr/0008).  Any word
that is still there may stand in its stead, if it is not beyond the page's first: the next one is.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import apsw

_MAIN = b"0"
"""FTS5 puts it before every word of its main index."""
_SEPARATORS = "SELECT segid, term FROM sparse_words_idx ORDER BY segid, term"
# As text, which FTS5 compares byte by byte: a separator may end inside a character.
_NEXT_WORD = (
    "SELECT CAST(term AS BLOB) FROM sparse_words_terms WHERE term >= CAST(? AS TEXT) LIMIT 1"
)
_REMOVE = "DELETE FROM sparse_words_idx WHERE segid = ? AND term = ?"
_REPLACE = "UPDATE sparse_words_idx SET term = ? WHERE segid = ? AND term = ?"


def forget(connection: apsw.Connection, texts: Iterable[str]) -> None:
    """Let no separator spell a word of these dropped texts that no text has any more."""
    dropped = list(texts)
    if not dropped:
        return
    tokenizer = connection.fts5_tokenizer("porter", ["ascii"])
    words = sorted({word.encode() for text in dropped for word in _words(tokenizer, text)})
    if not words:
        return
    _next_word(connection, b"")  # Reading makes FTS5 write down what it was told to forget.
    kept: Any = connection.execute(_SEPARATORS).fetchall()
    for place, (segment, separator) in enumerate(kept):
        beginning = separator.removeprefix(_MAIN)
        if not beginning or not _begins_any(words, beginning):
            continue
        successor = _next_word(connection, beginning)
        following = kept[place + 1] if place + 1 < len(kept) else (None, b"")
        if successor is None or (following[0] == segment and _MAIN + successor >= following[1]):
            # No word is left that could be on this page: FTS5 has cut it off while merging.
            connection.execute(_REMOVE, (segment, separator))
        elif not successor.startswith(beginning):
            connection.execute(_REPLACE, (_MAIN + successor, segment, separator))


def _words(tokenizer: "apsw.FTS5Tokenizer", text: str) -> Iterable[str]:
    found: Any = tokenizer(
        text.encode(),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    words: Iterable[str] = found
    return words


def _begins_any(words: list[bytes], beginning: bytes) -> bool:
    place = bisect_left(words, beginning)
    return place < len(words) and words[place].startswith(beginning)


def _next_word(connection: apsw.Connection, beginning: bytes) -> bytes | None:
    """Return the first word that is still here from ``beginning`` on."""
    found: bytes | None = connection.execute(_NEXT_WORD, (beginning,)).get
    return found
