"""Word search in PostgreSQL: postings of our own, over prepared texts (adr/0027)."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg import errors as states
from typing_extensions import override

from remembrancer.adapters.postgres.clearing import note_erasure
from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.labels import (
    Whose,
    columns,
    conditions,
    in_order,
    marks,
    whose,
)
from remembrancer.adapters.postgres.owned import owned
from remembrancer.adapters.postgres.sparse_query import matches
from remembrancer.adapters.postgres.sparse_terms import terms_of
from remembrancer.application.ports.sparse_index import SparseDocument, SparseIndex
from remembrancer.application.ports.vector_store import Filter, VectorMatch
from remembrancer.domain.errors import InvalidInputError, StoreCorruptError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.search_text import parsed_question, prepared

DOCUMENTS_AT_ONCE = 200
"""Documents whose postings are sent in one statement."""

_DROP = owned(
    "DELETE FROM sparse_documents WHERE {mine} AND id = ANY(%s) RETURNING id, length, text"
)
# By whole keys: without the term every posting of the owner would be read.
_DROP_POSTINGS = owned(
    "DELETE FROM sparse_postings USING unnest(%s::text[], %s::uuid[]) AS gone (term, id)"
    " WHERE {mine} AND sparse_postings.term = gone.term AND sparse_postings.id = gone.id"
)
_COUNTED = (
    "INSERT INTO sparse_owners (documents, length) VALUES (%s, %s)"
    " ON CONFLICT (tenant, owner) DO UPDATE SET documents = sparse_owners.documents"
    " + excluded.documents, length = sparse_owners.length + excluded.length"
)
_ADD_DOCUMENT = (
    "INSERT INTO sparse_documents (id, scope, kind, sensitivity, state, marks, length, postings,"
    " text) VALUES (%s, %s, %s, %s, %s, %s::uuid[], %s, %s, %s)"
)
_ADD_POSTINGS = (
    "INSERT INTO sparse_postings (term, id, occurrences, length, positions)"
    " SELECT * FROM unnest(%s::text[], %s::uuid[], %s::integer[], %s::integer[], %s::bytea[])"
)
_WHOSE = "SELECT tenant, owner FROM sparse_documents WHERE id = %s ORDER BY tenant"
_OWNERS = "SELECT tenant, owner FROM sparse_owners ORDER BY tenant, owner"
_EVERY_OWNER = "SELECT tenant, owner FROM owners ORDER BY tenant, owner"
_CLEAR_DOCUMENTS = owned("DELETE FROM sparse_documents WHERE {mine}")
_CLEAR_POSTINGS = owned("DELETE FROM sparse_postings WHERE {mine}")
_CLEAR_COUNTS = owned("UPDATE sparse_owners SET documents = 0, length = 0 WHERE {mine}")
# Upkeep: an owner's postings are more than any one statement of a request touches.
_TAKE_TIME = "SELECT set_config('statement_timeout', '0', true)"
_COUNT = "SELECT coalesce(sum(documents), 0) FROM sparse_owners"


class PostgresSparseIndex(SparseIndex):
    """Rows of ``migrations/base/sparse_index.sql``.

    A document belongs to whom its metadata names, else to whom the thread acts for.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def upsert_many(self, documents: Sequence[SparseDocument]) -> None:
        latest = {document.id: document for document in documents}
        if not latest:
            return
        groups: dict[Whose, list[SparseDocument]] = {}
        for document in latest.values():
            groups.setdefault(whose(document.metadata), []).append(document)
        with self._database.begin():
            for (tenant, owner), some in in_order(groups):
                with self._database.write(tenant=tenant, owner=owner) as connection:
                    _drop(connection, [document.id for document in some])
                    for start in range(0, len(some), DOCUMENTS_AT_ONCE):
                        _add(connection, some[start : start + DOCUMENTS_AT_ONCE])

    @override
    def query(self, text: str, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        question = parsed_question(text)
        reach = conditions(filter or {})
        if not (question.phrases or question.literals) or reach is None:
            return []
        if top_k < 1:
            raise InvalidInputError(field="top_k", problem="is below 1")
        with self._database.read(tenant=reach.tenant, owner=reach.owner) as connection:
            return matches(connection, question, top_k, reach)

    @override
    def delete(self, id: EntryId) -> None:
        with self._database.read() as connection:
            found: list[Any] = connection.execute(_WHOSE, (id,)).fetchall()
        for tenant, owner in found:
            with self._database.write(tenant=tenant, owner=owner) as connection:
                _drop(connection, [id])
                note_erasure(connection)

    @override
    def clear(self) -> None:
        with self._database.begin() as unlimited:
            unlimited.execute(_TAKE_TIME)
            for tenant, owner in self._owners(_OWNERS):
                with self._database.write(tenant=tenant, owner=owner) as connection:
                    connection.execute(_CLEAR_POSTINGS)
                    connection.execute(_CLEAR_DOCUMENTS)
                    connection.execute(_CLEAR_COUNTS)
                    note_erasure(connection)

    @override
    def count(self) -> int:
        if not self._database.in_write:
            with self._database.read() as connection:
                return _count(connection)
        # Upkeep reads on the auditor's connection, which doesn't see what this one has written.
        total = 0
        for tenant, owner in self._owners(_EVERY_OWNER):
            with self._database.write(tenant=tenant, owner=owner) as connection:
                total += _count(connection)
        return total

    def _owners(self, which: str) -> list[tuple[str, str]]:
        with self._database.read() as connection:
            rows: Iterable[Any] = connection.execute(which)
            return [(tenant, owner) for tenant, owner in rows]


def _count(connection: Connection) -> int:
    row: Any = connection.execute(_COUNT).fetchone()
    return int(row[0])


def _drop(connection: Connection, ids: Sequence[UUID]) -> None:
    gone: list[Any] = connection.execute(_DROP, (list(ids),)).fetchall()
    for start in range(0, len(gone), DOCUMENTS_AT_ONCE):
        terms, owners_ids = list[str](), list[UUID]()
        for id_, _, text in gone[start : start + DOCUMENTS_AT_ONCE]:
            found = terms_of(text)
            terms += found
            owners_ids += [id_] * len(found)
        if terms:
            connection.execute(_DROP_POSTINGS, (terms, owners_ids))
    if gone:
        connection.execute(_COUNTED, (-len(gone), -sum(length for _, length, _ in gone)))


def _add(connection: Connection, documents: Sequence[SparseDocument]) -> None:
    rows: list[tuple[Any, ...]] = []
    postings: list[tuple[str, UUID, int, int, bytes]] = []
    for document in documents:
        text = prepared(document.text)
        terms = terms_of(text)
        length = sum(map(len, terms.values()))
        labels = columns(document.metadata)
        rows.append((document.id, *labels, marks(document.metadata), length, len(terms), text))
        postings += [
            (term, document.id, len(places), length, places.tobytes())
            for term, places in terms.items()
        ]
    try:
        with connection.cursor() as cursor:
            cursor.executemany(_ADD_DOCUMENT, rows)
    except states.UniqueViolation as error:  # Nothing of this owner's can be in the way.
        raise StoreCorruptError(
            store="word index", problem="an id is another owner's (reindexing makes it anew)"
        ) from error
    if postings:
        connection.execute(_ADD_POSTINGS, [list(column) for column in zip(*postings, strict=True)])
    connection.execute(_COUNTED, (len(rows), sum(row[6] for row in rows)))
