"""How a transaction begins, ends, and what is answered when its end isn't confirmed."""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TypeVar

import psycopg
from psycopg.errors import InvalidSqlStatementName
from psycopg.pq import TransactionStatus

from remembrancer.adapters.postgres.connection import Connection, connect, is_pipelined, together
from remembrancer.adapters.postgres.exchange import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    Call,
    exchange,
    row_of,
)
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.outcome import Outcome, find_out
from remembrancer.adapters.postgres.pool import Pool
from remembrancer.adapters.postgres.positions import last_settled
from remembrancer.adapters.postgres.scope import Scope
from remembrancer.adapters.postgres.statements import (
    BEGIN_READ,
    BEGIN_SNAPSHOT,
    BEGIN_WRITE,
    IDENTITY,
    WRITE_ALONE,
    WRITERS,
    Statement,
    acting_for,
    owners_lock,
    settings,
)
from remembrancer.adapters.postgres.thread_state import (
    Identity,
    LaterRow,
    ThreadState,
    Transaction,
)
from remembrancer.adapters.postgres.translation import raise_translated, translating
from remembrancer.domain.errors import OutcomeUnknownError, StoreUnavailableError

_BACK = Call("", "ROLLBACK TO SAVEPOINT attempt")
_RELEASE = Call("", "RELEASE SAVEPOINT attempt")
_IN_ONE_STATE = "SET TRANSACTION SNAPSHOT '{}'"

_Result = TypeVar("_Result")


class Sessions:
    """The connections of one process, and the transactions in them."""

    def __init__(self, dsn: str, *, reader_dsn: str | None, limits: Limits, store: str) -> None:
        """Open none yet."""
        self._limits = limits
        self._store = store
        self._prepares = limits.keeps_sessions
        self._connect = partial(connect, dsn, limits=limits, store=store)
        self.app = self._pool(self._connect)
        """Under row security."""
        self.reader: Pool | None = None
        """With the right to see all rows and to write none."""
        if reader_dsn is not None:
            self.reader = self._pool(partial(connect, reader_dsn, limits=limits, store=store))

    def close(self) -> None:
        """Close all that nobody uses; the others with the end of their transactions."""
        for pool in self._pools():
            pool.close()

    def leave(self) -> None:
        """In a forked child: forget the parent's."""
        for pool in self._pools():
            pool.leave()

    # -- Writing -----------------------------------------------------------

    @contextmanager
    def begun(
        self,
        mine: ThreadState,
        *,
        scope: Scope | None,
        alone: bool = False,
        pipelined: bool = False,
    ) -> Generator[Transaction]:
        """Begin this thread's write transaction; commit it at the end, or roll it back.

        Args:
            mine: the thread.
            scope: for whom it writes.
            alone: whether no other write transaction may be open meanwhile.
            pipelined: whether its statements are sent together, up to the commit.
        """
        if mine.app is not None or mine.snapshots:
            raise RuntimeError("a write transaction can't begin inside a snapshot")
        with translating(store=self._store):
            statements = self._opening(scope, alone=alone)
            tx = self._begin(
                self.app, statements, scope=scope, pipelined=pipelined, asking=IDENTITY
            )
            mine.app = tx
            try:
                yield tx
                self._commit(tx)
            except BaseException:
                _roll_back(tx)
                raise
            finally:
                mine.app = None
                tx.pool.give_back(tx.connection)
        for call in tx.calls:
            call()

    def run(
        self,
        mine: ThreadState,
        work: Callable[[Transaction], _Result],
        *,
        scope: Scope,
        opening: Call,
    ) -> _Result:
        """Run ``work`` in a write transaction of this thread that begins by one call.

        No block: nested in others it cost a twentieth of a decision (adr/0026).

        Args:
            mine: the thread.
            work: what it leaves in the transaction's ``closing`` is sent with the commit.
            scope: for whom it writes.
            opening: does what the usual statements do, all but BEGIN; its answer begins with the
                transaction's identity.
        """
        if mine.app is not None or mine.snapshots:
            raise RuntimeError("a write transaction can't begin inside a snapshot")
        try:
            tx = self._begin_by(self.app, partial(self._called, opening=opening, scope=scope))
            mine.app = tx
            try:
                result = work(tx)
                self._commit(tx)
            except BaseException:
                _roll_back(tx)
                raise
            finally:
                mine.app = None
                tx.pool.give_back(tx.connection)
        except psycopg.Error as error:
            raise_translated(error, store=self._store)
            raise
        for call in tx.calls:
            call()
        return result

    def _opening(self, scope: Scope | None, *, alone: bool) -> list[Statement]:
        statements = [
            BEGIN_WRITE,
            settings(self._limits),
            acting_for(scope),
            IDENTITY,
            WRITE_ALONE if alone else WRITERS,
        ]
        if scope is not None and scope.owner is not None:
            statements += owners_lock(scope.tenant, scope.owner)
        return statements

    def _begin(
        self,
        pool: Pool,
        statements: Sequence[Statement],
        *,
        scope: Scope | None,
        pipelined: bool = False,
        asking: Statement | None = None,
    ) -> Transaction:
        began = partial(
            _began,
            pool=pool,
            statements=statements,
            scope=scope,
            pipelined=pipelined,
            asking=asking,
        )
        return self._begin_by(pool, began)

    @staticmethod
    def _begin_by(pool: Pool, began: Callable[[Connection], Transaction]) -> Transaction:
        connection = pool.take()
        try:
            try:
                return began(connection)
            except psycopg.OperationalError:
                if not connection.closed:
                    raise
            # It had died while it lay in the pool, and nothing has happened yet.
            pool.drop(connection)
            connection = pool.fresh()
            return began(connection)
        except BaseException:
            pool.drop(connection)
            pool.give_back(connection)
            raise

    def _called(self, connection: Connection, *, opening: Call, scope: Scope) -> Transaction:
        """Begin by one call that does what the usual opening does."""
        try:
            answer = exchange(connection, [BEGIN, opening], prepare=self._prepares)
        except InvalidSqlStatementName:
            exchange(connection, [ROLLBACK], prepare=False)
            answer = exchange(connection, [BEGIN, opening], prepare=self._prepares)
        row = row_of(connection, answer)
        return Transaction(
            connection,
            self.app,
            writing=True,
            scope=scope,
            locked={scope.owned},
            identity=lambda: Identity(*row[:3]),
            opening_row=lambda: row,
        )

    def _commit(self, tx: Transaction) -> None:
        if tx.doom is not None:
            raise tx.doom
        identity = tx.identity() if tx.identity else None
        try:
            if tx.closing is None:
                status = tx.connection.execute("COMMIT")
                tx.pipeline.close()
                said = status.statusmessage
            else:
                last = exchange(tx.connection, [*tx.closing, COMMIT], prepare=self._prepares)
                said = (last.command_status or b"").decode()
        except psycopg.Error as error:
            if identity is None or not tx.connection.closed:
                raise
            self._answer_for(identity, error)
            return
        if said != "COMMIT":
            # PostgreSQL answers ROLLBACK, and no error, after a statement that has failed.
            raise RuntimeError("a statement had failed in the transaction, and that was passed by")

    def _answer_for(self, identity: Identity, error: psycopg.Error) -> None:
        """Return if a commit whose answer was lost stands."""
        outcome = find_out(identity, connect=self._connect, wait_s=self._limits.outcome_wait_s)
        if outcome is Outcome.UNKNOWN:
            raise OutcomeUnknownError(store=self._store) from error
        if outcome is Outcome.ABORTED:
            problem = "the connection was lost before the commit"
            raise StoreUnavailableError(store=self._store, problem=problem) from error

    # -- Reading -----------------------------------------------------------

    @contextmanager
    def reading(
        self, mine: ThreadState, *, scope: Scope | None, everybody: bool = False
    ) -> Generator[Transaction]:
        """Join this thread's transaction of that role, or begin one that only reads.

        A transaction in which a statement has failed answers nothing any more: who wants to know
        why it failed reads beside it.
        """
        open_one = mine.reader if everybody else mine.app
        with translating(store=self._store):
            if open_one is not None and not _has_failed(open_one):
                yield open_one
                return
            pool = self._reader_pool() if everybody else self.app
            tx = self._begin_reading(mine, pool, scope)
            if open_one is None:
                _set(mine, tx, everybody=everybody)
                if mine.snapshots:
                    yield tx
                    return
            try:
                yield tx
            except BaseException:
                _roll_back(tx)
                raise
            else:
                tx.connection.execute("COMMIT")
            finally:
                if open_one is None:
                    _set(mine, None, everybody=everybody)
                tx.pool.give_back(tx.connection)

    def end_snapshots(self, mine: ThreadState) -> None:
        """End what this thread has read in."""
        for everybody, tx in ((False, mine.app), (True, mine.reader)):
            if tx is not None and not tx.writing:
                _set(mine, None, everybody=everybody)
                _roll_back(tx)  # There is nothing to commit.
                tx.pool.give_back(tx.connection)

    def _begin_reading(self, mine: ThreadState, pool: Pool, scope: Scope | None) -> Transaction:
        statements = [settings(self._limits), acting_for(scope)]
        if not mine.snapshots:
            return self._begin(pool, [BEGIN_READ, *statements], scope=scope)
        first = mine.reader if mine.app is None else mine.app
        statements = [BEGIN_SNAPSHOT, *statements]
        if first is not None and not first.writing:
            # Two roles, one state.
            row = first.connection.execute("SELECT pg_export_snapshot()").fetchone()
            statements.insert(1, (_IN_ONE_STATE.format(row[0] if row else ""), ()))
            tx = self._begin(pool, statements, scope=scope)
            tx.bound = first.bound
            return tx
        with pool.lent() as connection:
            bound = last_settled(connection)  # Before the snapshot: positions.py says why.
        tx = self._begin(pool, statements, scope=scope)
        tx.bound = bound
        return tx

    # -- Inside ------------------------------------------------------------

    def _reader_pool(self) -> Pool:
        if self.reader is None:
            raise RuntimeError("nobody may act for everybody without the auditor's role")
        return self.reader

    def _pools(self) -> list[Pool]:
        return [self.app] if self.reader is None else [self.app, self.reader]

    def _pool(self, opening: Callable[[], Connection]) -> Pool:
        return Pool(
            connect=opening,
            size=self._limits.connections,
            wait_s=self._limits.connection_wait_s,
            store=self._store,
        )


def undo_part(connection: Connection) -> None:
    """Undo what was done since SAVEPOINT attempt, and forget that."""
    if is_pipelined(connection):
        with together(connection):
            connection.execute(_BACK.statement)
            connection.execute(_RELEASE.statement)
    else:  # As in `_roll_back`.
        exchange(connection, [_BACK, _RELEASE], prepare=False)


def send(tx: Transaction, statements: Sequence[Statement]) -> None:
    """Send statements whose answers nobody needs, in one round trip."""
    if not statements:
        return
    with together(tx.connection):
        for statement, values in statements:
            tx.connection.execute(statement, values)


def _began(
    connection: Connection,
    *,
    pool: Pool,
    statements: Sequence[Statement],
    scope: Scope | None,
    pipelined: bool,
    asking: Statement | None,
) -> Transaction:
    tx = Transaction(connection, pool, scope=scope, writing=asking is not None)
    if scope is not None and scope.owner is not None and tx.writing:
        tx.locked.add(scope.owned)
    with ExitStack() as pipeline:
        pipeline.enter_context(together(connection))
        for one in statements:
            cursor = connection.execute(*one, binary=one is asking)
            if one is asking:
                tx.opening_row = LaterRow(cursor)
                tx.identity = tx.opening_row.identity
        if pipelined:
            tx.pipeline = pipeline.pop_all()
    if not pipelined and tx.identity is not None:
        tx.identity()
    return tx


def _roll_back(tx: Transaction) -> None:
    with suppress(psycopg.Error):
        tx.pipeline.close()
    if not tx.connection.closed:
        with suppress(psycopg.Error):
            # Not by the driver, which would let the session forget all that is prepared.
            exchange(tx.connection, [ROLLBACK], prepare=False)


def _has_failed(tx: Transaction) -> bool:
    return tx.connection.info.transaction_status is TransactionStatus.INERROR


def _set(mine: ThreadState, tx: Transaction | None, *, everybody: bool) -> None:
    if everybody:
        mine.reader = tx
    else:
        mine.app = tx
