"""Keys and items of sessions in the SQLite file.

Rows are emptied in place and never made longer, for the reason that adr/0003 gives.
"""

from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.ports.session_vault import SessionVault

_INSERT_KEY = (
    "INSERT INTO session_key (selection_id, tenant, owner, session, key) VALUES (?, ?, ?, ?, ?)"
)
_INSERT_ITEMS = (
    "INSERT INTO session_items (selection_id, number, items)"
    " SELECT selection_id, ?2, ?3 FROM session_key WHERE selection_id = ?1"
)
_KEY = "SELECT key FROM session_key WHERE selection_id = ?"
_ITEMS = "SELECT items FROM session_items WHERE selection_id = ? AND number = ?"
_KEYED_ITEMS = (
    "SELECT key, items FROM session_key CROSS JOIN session_items USING (selection_id)"
    " WHERE selection_id = ? AND session_items.number = ?"
)
_OF_SESSION = "SELECT selection_id FROM session_key WHERE tenant = ? AND session = ?"
_OF_OWNER = "SELECT selection_id FROM session_key WHERE tenant = ? AND owner = ?"
_EMPTY_KEY = (
    "UPDATE session_key SET selection_id = NULL, tenant = NULL, owner = NULL, session = NULL,"
    " key = NULL WHERE selection_id = ?"
)
_EMPTY_ITEMS = (
    "UPDATE session_items SET selection_id = NULL, number = NULL, items = NULL"
    " WHERE selection_id = ?1 AND (?2 IS NULL OR number = ?2)"
)


class SqliteSessionVault(SessionVault):
    """Rows of ``session_key`` and ``session_items``; see ``session_vault.sql``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def keep_key(
        self, selection_id: UUID, *, tenant: str, owner: str, session: str, key: bytes
    ) -> None:
        with self._database.write() as connection:
            connection.execute(_EMPTY_KEY, (selection_id.bytes,))
            connection.execute(_INSERT_KEY, (selection_id.bytes, tenant, owner, session, key))

    @override
    def key(self, selection_id: UUID) -> bytes | None:
        with self._database.read() as connection:
            key: bytes | None = connection.execute(_KEY, (selection_id.bytes,)).get
            return key

    @override
    def keep_items(self, selection_id: UUID, *, number: int, items: bytes) -> None:
        with self._database.write() as connection:
            connection.execute(_EMPTY_ITEMS, (selection_id.bytes, number))
            connection.execute(_INSERT_ITEMS, (selection_id.bytes, number, items))

    @override
    def items(self, selection_id: UUID, *, number: int) -> bytes | None:
        with self._database.read() as connection:
            items: bytes | None = connection.execute(_ITEMS, (selection_id.bytes, number)).get
            return items

    @override
    def keyed_items(self, selection_id: UUID, *, number: int) -> tuple[bytes, bytes] | None:
        with self._database.read() as connection:
            bindings = selection_id.bytes, number
            found: tuple[bytes, bytes] | None = connection.execute(_KEYED_ITEMS, bindings).get
            return found

    @override
    def erase_session(self, *, tenant: str, session: str) -> int:
        with self._database.write() as connection:
            return _erase(connection, _OF_SESSION, tenant, session)

    @override
    def erase_owner(self, *, tenant: str, owner: str) -> int:
        with self._database.write() as connection:
            return _erase(connection, _OF_OWNER, tenant, owner)


def _erase(connection: apsw.Connection, which: str, tenant: str, name: str) -> int:
    selections: list[bytes] = [row[0] for row in connection.execute(which, (tenant, name))]
    connection.executemany(_EMPTY_ITEMS, [(selection_id, None) for selection_id in selections])
    connection.executemany(_EMPTY_KEY, [(selection_id,) for selection_id in selections])
    return len(selections)
