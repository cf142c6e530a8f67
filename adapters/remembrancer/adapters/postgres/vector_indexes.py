"""Vector indexes as rows of a registry; their vectors share one table (adr/0028)."""

from functools import lru_cache
from typing import Any

from typing_extensions import override

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.vector_store import PostgresVectorStore, VectorSearch
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

DIMENSIONS_MAX = 16_000
"""The most that pgvector stores."""

REGISTRY_KEY = (0x5EAD << 48) + 3
"""Advisory lock: one at a time makes, switches and drops indexes."""

_SELECT = "SELECT number, embedding_tuple, state, position, place FROM vector_indexes "
_NUMBERED = "WHERE number = %s"
_ACTIVE = "WHERE state = 'active'"
_INSERT = (
    "INSERT INTO vector_indexes (embedding_tuple, state, position, place)"
    " VALUES (%s, 'building', 0, %s) RETURNING number"
)
_ADVANCE = "UPDATE vector_indexes SET position = %s WHERE number = %s"
_RETIRE = "UPDATE vector_indexes SET state = 'retired' WHERE state = %s"
_ACTIVATE = "UPDATE vector_indexes SET state = 'active' WHERE number = %s"
_LOCK = "SELECT pg_advisory_xact_lock(%s)"
# The vectors of all tenants go with it, which may take longer than any one statement should.
_TAKE_TIME = "SELECT set_config('statement_timeout', '0', true)"
_DROP = "DELETE FROM vector_indexes WHERE number = %s"
_LIMIT = "SELECT set_config('statement_timeout', %s, true)"


class PostgresVectorIndexes(VectorIndexes):
    """The registry of one database; see ``migrations/base/vector_indexes.sql``."""

    def __init__(self, *, database: Database, search: VectorSearch = VectorSearch.AUTO) -> None:
        self._database = database
        self._search = search
        self._stores: dict[tuple[int, EmbeddingTuple], PostgresVectorStore] = {}

    @override
    def active(self) -> VectorIndex | None:
        with self._database.read_common() as connection:
            found = _one(connection, _ACTIVE)
            if found is None and self._database.in_write:
                # Whoever is about to make the first index waits here for one who is just doing so.
                _lock(connection)
                found = _one(connection, _ACTIVE)
            return found

    @override
    def all(self) -> list[VectorIndex]:
        with self._database.read_common() as connection:
            rows: list[Any] = connection.execute(_SELECT + "ORDER BY number").fetchall()
        return [_index(*row) for row in rows]

    @override
    def begin(self, embedding_tuple: EmbeddingTuple, place: str | None = None) -> VectorIndex:
        where = place or LOCAL
        if where == LOCAL and embedding_tuple.dimensions > DIMENSIONS_MAX:
            raise InvalidInputError(
                field="dimensions",
                problem=f"are above {DIMENSIONS_MAX:,}, the most that pgvector stores",
            )
        with self._database.begin() as connection:
            _lock(connection)
            building = _one(connection, "WHERE state = 'building'")
            if building is not None:
                if (building.embedding_tuple, building.place) == (embedding_tuple, where):
                    return building
                if building.follows:
                    connection.execute(_RETIRE, ("building",))
                else:
                    self._destroy(connection, building)
            spelt = canonical_json(embedding_tuple.model_dump(mode="json")).decode()
            row: Any = connection.execute(_INSERT, (spelt, where)).fetchone()
        return VectorIndex(
            number=row[0],
            embedding_tuple=embedding_tuple,
            state=IndexState.BUILDING,
            position=0,
            place=where,
        )

    @override
    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        with self._database.begin() as connection:
            _found(connection, index).require_may_advance()
            connection.execute(_ADVANCE, (position, index.number))
            return _found(connection, index)

    @override
    def activate(self, index: VectorIndex) -> VectorIndex:
        with self._database.begin() as connection:
            _lock(connection)
            found = _found(connection, index)
            if found.state is not IndexState.ACTIVE:
                found.require_building()
                connection.execute(_RETIRE, ("active",))
                connection.execute(_ACTIVATE, (index.number,))
            return _found(connection, index)

    @override
    def drop(self, index: VectorIndex) -> None:
        with self._database.begin() as connection:
            _lock(connection)
            found = _one(connection, _NUMBERED, index.number)
            if found is None:
                return
            found.require_may_go()
            self._destroy(connection, found)

    @override
    def store(self, index: VectorIndex) -> PostgresVectorStore:
        require_kept_here(index)
        key = (index.number, index.embedding_tuple)
        store = self._stores.get(key)
        if store is None:
            # Of two threads that come first at once, both get the one that is kept.
            store = self._stores.setdefault(
                key,
                PostgresVectorStore(
                    database=self._database,
                    number=index.number,
                    dimensions=index.embedding_tuple.dimensions,
                    search=self._search,
                ),
            )
        return store

    def _destroy(self, connection: Connection, index: VectorIndex) -> None:
        connection.execute(_TAKE_TIME)
        connection.execute(_DROP, (index.number,))
        limit = self._database.limits.statement_timeout_s
        connection.execute(_LIMIT, (f"{int(limit * 1000)}ms",))


def _lock(connection: Connection) -> None:
    connection.execute(_LOCK, (REGISTRY_KEY,))


def _one(connection: Connection, where: str, *values: int) -> VectorIndex | None:
    row: Any = connection.execute(_SELECT + where, values).fetchone()
    return None if row is None else _index(*row)


def _found(connection: Connection, index: VectorIndex) -> VectorIndex:
    found = _one(connection, _NUMBERED, index.number)
    if found is None:
        raise StoreUnavailableError(
            store=f"vector index {index.number}", problem="it was dropped meanwhile"
        )
    return found


def _index(number: Any, spelt: Any, state: Any, position: Any, place: Any) -> VectorIndex:
    return VectorIndex(
        number=number,
        embedding_tuple=_embedding_tuple(spelt),
        state=IndexState(state),
        position=position,
        place=place,
    )


@lru_cache(maxsize=16)
def _embedding_tuple(spelt: str) -> EmbeddingTuple:
    # Every recall asks which index is active; parsing is most of the cost.
    return EmbeddingTuple.model_validate_json(spelt)
