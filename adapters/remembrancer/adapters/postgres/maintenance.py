"""What only the schema's owner can do: write tables anew, and make approximate indexes.

Each is run by hand (``remembrancer maintain``), outside of transactions, on a connection straight
to the server.
"""

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from psycopg import errors as states
from psycopg import sql

from remembrancer.adapters.postgres.connection import Connection, check_dsn, connect
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.nearest import (
    HNSW_DIMENSIONS_MAX,
    approximate_index,
    halved,
)
from remembrancer.adapters.postgres.statements import SCHEMA
from remembrancer.adapters.postgres.translation import translating
from remembrancer.adapters.postgres.vector_wire import EXTENSION
from remembrancer.domain.errors import InvalidInputError

ERASABLE = (
    "originals",
    "session_keys",
    "session_items",
    "sparse_documents",
    "sparse_postings",
    "vectors",
    "vector_outbox",
)
"""Tables with content that an erasure removes."""

LOCK_WAIT_S = 10

TRIES = 5
PAUSE_S = 1.0
"""What a transaction may still see is written anew again: the server's own statistics take one."""

_SETTING = "store.owner_dsn"
_LIMITS = Limits(prepare_after=None)
_COMMITTED = "SELECT coalesce(array_agg(xid::text), '{}') FROM pending_clearing"
_CLEARED = "DELETE FROM pending_clearing WHERE xid = ANY(%s::text[]::xid8[])"
_KEPT_HERE = (
    "SELECT number, (embedding_tuple::json ->> 'dimensions')::integer FROM vector_indexes"
    " WHERE place = 'local' AND state <> 'retired' ORDER BY number"
)
_APPROXIMATE = (
    "SELECT relname::text, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
    " WHERE indrelid = 'vectors'::regclass AND relname LIKE 'vectors\\_near\\_%'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """What writing the tables anew has come to."""

    erasures: int
    """Transactions whose erasures are out of the tables now."""
    kept_rows: int
    """Dead rows that couldn't be left out, because a transaction may still see them."""


@dataclass(slots=True)
class _DeadRows:
    """Counts what VACUUM reports, in whatever language: the first number of its detail."""

    kept: int = 0
    _number: re.Pattern[str] = field(default_factory=lambda: re.compile(r"\d+"))

    def __call__(self, notice: Any) -> None:
        found = self._number.search(notice.message_detail or "")
        if found is not None:
            self.kept += int(found[0])


def clear(dsn: str, *, pause: Callable[[float], object] = time.sleep) -> Cleared:
    """Write all tables with content anew, without what was erased from them.

    Each table is locked meanwhile, for readers too.  What the write-ahead log, replicas and
    backups hold is not touched.

    Args:
        dsn: as the tables' owner.
        pause: lets seconds pass before what a transaction may still see is tried again.

    Raises:
        SettingsError: ``dsn`` isn't a connection string.
        StoreError: the server can't be had, or refuses.
    """
    with _connected(dsn) as connection:
        row: Any = connection.execute(_COMMITTED).fetchone()
        kept = dict.fromkeys(ERASABLE, 0)
        for attempt in range(TRIES):
            if attempt:
                pause(PAUSE_S)
            kept = {table: dead for table in kept if (dead := _written_anew(connection, table))}
            if not kept:
                break
        with suppress(states.InsufficientPrivilege):
            connection.execute("CHECKPOINT")  # The old files go with it, or with the next.
        if kept:
            return Cleared(erasures=0, kept_rows=sum(kept.values()))
        connection.execute(_CLEARED, (row[0],))
        return Cleared(erasures=len(row[0]), kept_rows=0)


def _written_anew(connection: Connection, table: str) -> int:
    """Write a table anew; return how many dead rows had to be kept."""
    dead = _DeadRows()
    connection.add_notice_handler(dead)
    connection.execute(sql.SQL("VACUUM (FULL, VERBOSE, ANALYZE) {}").format(sql.Identifier(table)))
    connection.remove_notice_handler(dead)
    return dead.kept


def make_approximate(dsn: str) -> list[str]:
    """Make an HNSW index for each vector index that answers or is being built; return their names.

    Those of indexes that are gone, and such as an interrupted run has left, go.  Writers go on
    meanwhile.

    Raises:
        InvalidInputError: a vector index has too many dimensions; it is searched exactly.
        SettingsError, StoreError: as :func:`clear`.
    """
    with _connected(dsn) as connection:
        schema: Any = connection.execute(EXTENSION).fetchone()
        wanted: dict[Any, Any] = dict(connection.execute(_KEPT_HERE).fetchall())
        names = {approximate_index(number): number for number in wanted}
        there: dict[Any, Any] = dict(connection.execute(_APPROXIMATE).fetchall())
        _drop(connection, [name for name in there if name not in names or not there[name]])
        for name, number in names.items():
            dimensions = wanted[number]
            if dimensions > HNSW_DIMENSIONS_MAX:
                problem = (
                    f"of vector index {number} are {dimensions:,}; pgvector makes approximate"
                    f" indexes of up to {HNSW_DIMENSIONS_MAX:,}, and answers exactly without one"
                )
                raise InvalidInputError(field="dimensions", problem=problem)
            if not there.get(name):
                connection.execute(
                    f"CREATE INDEX CONCURRENTLY {name} ON vectors"
                    f" USING hnsw ({halved(schema[0], dimensions)}"
                    f" {schema[0]}.halfvec_cosine_ops) WHERE index_number = {number}"
                )
                # ANALYZE keeps samples of what an index computes, too.
                connection.execute(f"ALTER INDEX {name} ALTER COLUMN 1 SET STATISTICS 0")
        return list(names)


def drop_approximate(dsn: str) -> list[str]:
    """Drop all HNSW indexes; return their names.  Raises as :func:`clear`."""
    with _connected(dsn) as connection:
        names = [str(name) for name, _ in connection.execute(_APPROXIMATE)]
        _drop(connection, names)
        return names


def _drop(connection: Connection, names: list[Any]) -> None:
    for name in names:
        connection.execute(
            sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(str(name)))
        )


@contextmanager
def _connected(dsn: str) -> Generator[Connection]:
    store = check_dsn(dsn, setting=_SETTING)
    connection = connect(dsn, limits=_LIMITS, store=store)
    try:
        with translating(store=store):
            connection.execute(f"SET search_path = {SCHEMA}, pg_temp")
            # Who waits to lock a table keeps all others waiting behind.
            connection.execute(f"SET lock_timeout = '{LOCK_WAIT_S}s'")
            yield connection
    finally:
        connection.close()
