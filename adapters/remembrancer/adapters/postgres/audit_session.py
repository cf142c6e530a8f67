"""A database as an auditor's role reads it: one snapshot, a little at a time, whatever lies there.

One transaction (REPEATABLE READ, READ ONLY) from opening to closing, so that everything is read in
one state, also on a standby.  The server keeps what is read until it is fetched, a batch at a
time.  A statement may fail, because a table is damaged or may not be read, and leaves the others
readable: all stand behind a savepoint, which is moved behind each cursor that is opened.
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

_SAVEPOINT: Final = "SAVEPOINT audit"

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
        name = self._open_cursor(statement, values)
        fetch = f"FETCH FORWARD {ROWS_AT_ONCE} FROM {name}"
        is_more = True
        try:
            while is_more:
                with self._safely():
                    rows = self._connection.execute(fetch, binary=True, prepare=False).fetchall()
                is_more = len(rows) == ROWS_AT_ONCE
                yield from rows
        finally:
            if self._is_sound():
                self._connection.execute(f"CLOSE {name}", prepare=False)

    def look_up(self, table: str, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the few rows that a statement finds in a table; raises as :meth:`rows`."""
        self._permit(table)
        return self.ask(statement, values)

    def ask(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return what the server's own tables say; raises as :meth:`rows`."""
        with self._safely():
            return self._connection.execute(statement, values, binary=True).fetchall()

    # -- Inside ------------------------------------------------------------

    def _begin(self, limits: Limits) -> None:
        connection = self._connection
        connection.execute(*BEGIN_SNAPSHOT)
        for name, value in _SETTINGS.items():
            connection.execute(_SET[0], (value, name))
        connection.execute(_SET[1], (f"{int(limits.lock_timeout_s * 1000)}ms",))
        connection.execute(_SAVEPOINT)
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

    def _open_cursor(self, statement: str, values: tuple[Any, ...]) -> str:
        """Let the server begin to read; return the name under which it can be fetched."""
        name = f"audit_{next(self._numbers)}"
        declare = f"DECLARE {name} NO SCROLL CURSOR FOR {statement}"
        with self._safely(), self._connection.pipeline():  # One round trip.
            self._connection.execute(declare, values, prepare=False)
            # A cursor ends with what it was opened behind, so that must be the transaction.
            self._connection.execute(f"RELEASE {_SAVEPOINT}", prepare=False)
            self._connection.execute(_SAVEPOINT, prepare=False)
        return name

    @contextmanager
    def _safely(self) -> Generator[None]:
        """Let a statement fail without those behind it."""
        with self._translated():
            try:
                yield
            except BaseException:
                connection = self._connection
                status = None if connection.closed else connection.info.transaction_status
                if status is TransactionStatus.INERROR:
                    with suppress(psycopg.Error):
                        connection.execute(f"ROLLBACK TO {_SAVEPOINT}", prepare=False)
                raise

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
