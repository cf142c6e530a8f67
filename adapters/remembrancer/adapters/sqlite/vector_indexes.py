"""Vector indexes as rows of a registry, each with tables of its own."""

from functools import lru_cache
from typing import Any

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_store import SqliteVectorStore
from remembrancer.adapters.sqlite.vector_tables import DIMENSIONS_MAX, VectorTables
from remembrancer.application.ports.vector_indexes import (
    LOCAL,
    IndexState,
    VectorIndex,
    VectorIndexes,
    require_kept_here,
)
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import InvalidInputError, StoreUnavailableError

_SELECT = "SELECT number, embedding_tuple, state, position, place FROM vector_index "
_NUMBERED = "WHERE number = ?"
_RETIRE = "UPDATE vector_index SET state = 'retired' WHERE state = ?"


class SqliteVectorIndexes(VectorIndexes):
    """The registry of one file; see ``vector_indexes.sql``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        # By tuple as well as number: a number that was rolled back may come again.
        self._stores: dict[tuple[int, EmbeddingTuple], SqliteVectorStore] = {}
        self._asked_last: tuple[VectorIndex, SqliteVectorStore] | None = None

    @override
    def active(self) -> VectorIndex | None:
        with self._database.read() as connection:
            return _one(connection, "WHERE state = 'active'")

    @override
    def all(self) -> list[VectorIndex]:
        with self._database.read() as connection:
            return [_index(*row) for row in connection.execute(_SELECT + "ORDER BY number")]

    @override
    def begin(self, embedding_tuple: EmbeddingTuple, place: str | None = None) -> VectorIndex:
        where = place or LOCAL
        if where == LOCAL and embedding_tuple.dimensions > DIMENSIONS_MAX:
            raise InvalidInputError(
                field="dimensions", problem=f"are above {DIMENSIONS_MAX:,}, the most SQLite takes"
            )
        with self._database.write() as connection:
            building = _one(connection, "WHERE state = 'building'")
            if building is not None:
                if (building.embedding_tuple, building.place) == (embedding_tuple, where):
                    return building
                if building.follows:
                    connection.execute(_RETIRE, ("building",))
                else:
                    self._destroy(connection, building)
            spelt = canonical_json(embedding_tuple.model_dump(mode="json")).decode()
            connection.execute(
                "INSERT INTO vector_index (embedding_tuple, state, position, place)"
                " VALUES (?, 'building', 0, ?)",
                (spelt, where),
            )
            number = connection.last_insert_rowid()
            if where == LOCAL:
                VectorTables(number).create(connection, embedding_tuple.dimensions)
        return VectorIndex(
            number=number,
            embedding_tuple=embedding_tuple,
            state=IndexState.BUILDING,
            position=0,
            place=where,
        )

    @override
    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        with self._database.write() as connection:
            _found(connection, index).require_may_advance()
            connection.execute(
                "UPDATE vector_index SET position = ? WHERE number = ?", (position, index.number)
            )
            return _found(connection, index)

    @override
    def activate(self, index: VectorIndex) -> VectorIndex:
        with self._database.write() as connection:
            found = _found(connection, index)
            if found.state is not IndexState.ACTIVE:
                found.require_building()
                connection.execute(_RETIRE, ("active",))
                connection.execute(
                    "UPDATE vector_index SET state = 'active' WHERE number = ?", (index.number,)
                )
            return _found(connection, index)

    @override
    def drop(self, index: VectorIndex) -> None:
        with self._database.write() as connection:
            found = _one(connection, _NUMBERED, index.number)
            if found is None:
                return
            found.require_may_go()
            self._destroy(connection, found)

    @override
    def store(self, index: VectorIndex) -> SqliteVectorStore:
        last = self._asked_last
        if last is not None and last[0] is index:  # As mostly: to hash a tuple takes longer.
            return last[1]
        require_kept_here(index)
        key = (index.number, index.embedding_tuple)
        store = self._stores.get(key)
        if store is None:
            # Of two threads that come first at once, both get the one that is kept.
            store = self._stores.setdefault(
                key,
                SqliteVectorStore(
                    database=self._database,
                    tables=VectorTables(index.number),
                    dimensions=index.embedding_tuple.dimensions,
                ),
            )
        self._asked_last = index, store
        return store

    def _destroy(self, connection: apsw.Connection, index: VectorIndex) -> None:
        if not index.follows:
            VectorTables(index.number).drop(connection)
        connection.execute("DELETE FROM vector_index WHERE number = ?", (index.number,))
        store = self._stores.get((index.number, index.embedding_tuple))
        if store is not None:
            store.let_go()


def _one(connection: apsw.Connection, where: str, *values: int) -> VectorIndex | None:
    row = connection.execute(_SELECT + where, values).fetchone()
    return None if row is None else _index(*row)


def _found(connection: apsw.Connection, index: VectorIndex) -> VectorIndex:
    found = _one(connection, _NUMBERED, index.number)
    if found is None:
        raise StoreUnavailableError(
            store=f"vector index {index.number}", problem="it was dropped meanwhile"
        )
    return found


@lru_cache(maxsize=16)
def _index(number: Any, spelt: Any, state: Any, position: Any, place: Any) -> VectorIndex:
    # Every recall and every write asks which index is active: mostly the same row.
    return VectorIndex(
        number=number,
        embedding_tuple=_embedding_tuple(spelt),
        state=IndexState(state),
        position=position,
        place=place,
    )


@lru_cache(maxsize=16)
def _embedding_tuple(spelt: str) -> EmbeddingTuple:
    return EmbeddingTuple.model_validate_json(spelt)
