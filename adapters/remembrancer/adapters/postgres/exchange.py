"""Several statements in one round trip, waited for once.

psycopg's own pipeline waits for the socket at each statement.  For the ledger, which costs nothing
but statements, that was half of a client's time (adr/0026), so here they are handed to libpq
together.  Values go in the binary format, so that none is part of a statement or ends early.
"""

import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from psycopg import abc
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from remembrancer.adapters.postgres.connection import Connection

_BINARY = 1
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BIGINT = struct.Struct("!q")
_NO_SUCH_STATEMENT = b"26000"
_FAILED = frozenset({ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE})


def _unchanged(value: bytes | None) -> bytes | None:
    return value


def _microseconds(value: datetime) -> bytes:
    return _BIGINT.pack((value - _EPOCH) // _MICROSECOND)


_DUMPS: dict[type, Callable[[Any], bytes | None]] = {
    type(None): _unchanged,
    bytes: _unchanged,
    str: str.encode,
    int: _BIGINT.pack,
    UUID: attrgetter("bytes"),
    datetime: _microseconds,
}
"""Binary forms; another type is a mistake, and a KeyError."""


@dataclass(frozen=True, slots=True)
class Call:
    """One statement with its values.

    Numbers are ``bigint``; ``None``, texts, bytes, ids and aware times are what they are; the
    statement says of what types its ``$1`` and so on are, as a function's signature does.
    """

    name: str
    """By which it is prepared; empty for one that costs nothing to parse."""
    statement: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Session:
    """What is remembered of a connection."""

    transformer: abc.Transformer
    """Knows the loaders of the columns that were read before."""
    prepared: set[str] = field(default_factory=set)
    """Names of statements that the server keeps prepared."""


_SESSIONS = WeakKeyDictionary[Connection, _Session]()

BEGIN = Call("", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
COMMIT = Call("", "COMMIT")
ROLLBACK = Call("", "ROLLBACK")


def exchange(connection: Connection, calls: Sequence[Call], *, prepare: bool) -> PGresult:
    """Run statements in one round trip; return the last one's result.

    Args:
        connection: of a pool, outside of a pipeline.
        calls: the statements, in order; those behind one that fails don't run.
        prepare: whether the session keeps them prepared.

    Raises:
        InvalidSqlStatementName: the session has forgotten what was prepared, as psycopg tells it
            to after a rollback; with another transaction it goes on.
        psycopg.Error: of the first that failed.
    """
    pgconn = connection.pgconn
    known = _session(connection).prepared
    pgconn.enter_pipeline_mode()
    try:
        sent = _send_all(pgconn, calls, known=known if prepare else None)
        pgconn.pipeline_sync()
        results = connection.wait(_answers(pgconn))
    except BaseException:
        connection.close()  # Nobody knows what it has run and prepared.
        raise
    with suppress(psycopg.Error):
        pgconn.exit_pipeline_mode()
    for name, result in zip(sent, results, strict=False):
        if name and result.status == ExecStatus.COMMAND_OK:
            known.add(name)
    for result in results:
        if result.status in _FAILED:
            if result.error_field(DiagnosticField.SQLSTATE) == _NO_SUCH_STATEMENT:
                known.clear()
            raise error_from_result(result, encoding=connection.info.encoding)
    if len(results) != len(sent):
        raise psycopg.OperationalError("the connection was lost")
    return results[-1]


def row_of(connection: Connection, result: PGresult) -> tuple[Any, ...]:
    """Return the first row of a result."""
    transformer = _session(connection).transformer
    transformer.set_pgresult(result)
    row = transformer.load_row(0, tuple)
    assert row is not None  # noqa: S101 - the calls that are asked give one
    return row


def _session(connection: Connection) -> _Session:
    found = _SESSIONS.get(connection)
    if found is None:
        # Without the connection, which would be held by what it is the key of.
        found = _SESSIONS[connection] = _Session(Transformer.from_context(None))
    return found


def _send_all(pgconn: PGconn, calls: Sequence[Call], *, known: set[str] | None) -> list[str]:
    """Send calls; return for each answer to come which statement it says is prepared, or none."""
    sent = list[str]()
    for call in calls:
        values = [_DUMPS[type(value)](value) for value in call.values]
        formats = [_BINARY] * len(values)
        if known is None or not call.name:
            statement = call.statement.encode()
            pgconn.send_query_params(statement, values, None, formats, result_format=_BINARY)
        else:
            if call.name not in known and call.name not in sent:
                pgconn.send_prepare(call.name.encode(), call.statement.encode())
                sent.append(call.name)
            pgconn.send_query_prepared(call.name.encode(), values, formats, result_format=_BINARY)
        sent.append("")
    return sent


def _answers(pgconn: PGconn) -> Generator[Wait, Ready | int, list[PGresult]]:
    """Take everything up to the synchronisation."""
    results = list[PGresult]()
    while pgconn.flush():
        ready = yield Wait.RW
        if ready & Ready.R:
            pgconn.consume_input()
    while True:
        while pgconn.is_busy():
            yield Wait.R
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            if pgconn.status == ConnStatus.BAD:
                return results
            continue
        if result.status == ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)
