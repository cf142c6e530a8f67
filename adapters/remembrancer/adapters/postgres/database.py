"""One PostgreSQL database as threads and forked children may share it.

A thread's block takes a connection out of the pool and gives it back at its end: nothing stays
with a session.  Who may see and take what is said to the server with each transaction
(:mod:`.scope`); what can't be said is refused here, before anything is sent.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Self, TypeVar

from typing_extensions import override

from remembrancer.adapters.postgres import forking, start_check
from remembrancer.adapters.postgres.acting import Acting
from remembrancer.adapters.postgres.bell import Bell
from remembrancer.adapters.postgres.connection import Connection, check_dsn
from remembrancer.adapters.postgres.exchange import Call
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.positions import LOCK_LAST, last_settled
from remembrancer.adapters.postgres.process_state import ProcessState
from remembrancer.adapters.postgres.scope import Scope, within
from remembrancer.adapters.postgres.sessions import Sessions, send, undo_part
from remembrancer.adapters.postgres.statements import Statement, acting_for, owners_lock
from remembrancer.adapters.postgres.thread_state import (
    Everybody,
    ThreadState,
    Transaction,
)
from remembrancer.adapters.postgres.translation import translating
from remembrancer.domain.errors import StoreClosedError, StoreUnavailableError

_Result = TypeVar("_Result")


class Database(Acting):
    """The database, and this thread's transactions in it."""

    def __init__(self, dsn: str, *, reader_dsn: str | None, limits: Limits) -> None:
        """Touch nothing yet; :meth:`open` sees to everything."""
        self.name = check_dsn(dsn, setting="store.dsn")
        """How messages call it: host and database, no more."""
        if reader_dsn is not None:
            check_dsn(reader_dsn, setting="store.reader_dsn")
        self.limits = limits
        self._dsn = dsn
        self._reader_dsn = reader_dsn
        self._closed = False
        self._here = self._in_this_process()

    def __repr__(self) -> str:
        return f"Database({self.name})"

    @classmethod
    @contextmanager
    def open(
        cls, dsn: str, *, reader_dsn: str | None = None, limits: Limits | None = None
    ) -> Generator[Self]:
        """Open a database whose schema is in place; close the connections on the way out.

        Args:
            dsn: as the application's role, which row security binds.
            reader_dsn: as the auditor's role, which reads all tenants' rows and writes nothing;
                without it :meth:`over_all_tenants` is refused.
            limits: of time and connections.

        Raises:
            SettingsError: one of them isn't a connection string; the role isn't bound by row
                security or may do too much; the schema is missing or behind.
            StoreNewerError: a newer release has migrated it.
            StoreUnavailableError: the server can't be had.
            StoreForbiddenError: it refuses role or password.
        """
        database = cls(dsn, reader_dsn=reader_dsn, limits=limits or Limits())
        try:
            database.check()
            forking.watch(database)
            yield database
        finally:
            database.close()

    def check(self) -> None:
        """See that both roles and the schema are fit; raises as :meth:`open`."""
        with translating(store=self.name):
            with self._sessions.app.lent() as connection:
                start_check.check_application(connection, store=self.name)
            if self._sessions.reader is not None:
                with self._sessions.reader.lent() as connection:
                    start_check.check_reader(connection)

    @property
    def bell(self) -> Bell:
        """What is rung when the log has grown."""
        return self._here.bell

    # -- Writing -----------------------------------------------------------

    @property
    def in_write(self) -> bool:
        """Whether this thread is inside a write transaction."""
        return self._mine().writing

    @contextmanager
    def begin(self, *, alone: bool = False) -> Generator[Connection]:
        """Begin a write transaction, or join this thread's.

        It is committed, durably, when the outermost block ends, and rolled back when that raises.
        A joined block that raises dooms the whole: even if the error is caught further out,
        the outermost block rolls back at its end and raises that first error again.

        Its connection is for tables that belong to nobody.  Those with rows of tenants are
        written through :meth:`write`, in here or outside.

        Raises:
            StoreUnavailableError: it could not be had in time; nothing was changed.
            OutcomeUnknownError: the connection was lost while it committed, and what became of
                it could not be found out.
            StoreReadOnlyError: a standby.
            RuntimeError: a bug of ours: inside a snapshot, or ``alone`` inside another.
        """
        mine = self._mine()
        if not mine.writing:
            begun = self._sessions.begun(mine, scope=mine.block, alone=alone)
            with self._unforked(begun) as connection:
                yield connection
            return
        if alone:
            raise RuntimeError("a write transaction that others have begun isn't alone")
        with self._joined(mine, mine.block) as connection:
            yield connection

    @contextmanager
    def write(
        self,
        *,
        tenant: str | None = None,
        owner: str | None = None,
        pipelined: bool = False,
    ) -> Generator[Connection]:
        """Begin a write transaction for an owner, or join this thread's.

        Args:
            tenant: whom the call names itself; the innermost ``acting_for`` needs no repeating.
            owner: as ``tenant``.
            pipelined: if it begins here, send its statements together, up to the commit: results
                come when they are fetched, errors too.

        Raises:
            InvalidInputError: nobody is named, or another than is acted for.
            StoreError: as :meth:`begin`.
        """
        mine = self._mine()
        scope = within(mine.block, tenant=tenant, owner=owner)
        _ = scope.owned
        if mine.writing:
            with self._joined(mine, scope) as connection:
                yield connection
            return
        begun = self._sessions.begun(mine, scope=scope, pipelined=pipelined)
        with self._unforked(begun) as connection:
            yield connection

    def write_by(
        self, opening: Call, work: Callable[[Transaction], _Result], *, tenant: str, owner: str
    ) -> _Result:
        """Run ``work`` in a write transaction of its own, which takes two round trips.

        Args:
            opening: does what the usual statements behind BEGIN do and more; the transaction's
                ``opening_row`` is its answer, which begins as that of ``IDENTITY``.
            work: gets the transaction, and leaves in ``closing`` what goes with the commit.
            tenant: for whom it writes; the call names both.
            owner: as ``tenant``.

        Raises:
            InvalidInputError: another is acted for.
            StoreError: as :meth:`begin`.
            RuntimeError: a bug of ours: inside another transaction, or a snapshot.
        """
        mine, here = self._mine(), self._here

        def unforked(tx: Transaction) -> _Result:
            result = work(tx)
            if not here.is_here:
                raise self._forked()
            return result

        scope = within(mine.block, tenant=tenant, owner=owner)
        return self._sessions.run(mine, unforked, scope=scope, opening=opening)

    @property
    def owned(self) -> tuple[str, str]:
        """Tenant and owner for whom the innermost :meth:`write` of this thread writes."""
        scope = self._writing().scope
        assert scope is not None  # noqa: S101 - `write` has told row security
        return scope.owned

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Run a part of this thread's write transaction that may fail alone.

        If it raises, what it did is undone, and the transaction goes on without it.

        Raises:
            RuntimeError: a bug of ours: no write transaction is open.
        """
        tx = self._writing()
        doom, calls, scope, locked, held = (
            tx.doom,
            len(tx.calls),
            tx.scope,
            set(tx.locked),
            tx.holds_position,
        )
        with translating(store=self.name):
            tx.connection.execute("SAVEPOINT attempt")
            try:
                yield
                tx.connection.execute("RELEASE SAVEPOINT attempt")
            except BaseException:
                # Its settings and its locks go with the part.
                undo_part(tx.connection)
                tx.doom, tx.scope, tx.locked, tx.holds_position = doom, scope, locked, held
                del tx.calls[calls:]
                raise

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call back once this thread's open write transaction has been committed, if it is.

        Raises:
            RuntimeError: a bug of ours: no write transaction is open.
        """
        self._writing().calls.append(call)

    def lock_position(self) -> None:
        """Before this thread's write transaction takes positions of the log; see positions.py."""
        tx = self._writing()
        if not tx.holds_position:
            tx.connection.execute(LOCK_LAST)
            tx.holds_position = True
        self.after_commit(self.bell.ring)

    # -- Reading -----------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Let all reads of this thread inside see one state; a write transaction sees its own."""
        mine = self._mine()
        mine.snapshots += 1
        try:
            yield
        finally:
            mine.snapshots -= 1
            if not mine.snapshots:
                self._sessions.end_snapshots(mine)

    @contextmanager
    def read(
        self, *, tenant: str | None = None, owner: str | None = None
    ) -> Generator[Connection]:
        """Read rows of whom this thread acts for, or whom the call names.

        Joins the transaction or snapshot that the thread is in; outside of them each statement
        sees what was committed when it began.

        Raises:
            InvalidInputError: nobody is named, or another than is acted for.
            StoreUnavailableError: it can't be had.
        """
        mine = self._mine()
        if mine.for_everybody:
            with self._sessions.reading(mine, scope=None, everybody=True) as tx:
                yield tx.connection
            return
        scope = within(mine.block, tenant=tenant, owner=owner)
        with self._sessions.reading(mine, scope=scope) as tx:
            _prepare(tx, scope)
            yield tx.connection

    @contextmanager
    def read_common(self) -> Generator[Connection]:
        """Read tables that belong to nobody."""
        mine = self._mine()
        with self._sessions.reading(mine, scope=mine.block) as tx:
            yield tx.connection

    def last_settled(self, connection: Connection) -> int:
        """Return the last position of the log that this thread may be given; see positions.py.

        Args:
            connection: that it reads on; rows must be read after this call, on the same.
        """
        mine = self._mine()
        for tx in (mine.app, mine.reader):
            if tx is not None and tx.connection is connection and tx.bound is not None:
                return tx.bound
        return last_settled(connection)

    # -- Closing and forking -----------------------------------------------

    def close(self) -> None:
        """Close all connections; one that is in use when its transaction ends."""
        self._closed = True
        forking.unwatch(self)
        self._here.close()

    def leave_parents_connections(self) -> None:
        """After a fork, in the child: begin with connections of its own."""
        self._here.leave()
        self._here = self._in_this_process()

    # -- Inside ------------------------------------------------------------

    def _in_this_process(self) -> ProcessState:
        return ProcessState(
            self._dsn, reader_dsn=self._reader_dsn, limits=self.limits, store=self.name
        )

    @property
    @override
    def _blocks(self) -> list[Scope | Everybody]:
        return self._mine().blocks

    @property
    @override
    def reads_over_all_tenants(self) -> bool:
        return self._reader_dsn is not None

    @property
    def _sessions(self) -> Sessions:
        return self._here.sessions

    def _mine(self) -> ThreadState:
        if not self._here.is_here:
            self.leave_parents_connections()
        if self._closed:
            raise StoreClosedError
        return self._here.thread

    def _writing(self) -> Transaction:
        tx = self._mine().app
        if tx is None or not tx.writing:
            raise RuntimeError("no write transaction is open in this thread")
        return tx

    @contextmanager
    def _unforked(self, begun: AbstractContextManager[Transaction]) -> Generator[Connection]:
        here = self._here
        with begun as tx:
            yield tx.connection
            if not here.is_here:
                raise self._forked()

    def _forked(self) -> StoreUnavailableError:
        problem = "this process was forked inside a transaction"
        return StoreUnavailableError(store=self.name, problem=problem)

    @contextmanager
    def _joined(self, mine: ThreadState, scope: Scope | None) -> Generator[Connection]:
        tx = mine.app
        assert tx is not None  # noqa: S101 - the callers have looked
        try:
            with translating(store=self.name):
                if scope is not None:
                    _prepare(tx, scope)
                yield tx.connection
        except BaseException as error:
            tx.doom = tx.doom or error
            raise


def _prepare(tx: Transaction, scope: Scope) -> None:
    """Tell row security for whom what follows is, and have the owner to oneself if writing."""
    statements = list[Statement]()
    if tx.scope != scope:
        statements.append(acting_for(scope))
    if tx.writing and scope.owner is not None and scope.owned not in tx.locked:
        statements += owners_lock(*scope.owned)
        tx.locked.add(scope.owned)
    tx.scope = scope
    send(tx, statements)
