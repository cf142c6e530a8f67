"""Word search in the SQLite file: FTS5 over prepared texts (adr/0008).

FTS5's ``bm25()`` weighs words by all documents of the file.  Here a word's weight comes from the
documents of the owners that are asked only, so each phrase is matched on its own and its scores
are rescaled; that also costs less than FTS5's own ranking of the whole question.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any
from uuid import UUID

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


class SqliteSparseIndex(SparseIndex):
    """Rows of ``sparse_words`` and the tables beside it; see ``sparse_index.sql``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def upsert_many(self, documents: Sequence[SparseDocument]) -> None:
        latest = {document.id: document for document in documents}
        if not latest:
            return
        with self._database.write() as connection:
            _drop(connection, latest)
            labelled = _labelled(connection, latest.values())
            try:
                for owner, group in groupby(labelled, key=lambda one: one[0]):
                    _insert(connection, owner, [(label, document) for _, label, document in group])
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
            _drop(connection, [id])

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


def _drop(connection: apsw.Connection, ids: Collection[UUID]) -> None:
    keys = apsw.carray(tuple(one.bytes for one in ids))  # At least one, as carray wants it.
    kept: list[Any] = sorted(connection.execute(_KEPT, (keys,)).fetchall())
    if not kept:
        return
    numbers = [(number,) for number, _, _ in kept]
    connection.executemany(_DROP_WORDS, [(number, text) for number, _, text in kept])
    connection.executemany(_EMPTY_TEXT, [(place,) for _, place, _ in kept])
    connection.executemany(_EMPTY_METADATA, numbers)
    connection.executemany(_DROP_DOCUMENT, numbers)
    for owner, group in groupby(kept, key=lambda row: row[0] >> SERIAL_BITS):
        connection.execute(_COUNTED, (-len(list(group)), owner))
    forget(connection, [text for _, _, text in kept])


def _labelled(
    connection: apsw.Connection, documents: Iterable[SparseDocument]
) -> list[tuple[int, int, SparseDocument]]:
    """Return (owner number, label number, document), an owner's together."""
    labels: dict[tuple[str | None, ...], tuple[int, int]] = {}
    found = []
    for document in documents:
        label = tuple(map(document.metadata.get, LABELS))
        numbers = labels.get(label)
        if numbers is None:
            numbers = labels[label] = _numbers(connection, label)
        found.append((*numbers, document))
    if len(labels) > 1:
        found.sort(key=lambda one: one[0])
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


def _insert(
    connection: apsw.Connection, owner: int, labelled: Sequence[tuple[int, SparseDocument]]
) -> None:
    low, high = owner << SERIAL_BITS, ((owner + 1) << SERIAL_BITS) - 1
    row: Any = connection.execute(_LAST, (low, high)).fetchone()
    last, last_text = row
    numbers = range((last or low) + 1, high)
    first_text = (last_text or 0) + 1
    texts = range(first_text, first_text + len(labelled))
    words = [prepared(document.text) for _, document in labelled]
    connection.executemany(
        _ADD_DOCUMENT,
        [
            (number, document.id.bytes, label, text)
            for number, text, (label, document) in zip(numbers, texts, labelled, strict=False)
        ],
    )
    connection.executemany(_ADD_TEXT, zip(texts, words, strict=True))
    connection.executemany(_ADD_WORDS, zip(numbers, words, strict=False))
    connection.executemany(
        _ADD_METADATA,
        [
            (number, key, value)
            for number, (_, document) in zip(numbers, labelled, strict=False)
            for key, value in _unlabelled(document.metadata)
        ],
    )
    connection.execute(_COUNTED, (len(labelled), owner))


def _unlabelled(metadata: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return ((key, value) for key, value in metadata.items() if key not in LABELS)
