"""Whether a file's schema is the one that our scripts make, and nothing else (adr/0021).

Triggers are what keeps the log from being changed; further ones could change anything unseen, and
further tables could hold what was erased.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import apsw

from remembrancer.adapters.sqlite import schema
from remembrancer.application.ports.audit_source import StoreFault

_OBJECTS: Final = (
    "SELECT type, name, sql FROM {schema} WHERE type <> 'index' OR sql IS NOT NULL ORDER BY rowid"
)
_LIBRARYS_OWN: Final = re.compile(r"sqlite_|sparse_words_", re.ASCII)
"""Names of tables that SQLite makes by itself; another release of it may spell them otherwise."""
_STATISTICS: Final = frozenset({"sqlite_stat1", "sqlite_stat4"})
"""What ``PRAGMA optimize`` makes."""
_OF_VECTORS: Final = re.compile(
    r"vector_(?:row_)?([0-9]+)(?:_gone|_chunks|_rowids|_info|_vector_chunks00)?", re.ASCII
)
"""Names of what a vector index consists of; see ``vector_tables.py``."""
_TRIGGER: Final = "trigger"

_Object = tuple[str, str]
"""Type and name."""


def schema_differences(connection: apsw.Connection) -> Iterator[StoreFault]:
    """Yield what the file has that no script of ours makes, and what it lacks or has otherwise.

    A file of an older release may lack tables and indexes, and have them otherwise, until it is
    opened for writing; triggers it must have in any case.
    """
    expected = _expected()
    is_current = _scripts_of(connection) == schema.scripts_sha256()
    found = set[_Object]()
    vectors = _vector_indexes(connection)
    for kind, name, sql in connection.execute(_OBJECTS.format(schema="main.sqlite_schema")):
        one = (kind, name)
        found.add(one)
        if one not in expected:
            if not _is_made_later(kind, name, vectors):
                yield StoreFault(expected="what our scripts make", found=f"{kind} {name!r:.200}")
        elif (
            (is_current or kind == _TRIGGER)
            and not _LIBRARYS_OWN.match(name)
            and _spelt(sql) != expected[one]
        ):
            yield StoreFault(expected=f"{kind} {name} as our script makes it", found="another")
    for kind, name in expected:
        if (kind, name) not in found and (is_current or kind == _TRIGGER):
            yield StoreFault(expected=f"{kind} {name}", found="none")


@cache
def _expected() -> dict[_Object, str]:
    connection = apsw.Connection(":memory:")
    try:
        schema.run_scripts(connection)
        return {
            (kind, name): _spelt(sql)
            for kind, name, sql in connection.execute(_OBJECTS.format(schema="sqlite_schema"))
        }
    finally:
        connection.close()


def _scripts_of(connection: apsw.Connection) -> str | None:
    if not connection.table_exists("main", "schema_info"):
        return None
    found: str | None = connection.execute("SELECT scripts_sha256 FROM schema_info").get
    return found


def _vector_indexes(connection: apsw.Connection) -> frozenset[int]:
    if not connection.table_exists("main", "vector_index"):
        return frozenset()
    rows = connection.execute("SELECT number FROM vector_index WHERE place = 'local'")
    return frozenset(number for (number,) in rows)


def _is_made_later(kind: str, name: str, vectors: frozenset[int]) -> bool:
    if kind == _TRIGGER:
        return False
    if name in _STATISTICS:
        return True
    match = _OF_VECTORS.fullmatch(name)
    return match is not None and int(match[1]) in vectors


def _spelt(sql: str) -> str:
    return " ".join(sql.split())
