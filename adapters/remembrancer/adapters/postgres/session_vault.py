"""Keys and items of sessions in PostgreSQL."""

from typing import Any
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.postgres.clearing import note_erasure
from remembrancer.adapters.postgres.database import Database
from remembrancer.application.ports.session_vault import SessionVault

_KEEP_KEY = (
    "INSERT INTO session_keys (selection_id, session, key) VALUES (%s, %s, %s)"
    " ON CONFLICT (tenant, selection_id)"
    " DO UPDATE SET session = excluded.session, key = excluded.key"
)
_WHOSE = "SELECT tenant, owner FROM session_keys WHERE selection_id = %s"
_KEEP_ITEMS = (
    "INSERT INTO session_items (selection_id, number, items)"
    " SELECT selection_id, %s, %s FROM session_keys WHERE selection_id = %s"
    " ON CONFLICT (tenant, selection_id, number) DO UPDATE SET items = excluded.items"
)
_KEY = "SELECT key FROM session_keys WHERE selection_id = %s"
_ITEMS = "SELECT items FROM session_items WHERE selection_id = %s AND number = %s"
_KEYED_ITEMS = (
    "SELECT key, items FROM session_keys JOIN session_items USING (tenant, selection_id)"
    " WHERE selection_id = %s AND number = %s"
)
_OWNERS_OF_SESSION = (
    "SELECT DISTINCT owner FROM session_keys WHERE tenant = %s AND session = %s ORDER BY owner"
)
_ERASE_SESSION = (
    "DELETE FROM session_keys WHERE tenant = %s AND owner = %s AND session = %s"
    " RETURNING selection_id"
)
_ERASE_OWNER = "DELETE FROM session_keys WHERE tenant = %s AND owner = %s RETURNING selection_id"
_ERASE_ITEMS = "DELETE FROM session_items WHERE tenant = %s AND selection_id = ANY(%s)"


class PostgresSessionVault(SessionVault):
    """Rows of ``session_keys`` and ``session_items``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def keep_key(
        self, selection_id: UUID, *, tenant: str, owner: str, session: str, key: bytes
    ) -> None:
        with self._database.write(tenant=tenant, owner=owner) as connection:
            connection.execute(_KEEP_KEY, (selection_id, session, key))

    @override
    def key(self, selection_id: UUID) -> bytes | None:
        with self._database.read() as connection:
            row: Any = connection.execute(_KEY, (selection_id,)).fetchone()
        return None if row is None else bytes(row[0])

    @override
    def keep_items(self, selection_id: UUID, *, number: int, items: bytes) -> None:
        with self._database.read() as connection:
            whose: Any = connection.execute(_WHOSE, (selection_id,)).fetchone()
        if whose is None:
            return
        with self._database.write(tenant=whose[0], owner=whose[1]) as connection:
            connection.execute(_KEEP_ITEMS, (number, items, selection_id))

    @override
    def items(self, selection_id: UUID, *, number: int) -> bytes | None:
        with self._database.read() as connection:
            row: Any = connection.execute(_ITEMS, (selection_id, number)).fetchone()
        return None if row is None else bytes(row[0])

    @override
    def keyed_items(self, selection_id: UUID, *, number: int) -> tuple[bytes, bytes] | None:
        with self._database.read() as connection:
            row: Any = connection.execute(_KEYED_ITEMS, (selection_id, number)).fetchone()
        return None if row is None else (bytes(row[0]), bytes(row[1]))

    @override
    def erase_session(self, *, tenant: str, session: str) -> int:
        erased = 0
        with self._database.begin():
            with self._database.read(tenant=tenant) as connection:
                found: list[Any] = connection.execute(
                    _OWNERS_OF_SESSION, (tenant, session)
                ).fetchall()
            for (owner,) in found:
                erased += self._erase(_ERASE_SESSION, tenant, owner, session)
        return erased

    @override
    def erase_owner(self, *, tenant: str, owner: str) -> int:
        return self._erase(_ERASE_OWNER, tenant, owner)

    def _erase(self, which: str, tenant: str, owner: str, *session: str) -> int:
        with self._database.write(tenant=tenant, owner=owner) as connection:
            rows: list[Any] = connection.execute(which, (tenant, owner, *session)).fetchall()
            if rows:
                connection.execute(_ERASE_ITEMS, (tenant, [one for (one,) in rows]))
                note_erasure(connection)
        return len(rows)
