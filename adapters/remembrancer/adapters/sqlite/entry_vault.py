"""Originals in the SQLite file, beside the log (adr/0003)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.original_row import (
    Row,
    to_microseconds,
    to_originals,
    to_values,
)
from remembrancer.application.ports.entry_vault import EntryVault, Original
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.identity import EntryId, version_id

_Key = tuple[str, str, str]
"""Tenant, owner and scope."""
_STORED_KEY = itemgetter(1, 2)
"""Entry id and version, of a row of ``kept_original``."""

_INSERT = (
    "INSERT INTO original (index_id, entry_id, version, owned_scope, kind, sensitivity,"
    " recorded_at, superseded_at, tokens, token_counter, digest, salt, subjects, metadata,"
    " reason, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SUPERSEDE = (
    "UPDATE original SET index_id = ?, superseded_at = ? WHERE index_id = ? AND version = ?"
)
_TO_EMPTY = (
    "SELECT version, owned_scope FROM original"
    " WHERE index_id IN (SELECT value FROM carray(?)) ORDER BY version"
)
# Shorter than any row that was kept: see adr/0003 for why the row stays.
_EMPTY = (
    "UPDATE original SET index_id = NULL, entry_id = NULL, version = NULL, owned_scope = NULL,"
    " kind = NULL, sensitivity = NULL, recorded_at = NULL, superseded_at = NULL, tokens = NULL,"
    " token_counter = NULL, digest = NULL, salt = NULL, subjects = NULL, metadata = NULL,"
    " reason = NULL, text = NULL WHERE index_id = ?"
)
_BY_INDEX_ID = (
    "SELECT kept_original.* FROM carray(?) CROSS JOIN kept_original ON index_id = carray.value"
)
_OF_KIND = (
    "SELECT * FROM kept_original"
    " WHERE superseded_at = 9223372036854775807 AND tenant = ?1 AND kind = ?2"
    " AND scope IN (SELECT value FROM json_each(?3))"
    " AND (?4 IS NULL OR owner IN (SELECT value FROM json_each(?4)))"
    " ORDER BY recorded_at, entry_id"
)
_ADD_SCOPE = (
    "INSERT INTO owned_scope (tenant, owner, scope, kept) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (tenant, owner, scope) DO UPDATE SET kept = kept + excluded.kept"
    " RETURNING number"
)
_SUBTRACT_SCOPE = "UPDATE owned_scope SET kept = kept - ? WHERE number = ?"
_DROP_SCOPE = "DELETE FROM owned_scope WHERE number = ? AND kept = 0"
_SCOPES = (
    "SELECT DISTINCT scope FROM owned_scope WHERE tenant = ?1"
    " AND (?2 IS NULL OR owner IN (SELECT value FROM json_each(?2))) ORDER BY scope"
)
_ENTRIES_OF = (
    "SELECT entry_id FROM kept_original"
    " WHERE superseded_at = 9223372036854775807 AND tenant = ? AND owner = ? ORDER BY entry_id"
)
_CURRENT_VERSION = (
    "SELECT version FROM original WHERE index_id = ? AND superseded_at = 9223372036854775807"
)
_ADD_ERASED = (
    "INSERT OR REPLACE INTO erased_entry (entry_id, tenant)"
    " SELECT entry_id, tenant FROM kept_original WHERE index_id = ?"
)
_TENANT_OF_ERASED = (
    "SELECT tenant FROM erased_entry WHERE entry_id = ?1"
    " AND NOT EXISTS (SELECT * FROM original WHERE index_id = ?1)"
)
_COUNT = "SELECT count(*) FROM original WHERE superseded_at = 9223372036854775807"


class SqliteEntryVault(EntryVault):
    """Rows of ``original``; see ``entry_vault.sql``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._store = str(database.path)

    @override
    def keep(self, originals: Sequence[Original]) -> None:
        first = [original for original in originals if original.version == 1]
        later = [original for original in originals if original.version != 1]
        with self._database.write() as connection:
            scopes = _add_scopes(connection, originals)
            _insert(connection, first, scopes)
            for original in sorted(later, key=lambda original: original.version):
                _supersede(connection, original)
                _insert(connection, [original], scopes)

    @override
    def current(self, entry_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        with self._database.read() as connection:
            found = self._select(connection, entry_ids)
        return {
            original.entry_id: original for original in found if original.superseded_at is None
        }

    @override
    def versions(
        self, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], Original]:
        found = zip(wanted, self.in_order(wanted), strict=True)
        return {key: one for key, one in found if one is not None}

    @override
    def in_order(self, wanted: Sequence[tuple[EntryId, int]]) -> list[Original | None]:
        stored = [(entry_id.bytes, version) for entry_id, version in wanted]
        with self._database.read() as connection:
            rows = _rows(connection, [entry_id for entry_id, _ in stored])
            heads = to_originals(rows, store=self._store)
            if list(map(_STORED_KEY, rows)) == stored:
                return [*heads]  # As mostly: the current ones were wanted, each once.
            kept = {(one.entry_id, one.version): one for one in heads}
            older = {version_id(*key) for key in wanted if key not in kept and key[1] >= 1}
            for one in self._select(connection, older):
                kept[one.entry_id, one.version] = one
        return [kept.get(key) for key in wanted]

    @override
    def indexed(self, index_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        with self._database.read() as connection:
            found = self._select(connection, index_ids)
        return {_index_id(original): original for original in found}

    @override
    def history(self, entry_id: EntryId) -> list[Original]:
        with self._database.read() as connection:
            kept = self._select(connection, _index_ids(connection, entry_id))
        return sorted(kept, key=lambda original: original.version)

    @override
    def of_kind(
        self, *, tenant: str, owners: tuple[str, ...] | None, kind: str, scopes: tuple[str, ...]
    ) -> list[Original]:
        bindings = (tenant, kind, _json(scopes), _json(owners))
        with self._database.read() as connection:
            rows = connection.execute(_OF_KIND, bindings).fetchall()
        return to_originals(rows, store=self._store)

    @override
    def scopes(self, *, tenant: str, owners: tuple[str, ...] | None) -> list[str]:
        with self._database.read() as connection:
            rows = connection.execute(_SCOPES, (tenant, _json(owners)))
            return [scope for (scope,) in rows]

    @override
    def entries_of(self, *, tenant: str, owner: str) -> list[EntryId]:
        with self._database.read() as connection:
            rows = connection.execute(_ENTRIES_OF, (tenant, owner))
            return [EntryId(UUID(bytes=stored)) for (stored,) in rows]

    @override
    def count(self) -> int:
        with self._database.read() as connection:
            kept: int = connection.execute(_COUNT).get
            return kept

    @override
    def erase(self, entry_id: EntryId) -> list[int]:
        with self._database.write() as connection:
            index_ids = tuple(index_id.bytes for index_id in _index_ids(connection, entry_id))
            if not index_ids:
                return []
            connection.execute(_ADD_ERASED, (entry_id.bytes,))
            erased: list[Row] = connection.execute(_TO_EMPTY, (apsw.carray(index_ids),)).fetchall()
            connection.executemany(_EMPTY, [(index_id,) for index_id in index_ids])
            for number, gone in Counter(number for _, number in erased).items():
                connection.execute(_SUBTRACT_SCOPE, (gone, number))
                connection.execute(_DROP_SCOPE, (number,))
        return [version for version, _ in erased]

    @override
    def tenant_of_erased(self, entry_id: EntryId) -> str | None:
        with self._database.read() as connection:
            tenant: str | None = connection.execute(_TENANT_OF_ERASED, (entry_id.bytes,)).get
            return tenant

    def _select(self, connection: apsw.Connection, index_ids: Iterable[EntryId]) -> list[Original]:
        rows = _rows(connection, [index_id.bytes for index_id in index_ids])
        return to_originals(rows, store=self._store)


def _rows(connection: apsw.Connection, index_ids: Sequence[bytes]) -> list[Row]:
    """Return what stands under these ids, in their order."""
    wanted = tuple(dict.fromkeys(index_ids))
    if not wanted:
        return []  # carray takes no empty array.
    return connection.execute(_BY_INDEX_ID, (apsw.carray(wanted),)).fetchall()


def _add_scopes(connection: apsw.Connection, originals: Sequence[Original]) -> dict[_Key, int]:
    """Count the versions in under their scopes; return the scopes' numbers."""
    added: dict[_Key, int] = {}
    for original in originals:
        key = _key(original)
        added[key] = added.get(key, 0) + 1
    return {key: connection.execute(_ADD_SCOPE, (*key, count)).get for key, count in added.items()}


def _insert(
    connection: apsw.Connection, originals: Sequence[Original], scopes: dict[_Key, int]
) -> None:
    latest: list[Original] = []

    def values() -> Iterator[Row]:
        for original in originals:
            latest[:] = [original]
            yield to_values(original, owned_scope=scopes[_key(original)])

    try:
        connection.executemany(_INSERT, values())
    except apsw.ConstraintError as error:
        if error.extendedresult != apsw.SQLITE_CONSTRAINT_UNIQUE:  # type: ignore[attr-defined]  # Documented, but not in the stubs.
            raise
        raise _stale(latest[0]) from error


def _supersede(connection: apsw.Connection, original: Original) -> None:
    """Make room for a version by closing the one before it."""
    before = original.version - 1
    connection.execute(
        _SUPERSEDE,
        (
            version_id(original.entry_id, before).bytes,
            to_microseconds(original.recorded_at),
            original.entry_id.bytes,
            before,
        ),
    )
    if connection.changes() != 1:
        raise _stale(original)


def _stale(original: Original) -> StaleStreamError:
    return StaleStreamError(MemoryEntry.create_id(original.tenant, original.entry_id))


def _index_ids(connection: apsw.Connection, entry_id: EntryId) -> list[EntryId]:
    """Return the ids that all kept versions of an entry stand under."""
    current: int | None = connection.execute(_CURRENT_VERSION, (entry_id.bytes,)).get
    if current is None:
        return []
    return [*(version_id(entry_id, version) for version in range(1, current)), entry_id]


def _index_id(original: Original) -> EntryId:
    if original.superseded_at is None:
        return original.entry_id
    return version_id(original.entry_id, original.version)


def _key(original: Original) -> _Key:
    return original.tenant, original.owner, original.scope


def _json(names: tuple[str, ...] | None) -> str | None:
    return None if names is None else canonical_json(names).decode()
