"""The suites' calls name no tenant, or only an owner: here each is made for one that it may mean.

Row security shows nobody's rows to who names nobody.  So a call by id is made for each tenant that
the suites know, and what is stored without labels is given some.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
from tests.adapters.postgres_server import FreshDatabase, server
from typing_extensions import override

from remembrancer.adapters.postgres import maintenance
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.entry_vault import PostgresEntryVault
from remembrancer.adapters.postgres.migrations.rights import COMMON, OWNED
from remembrancer.adapters.postgres.session_vault import PostgresSessionVault
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.application.ports import (
    EntryVault,
    Original,
    SessionVault,
    Transactions,
)
from remembrancer.domain.identity import EntryId

TENANTS = ("acme", "acme-corp", "other")
UNNAMED = {"tenant": "acme", "owner": "nobody in particular"}


# Read by the server, which may be on another machine; it tidies up meanwhile.
_FILES = """
    SELECT file, pg_read_binary_file(path, 0, size, true)
    FROM pg_database,
        pg_ls_dir('base/' || pg_database.oid) AS file,
        concat('base/', pg_database.oid, '/', file) AS path,
        coalesce((pg_stat_file(path, true)).size, 0) AS size
    WHERE datname = current_database()
"""
_IDLE = list[FreshDatabase]()
_EMPTIED = sorted({*OWNED, *COMMON} - {"alembic_version"})


@contextmanager
def emptied() -> Iterator[FreshDatabase]:
    """Lend a database with nothing in it, many times faster than a fresh one."""
    fresh = _IDLE.pop() if _IDLE else server().fresh_database()
    with psycopg.connect(fresh.superuser) as connection:
        # Without triggers: stored events are never removed otherwise.
        connection.execute("SET LOCAL session_replication_role = replica")
        for table in _EMPTIED:
            connection.execute(f"DELETE FROM remembrancer.{table}")  # noqa: S608 - our own words
        connection.execute("SELECT setval('remembrancer.event_positions', 0, true)")
        connection.execute("ALTER TABLE remembrancer.vector_indexes ALTER number RESTART")
    maintenance.drop_approximate(fresh.owner)
    yield fresh
    _IDLE.append(fresh)


class ClearingTransactions(PostgresTransactions):
    """Clears as the operator is told to, and puts the database's files where a suite looks."""

    def __init__(
        self,
        *,
        database: Database,
        fresh: FreshDatabase,
        folder: Path,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        super().__init__(database=database)
        self._fresh = fresh
        self._folder = folder
        self._pause = pause

    @override
    def scrub(self) -> bool:
        maintenance.clear(self._fresh.owner, pause=self._pause)
        copy_files(self._fresh, self._folder / "files of the database")
        return super().scrub()


class AtOnceCleared(PostgresTransactions):
    """Clears what was erased whenever it is asked."""

    def __init__(self, transactions: Transactions, owner_dsn: str) -> None:
        assert isinstance(transactions, PostgresTransactions)
        super().__init__(database=transactions._database)
        self._owner_dsn = owner_dsn

    @override
    def scrub(self) -> bool:
        if not super().scrub():
            maintenance.clear(self._owner_dsn)
        return super().scrub()


def copy_files(fresh: FreshDatabase, folder: Path) -> None:
    """Copy all files of a database, as the server has them on its disk, to ``folder``."""
    folder.mkdir(exist_ok=True)
    for before in folder.iterdir():
        before.unlink()
    with psycopg.connect(fresh.superuser, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        for name, data in connection.execute(_FILES, binary=True):
            if data is not None:
                (folder / name).write_bytes(data)


class _ForEachTenant:
    """Makes calls for one tenant after the other."""

    def __init__(self, database: Database, names: Sequence[str] = TENANTS) -> None:
        self.database = database
        self.names = names

    def tenants(self) -> Iterator[AbstractContextManager[None]]:
        return (self.database.acting_for(tenant) for tenant in self.names)


class NamedEntryVault(_ForEachTenant, EntryVault):
    def __init__(self, database: Database, names: Sequence[str] = TENANTS) -> None:
        super().__init__(database, names)
        self.inner = PostgresEntryVault(database=database)

    @override
    def keep(self, originals: Sequence[Original]) -> None:
        self.inner.keep(originals)

    @override
    def current(self, entry_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        found = dict[EntryId, Original]()
        for tenant in self.tenants():
            with tenant:
                found |= self.inner.current(entry_ids)
        return found

    @override
    def versions(
        self, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], Original]:
        found = dict[tuple[EntryId, int], Original]()
        for tenant in self.tenants():
            with tenant:
                found |= self.inner.versions(wanted)
        return found

    @override
    def indexed(self, index_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        found = dict[EntryId, Original]()
        for tenant in self.tenants():
            with tenant:
                found |= self.inner.indexed(index_ids)
        return found

    @override
    def history(self, entry_id: EntryId) -> list[Original]:
        found = []
        for tenant in self.tenants():
            with tenant:
                found += self.inner.history(entry_id)
        return found

    @override
    def of_kind(
        self, *, tenant: str, owners: tuple[str, ...] | None, kind: str, scopes: tuple[str, ...]
    ) -> list[Original]:
        return self.inner.of_kind(tenant=tenant, owners=owners, kind=kind, scopes=scopes)

    @override
    def scopes(self, *, tenant: str, owners: tuple[str, ...] | None) -> list[str]:
        return self.inner.scopes(tenant=tenant, owners=owners)

    @override
    def entries_of(self, *, tenant: str, owner: str) -> list[EntryId]:
        return self.inner.entries_of(tenant=tenant, owner=owner)

    @override
    def count(self) -> int:
        found = 0
        for tenant in self.tenants():
            with tenant:
                found += self.inner.count()
        return found

    @override
    def erase(self, entry_id: EntryId) -> list[int]:
        found = []
        for tenant in self.tenants():
            with tenant:
                found += self.inner.erase(entry_id)
        return found

    @override
    def tenant_of_erased(self, entry_id: EntryId) -> str | None:
        for tenant in self.tenants():
            with tenant:
                found = self.inner.tenant_of_erased(entry_id)
            if found is not None:
                return found
        return None


class NamedSessionVault(_ForEachTenant, SessionVault):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.inner = PostgresSessionVault(database=database)

    @override
    def keep_key(
        self, selection_id: UUID, *, tenant: str, owner: str, session: str, key: bytes
    ) -> None:
        self.inner.keep_key(selection_id, tenant=tenant, owner=owner, session=session, key=key)

    @override
    def key(self, selection_id: UUID) -> bytes | None:
        found = []
        for tenant in self.tenants():
            with tenant:
                found.append(self.inner.key(selection_id))
        return next(filter(None, found), None)

    @override
    def keep_items(self, selection_id: UUID, *, number: int, items: bytes) -> None:
        for tenant in self.tenants():
            with tenant:
                self.inner.keep_items(selection_id, number=number, items=items)

    @override
    def items(self, selection_id: UUID, *, number: int) -> bytes | None:
        found = []
        for tenant in self.tenants():
            with tenant:
                found.append(self.inner.items(selection_id, number=number))
        return next(filter(None, found), None)

    @override
    def keyed_items(self, selection_id: UUID, *, number: int) -> tuple[bytes, bytes] | None:
        found = []
        for tenant in self.tenants():
            with tenant:
                found.append(self.inner.keyed_items(selection_id, number=number))
        return next(filter(None, found), None)

    @override
    def erase_session(self, *, tenant: str, session: str) -> int:
        return self.inner.erase_session(tenant=tenant, session=session)

    @override
    def erase_owner(self, *, tenant: str, owner: str) -> int:
        return self.inner.erase_owner(tenant=tenant, owner=owner)
