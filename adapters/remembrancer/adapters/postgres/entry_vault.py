"""Originals in PostgreSQL, beside the log (adr/0027)."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg import Cursor
from typing_extensions import override

from remembrancer.adapters.postgres.clearing import note_erasure
from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.original_row import (
    COLUMNS,
    to_columns,
    to_microseconds,
    to_original,
)
from remembrancer.adapters.postgres.owned import owned
from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.application.whose import places_by_owner
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.identity import EntryId, version_id

_INSERT = (
    "INSERT INTO originals (index_id, entry_id, version, scope, kind, sensitivity, recorded_at,"
    " tokens, token_counter, digest, salt, subjects, metadata, reason, text)"
    " SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::text[], %s::text[],"
    " %s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::bytea[], %s::bytea[], %s::text[],"
    " %s::text[], %s::bytea[], %s::bytea[])"
    " ON CONFLICT (tenant, index_id) DO NOTHING RETURNING index_id"
)
_SUPERSEDE = owned(
    "UPDATE originals SET index_id = %s, superseded_at = %s"
    " WHERE {mine} AND index_id = %s AND version = %s"
)
_BY_INDEX_ID = owned("SELECT {columns} FROM originals WHERE index_id = ANY(%s)", columns=COLUMNS)
_OF_KIND = owned(
    "SELECT {columns} FROM originals"
    " WHERE superseded_at IS NULL AND tenant = %(tenant)s AND kind = %(kind)s"
    " AND scope = ANY(%(scopes)s) AND (%(owners)s::text[] IS NULL OR owner = ANY(%(owners)s))"
    " ORDER BY recorded_at, entry_id",
    columns=COLUMNS,
)
_ADD_SCOPE = (
    "INSERT INTO owned_scopes (scope_key, scope, kept) VALUES (%s, %s, %s)"
    " ON CONFLICT (tenant, owner, scope_key)"
    " DO UPDATE SET kept = owned_scopes.kept + excluded.kept"
)
_SUBTRACT_SCOPE = owned("UPDATE owned_scopes SET kept = kept - %s WHERE {mine} AND scope_key = %s")
_DROP_SCOPES = owned("DELETE FROM owned_scopes WHERE {mine} AND kept = 0")
_SCOPES = (
    "SELECT DISTINCT scope FROM owned_scopes WHERE tenant = %(tenant)s"
    " AND (%(owners)s::text[] IS NULL OR owner = ANY(%(owners)s)) ORDER BY scope"
)
_ENTRIES_OF = (
    "SELECT entry_id FROM originals"
    " WHERE superseded_at IS NULL AND tenant = %s AND owner = %s ORDER BY entry_id"
)
_WHOSE = (
    "SELECT tenant, owner, version FROM originals"
    " WHERE index_id = %s AND superseded_at IS NULL ORDER BY tenant"
)
_CURRENT_VERSION = owned(
    "SELECT version FROM originals WHERE {mine} AND index_id = %s AND superseded_at IS NULL"
)
_ERASE = owned(
    "DELETE FROM originals WHERE {mine} AND index_id = ANY(%s) RETURNING version, scope"
)
_ADD_ERASED = "INSERT INTO erased_entries (entry_id) VALUES (%s) ON CONFLICT DO NOTHING"
_TENANT_OF_ERASED = (
    "SELECT tenant FROM erased_entries AS erased WHERE entry_id = %s AND NOT EXISTS ("
    " SELECT FROM originals WHERE originals.tenant = erased.tenant AND index_id = erased.entry_id)"
)
_COUNT = "SELECT count(*) FROM originals WHERE superseded_at IS NULL"


class PostgresEntryVault(EntryVault):
    """Rows of ``originals``; see ``migrations/base/entry_vault.sql``.

    Calls by id see whom the thread acts for; those that name a tenant need no such block.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def keep(self, originals: Sequence[Original]) -> None:
        if not originals:
            return
        with self._database.begin():
            for (tenant, owner), places in places_by_owner(originals):
                with self._database.write(tenant=tenant, owner=owner) as connection:
                    _keep(connection, [originals[place] for place in places])

    @override
    def current(self, entry_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        return {
            original.entry_id: original
            for original in self._select(entry_ids)
            if original.superseded_at is None
        }

    @override
    def versions(
        self, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], Original]:
        if not wanted:
            return {}
        found = self._select([entry_id for entry_id, _ in wanted])
        kept = {(original.entry_id, original.version): original for original in found}
        # Mostly the current versions are wanted: only for others an id has to be computed.
        older = {version_id(*key) for key in wanted if key not in kept and key[1] >= 1}
        for original in self._select(older):
            kept[original.entry_id, original.version] = original
        return {key: kept[key] for key in wanted if key in kept}

    @override
    def indexed(self, index_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        return {_index_id(original): original for original in self._select(index_ids)}

    @override
    def history(self, entry_id: EntryId) -> list[Original]:
        with self._database.read() as connection:
            rows = connection.execute(_WHOSE, (entry_id,)).fetchall()
            kept = self._selected(
                connection, [one for row in rows for one in _index_ids(entry_id, row[2])]
            )
        return sorted(kept, key=lambda original: original.version)

    @override
    def of_kind(
        self, *, tenant: str, owners: tuple[str, ...] | None, kind: str, scopes: tuple[str, ...]
    ) -> list[Original]:
        values = {
            "tenant": tenant,
            "owners": _listed(owners),
            "kind": kind,
            "scopes": list(scopes),
        }
        with self._database.read(tenant=tenant, owner=_only(owners)) as connection:
            return self._originals(_raw(connection).execute(_OF_KIND, values))

    @override
    def scopes(self, *, tenant: str, owners: tuple[str, ...] | None) -> list[str]:
        with self._database.read(tenant=tenant, owner=_only(owners)) as connection:
            values = {"tenant": tenant, "owners": _listed(owners)}
            return [str(scope) for (scope,) in connection.execute(_SCOPES, values)]

    @override
    def entries_of(self, *, tenant: str, owner: str) -> list[EntryId]:
        with self._database.read(tenant=tenant, owner=owner) as connection:
            rows: Iterable[Any] = connection.execute(_ENTRIES_OF, (tenant, owner))
            return [EntryId(entry_id) for (entry_id,) in rows]

    @override
    def count(self) -> int:
        with self._database.read() as connection:
            row: Any = connection.execute(_COUNT).fetchone()
            return int(row[0])

    @override
    def erase(self, entry_id: EntryId) -> list[int]:
        versions: list[int] = []
        with self._database.read() as connection:
            whose: list[Any] = connection.execute(_WHOSE, (entry_id,)).fetchall()
        for tenant, owner, _ in whose:
            with self._database.write(tenant=tenant, owner=owner) as connection:
                versions += _erase(connection, entry_id)
        return sorted(versions)

    @override
    def tenant_of_erased(self, entry_id: EntryId) -> str | None:
        with self._database.read() as connection:
            row = connection.execute(_TENANT_OF_ERASED, (entry_id,)).fetchone()
        return None if row is None else str(row[0])

    def _select(self, index_ids: Iterable[EntryId]) -> list[Original]:
        wanted = list(index_ids)
        if not wanted:
            return []
        with self._database.read() as connection:
            return self._selected(connection, wanted)

    def _selected(self, connection: Connection, index_ids: Sequence[UUID]) -> list[Original]:
        return self._originals(_raw(connection).execute(_BY_INDEX_ID, (list(index_ids),)))

    def _originals(self, rows: Iterable[Any]) -> list[Original]:
        return [to_original(row, store=self._database.name) for row in rows]


def _keep(connection: Connection, originals: Sequence[Original]) -> None:
    """Keep versions of one owner."""
    scopes = Counter(original.scope for original in originals)
    for scope, count in sorted(scopes.items()):
        connection.execute(_ADD_SCOPE, (_scope_key(scope), scope, count))
    _insert(connection, [original for original in originals if original.version == 1])
    later = [original for original in originals if original.version != 1]
    for original in sorted(later, key=lambda original: original.version):
        _supersede(connection, original)
        _insert(connection, [original])


def _insert(connection: Connection, originals: Sequence[Original]) -> None:
    if not originals:
        return
    rows: Iterable[Any] = connection.execute(_INSERT, to_columns(originals))
    kept = {index_id for (index_id,) in rows}
    seen = set[UUID]()
    for original in originals:
        if original.entry_id not in kept or original.entry_id in seen:
            raise _stale(original)
        seen.add(original.entry_id)


def _supersede(connection: Connection, original: Original) -> None:
    """Make room for a version by closing the one before it."""
    before = original.version - 1
    moved = connection.execute(
        _SUPERSEDE,
        (
            version_id(original.entry_id, before),
            to_microseconds(original.recorded_at),
            original.entry_id,
            before,
        ),
    )
    if moved.rowcount != 1:
        raise _stale(original)


def _erase(connection: Connection, entry_id: EntryId) -> list[int]:
    # Again, now that the owner is locked: a correction may have been first.
    row: Any = connection.execute(_CURRENT_VERSION, (entry_id,)).fetchone()
    if row is None:
        return []
    erased: list[Any] = connection.execute(_ERASE, (_index_ids(entry_id, row[0]),)).fetchall()
    connection.execute(_ADD_ERASED, (entry_id,))
    for scope, gone in Counter(scope for _, scope in erased).items():
        connection.execute(_SUBTRACT_SCOPE, (gone, _scope_key(scope)))
    connection.execute(_DROP_SCOPES)
    note_erasure(connection)
    return [version for version, _ in erased]


def _stale(original: Original) -> StaleStreamError:
    return StaleStreamError(MemoryEntry.create_id(original.tenant, original.entry_id))


def _index_ids(entry_id: EntryId, current: Any) -> list[UUID]:
    """Return the ids that all kept versions of an entry stand under."""
    return [*(version_id(entry_id, version) for version in range(1, current)), entry_id]


def _index_id(original: Original) -> EntryId:
    if original.superseded_at is None:
        return original.entry_id
    return version_id(original.entry_id, original.version)


def _scope_key(scope: str) -> UUID:
    return UUID(bytes=hashlib.blake2b(scope.encode(), digest_size=16).digest())


def _raw(connection: Connection) -> Cursor[tuple[Any, ...]]:
    """Return a cursor that is given bytes as they are, not as digits twice as long."""
    return connection.cursor(binary=True)


def _only(owners: tuple[str, ...] | None) -> str | None:
    return owners[0] if owners is not None and len(owners) == 1 else None


def _listed(owners: tuple[str, ...] | None) -> list[str] | None:
    return None if owners is None else list(owners)
