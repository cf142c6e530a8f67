"""A database as an auditor's role reads it: one snapshot, a little at a time, whatever lies there.

One transaction (REPEATABLE READ, READ ONLY) from opening to closing, so that everything is read in
one state, also on a standby.  The server keeps what is read until it is fetched, a batch at a
time.  Each statement stands behind a savepoint of its own: one that fails, because a table is
damaged or may not be read, leaves the others readable.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, Final, Self

import psycopg
from psycopg import errors as states
from psycopg.pq import TransactionStatus

from remembrancer.adapters.postgres import start_check
from remembrancer.adapters.postgres.audit_sight import Sight, look
from remembrancer.adapters.postgres.connection import Connection, check_dsn, connect
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.statements import BEGIN_SNAPSHOT, SCHEMA
from remembrancer.adapters.postgres.translation import translating
from remembrancer.domain.errors import (
    StoreCorruptError,
    StoreForbiddenError,
    StoreUnavailableError,
)

ROWS_AT_ONCE: Final = 1_000
"""Rows that are in this process at a time: of the longest selections some 100 MB."""

LOG: Final = "stored_events"

_SETTINGS: Final = {
    "search_path": f"{SCHEMA}, pg_temp",
    # An audit takes as long as it takes, and lies idle while what it fetched is looked at.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    # What is sorted goes to the server's disk anyway; this makes it fewer pieces.
    "work_mem": "64MB",
    # All rows are fetched, not the first few.
    "cursor_tuple_fraction": "1",
    # An index that isn't as its table is must not answer in the table's place.
    "enable_indexonlyscan": "off",
}
# Some came with a later PostgreSQL than the oldest that works.
_SET: Final = (
    "SELECT set_config(name, %s, true) FROM pg_settings WHERE name = %s",
    "SELECT set_config('lock_timeout', %s, true)",
)


class AuditSession:
    """A connection inside its one transaction."""

    def __init__(self, *, connection: Connection, name: str) -> None:
        self.name = name
        """How messages call the database: host and database, no more."""
        self.sight = Sight()
        self._connection = connection
        self._numbers = count(1)

    @classmethod
    @contextmanager
    def open(cls, dsn: str, *, limits: Limits) -> Generator[Self]:
        """Connect as the auditor's role; nothing but a snapshot is taken there.

        Raises:
            SettingsError: the role may write, or is one that row security doesn't bind.
            StoreForbiddenError: it is refused, or may not read the log.
            StoreUnavailableError: the server can't be had.
        """
        name = check_dsn(dsn, setting="store.reader_dsn")
        session = cls(connection=connect(dsn, limits=limits, store=name), name=name)
        try:
            with session._translated():
                session._begin(limits)
            yield session
        finally:
            with suppress(psycopg.Error):
                session._connection.close()

    def rows(self, table: str, statement: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        """Iterate over what a statement finds in a table, in memory that doesn't grow.

        Raises:
            StoreForbiddenError: the role may not read it, or row security hides rows of it.
            StoreCorruptError: it is damaged, missing, or not as this release makes it.
            StoreUnavailableError: the connection was lost, or a standby needs the room.
        """
        self._permit(table)
        name = f"audit_{next(self._numbers)}"
        self._safely(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}", values)
        fetch, rows = f"FETCH FORWARD {ROWS_AT_ONCE} FROM {name}", [None] * ROWS_AT_ONCE
        try:
            while len(rows) == ROWS_AT_ONCE:
                rows = self._safely(fetch)
                yield from rows
        finally:
            if self._is_sound():
                self._connection.execute(f"CLOSE {name}", prepare=False)

    def look_up(self, table: str, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the few rows that a statement finds in a table; raises as :meth:`rows`."""
        self._permit(table)
        return self._safely(statement, values)

    def ask(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return what the server's own tables say; raises as :meth:`rows`."""
        return self._safely(statement, values)

    # -- Inside ------------------------------------------------------------

    def _begin(self, limits: Limits) -> None:
        connection = self._connection
        connection.execute(*BEGIN_SNAPSHOT)
        for name, value in _SETTINGS.items():
            connection.execute(_SET[0], (value, name))
        connection.execute(_SET[1], (f"{int(limits.lock_timeout_s * 1000)}ms",))
        self.sight = look(connection)
        if not self.sight.has_schema:
            return  # Which is for :mod:`.audit_faults` to say.
        start_check.check_reader(connection)
        if LOG in self.sight.tables:
            self._permit(LOG)

    def _permit(self, table: str) -> None:
        seen = self.sight.tables.get(table)
        if seen is not None and not seen.is_whole:
            why = "hides rows of it" if seen.is_readable else "doesn't let this role read it"
            raise StoreForbiddenError(store=self.name, problem=f"table {table}: {why}")

    def _safely(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._translated():
            try:
                with self._connection.pipeline():  # One round trip.
                    self._connection.execute("SAVEPOINT audit", prepare=False)
                    cursor = self._connection.execute(
                        statement, values, binary=True, prepare=None if values else False
                    )
                    self._connection.execute("RELEASE SAVEPOINT audit", prepare=False)
                return cursor.fetchall() if cursor.description else []
            except BaseException:
                self._recover()
                raise

    def _recover(self) -> None:
        """Go back to before the statement that failed."""
        connection = self._connection
        if connection.closed:
            return
        if connection.info.transaction_status is TransactionStatus.INERROR:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK TO SAVEPOINT audit", prepare=False)
                connection.execute("RELEASE SAVEPOINT audit", prepare=False)

    def _is_sound(self) -> bool:
        connection = self._connection
        return (
            not connection.closed
            and connection.info.transaction_status is TransactionStatus.INTRANS
        )

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            with translating(store=self.name):
                yield
        except StoreUnavailableError as error:
            if isinstance(error.__cause__, states.SerializationFailure):
                # The one way in which a transaction that only reads can fail so.
                raise StoreUnavailableError(
                    store=self.name,
                    problem="a standby gave way to its primary; raise max_standby_streaming_delay "
                    "there, or set hot_standby_feedback",
                ) from error.__cause__
            raise
        except (psycopg.Error, UnicodeDecodeError) as error:
            # Every statement here is right for a schema of ours: what fails comes of this one.
            problem = "holds what no release of ours has written"
            raise StoreCorruptError(store=self.name, problem=problem) from error
