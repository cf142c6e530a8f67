"""Word search in the SQLite file: FTS5 over prepared texts (adr/0008).

FTS5's ``bm25()`` weighs words by all documents of the file.  Here a word's weight comes from the
documents of the owners that are asked only, so each phrase is matched on its own and its scores
are rescaled; that also costs less than FTS5's own ranking of the whole question.
"""

from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.sparse_query import LABELS, SERIAL_BITS, matches
from remembrancer.adapters.sqlite.sparse_separators import forget
from remembrancer.application.ports.sparse_index import SparseDocument, SparseIndex
from remembrancer.application.ports.vector_store import Filter, VectorMatch
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.search_text import parsed_question, prepared

_KEPT = (
    "SELECT sparse_document.number, sparse_text.number, sparse_text.text"
    " FROM carray(?) CROSS JOIN sparse_document ON id = value"
    " JOIN sparse_text ON sparse_text.number = sparse_document.text"
)
_DROP_WORDS = "INSERT INTO sparse_words (sparse_words, rowid, text) VALUES ('delete', ?, ?)"
_DROP_DOCUMENT = "DELETE FROM sparse_document WHERE number = ?"
_EMPTY_TEXT = "UPDATE sparse_text SET text = NULL WHERE number = ?"
_EMPTY_METADATA = (
    "UPDATE sparse_metadata SET document = NULL, key = NULL, value = NULL WHERE document = ?"
)
_COUNTED = "UPDATE sparse_owner SET documents = documents + ? WHERE number = ?"
_LABEL = (
    "SELECT sparse_owner.number, sparse_label.number"
    " FROM sparse_owner LEFT JOIN sparse_label ON owner_number = sparse_owner.number"
    " AND scope IS ?3 AND kind IS ?4 AND sensitivity IS ?5 AND state IS ?6"
    " WHERE tenant IS ?1 AND owner IS ?2"
)
"""Its values are those of :data:`LABELS`."""
_ADD_OWNER = "INSERT INTO sparse_owner (tenant, owner) VALUES (?, ?) RETURNING number"
_ADD_LABEL = (
    "INSERT INTO sparse_label (owner_number, scope, kind, sensitivity, state)"
    " VALUES (?, ?, ?, ?, ?) RETURNING number"
)
_LAST = (
    "SELECT (SELECT max(number) FROM sparse_document WHERE number BETWEEN ? AND ?),"
    " (SELECT max(number) FROM sparse_text)"
)
_ADD_DOCUMENT = "INSERT INTO sparse_document (number, id, label, text) VALUES (?, ?, ?, ?)"
_ADD_TEXT = "INSERT INTO sparse_text (number, text) VALUES (?, ?)"
_ADD_METADATA = "INSERT INTO sparse_metadata (document, key, value) VALUES (?, ?, ?)"
_ADD_WORDS = "INSERT INTO sparse_words (rowid, text) VALUES (?, ?)"
_COUNT = "SELECT coalesce(sum(documents), 0) FROM sparse_owner"
_CLEAR = (
    # Row by row FTS5 would look up every word; dropped pages are overwritten as well.
    "DROP TABLE sparse_words; DROP TABLE sparse_metadata; DROP TABLE sparse_text;"
    " DELETE FROM sparse_document; DELETE FROM sparse_label; DELETE FROM sparse_owner;"
)
_SCHEMA = "sparse_index.sql"

_Labelled = tuple[int, bytes, SparseDocument]
"""A document, its id's bytes and the number of its label."""


class SqliteSparseIndex(SparseIndex):
    """Rows of ``sparse_words`` and the tables beside it; see ``sparse_index.sql``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def upsert_many(self, documents: Sequence[SparseDocument]) -> None:
        latest = {document.id.bytes: document for document in documents}
        if not latest:
            return
        with self._database.write() as connection:
            _drop(connection, latest)
            labelled = _labelled(connection, latest)
            try:
                for owner, group in groupby(labelled, key=itemgetter(0)):
                    _insert(connection, owner, [one for _, one in group])
            except apsw.ConstraintError as error:  # Nothing that was dropped can be in the way.
                raise StoreCorruptError(
                    store="word index", problem="its tables don't agree (reindexing makes it anew)"
                ) from error

    @override
    def query(self, text: str, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        question = parsed_question(text)
        if not (question.phrases or question.literals):
            return []
        with self._database.read() as connection:
            return matches(connection, question, top_k, filter or {})

    @override
    def delete(self, id: EntryId) -> None:
        with self._database.write() as connection:
            _drop(connection, [id.bytes])

    @override
    def clear(self) -> None:
        with self._database.write() as connection:
            connection.execute(_CLEAR)
            connection.execute(files(__package__).joinpath(_SCHEMA).read_text(encoding="utf-8"))

    @override
    def count(self) -> int:
        with self._database.read() as connection:
            total: int = connection.execute(_COUNT).get
            return total


def _drop(connection: apsw.Connection, keys: Collection[bytes]) -> None:
    array = apsw.carray(tuple(keys))  # At least one, as carray wants it.
    kept: list[Any] = connection.execute(_KEPT, (array,)).fetchall()
    if not kept:
        return
    kept.sort()
    numbers = [(number,) for number, _, _ in kept]
    connection.executemany(_DROP_WORDS, [(number, text) for number, _, text in kept])
    connection.executemany(_EMPTY_TEXT, [(place,) for _, place, _ in kept])
    connection.executemany(_EMPTY_METADATA, numbers)
    connection.executemany(_DROP_DOCUMENT, numbers)
    for owner, group in groupby(kept, key=lambda row: row[0] >> SERIAL_BITS):
        connection.execute(_COUNTED, (-len(list(group)), owner))
    forget(connection, [text for _, _, text in kept])


def _labelled(
    connection: apsw.Connection, documents: Mapping[bytes, SparseDocument]
) -> list[tuple[int, _Labelled]]:
    """Return each document behind its owner's number, an owner's together."""
    labels: dict[tuple[str | None, ...], tuple[int, int]] = {}
    found = []
    for key, document in documents.items():
        label = tuple(map(document.metadata.get, LABELS))
        numbers = labels.get(label)
        if numbers is None:
            numbers = labels[label] = _numbers(connection, label)
        owner, number = numbers
        found.append((owner, (number, key, document)))
    if len(labels) > 1:
        found.sort(key=itemgetter(0))
    return found


def _numbers(connection: apsw.Connection, label: tuple[str | None, ...]) -> tuple[int, int]:
    """Return the number of whose owner's and of which label it is, made if missing."""
    row: Any = connection.execute(_LABEL, label).fetchone()
    owner, number = row or (None, None)
    if owner is None:
        owner = connection.execute(_ADD_OWNER, label[:2]).get
    if number is None:
        number = connection.execute(_ADD_LABEL, (owner, *label[2:])).get
    return owner, number


def _insert(connection: apsw.Connection, owner: int, labelled: Sequence[_Labelled]) -> None:
    low, high = owner << SERIAL_BITS, ((owner + 1) << SERIAL_BITS) - 1
    row: Any = connection.execute(_LAST, (low, high)).fetchone()
    last, last_text = row
    numbers = range((last or low) + 1, high)
    first_text = (last_text or 0) + 1
    texts = range(first_text, first_text + len(labelled))
    words = [prepared(document.text) for _, _, document in labelled]
    connection.executemany(
        _ADD_DOCUMENT,
        [
            (number, key, label, text)
            for number, text, (label, key, _) in zip(numbers, texts, labelled, strict=False)
        ],
    )
    connection.executemany(_ADD_TEXT, zip(texts, words, strict=True))
    connection.executemany(_ADD_WORDS, zip(numbers, words, strict=False))
    metadata = [
        (number, key, value)
        for number, (_, _, document) in zip(numbers, labelled, strict=False)
        for key, value in document.metadata.items()
        if key not in LABELS
    ]
    if metadata:
        connection.executemany(_ADD_METADATA, metadata)
    connection.execute(_COUNTED, (len(labelled), owner))
