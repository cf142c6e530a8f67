"""PostgreSQL as an auditor's role reads it."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.adapters.postgres_named import emptied
from tests.adapters.postgres_server import (
    AUDITOR,
    FreshDatabase,
    OwnServer,
    Server,
    embedded_programs,
    server,
    unprivileged,
)
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.audit_source import PostgresAuditSource
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.entry_vault import PostgresEntryVault
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.session_vault import PostgresSessionVault
from remembrancer.adapters.postgres.sparse_index import PostgresSparseIndex
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.adapters.postgres.vector_indexes import PostgresVectorIndexes
from remembrancer.contracts.audit_source import AuditedStore, AuditSourceContract
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.event_log_examples import history
from remembrancer.contracts.originals import MORNING
from remembrancer.domain.errors import (
    StoreCorruptError,
    StoreForbiddenError,
    StoreReadOnlyError,
    StoreUnavailableError,
)


@contextmanager
def _opened(fresh: FreshDatabase, clock: FixedClock) -> Generator[AuditedStore]:
    with Database.open(fresh.app) as database:
        yield AuditedStore(
            transactions=PostgresTransactions(database=database),
            log=RecordedEventLog(recorder=PostgresApplicationRecorder(database=database)),
            vault=PostgresEntryVault(database=database),
            sessions=PostgresSessionVault(database=database),
            sparse=PostgresSparseIndex(database=database),
            indexes=PostgresVectorIndexes(database=database),
            ledger=PostgresLedgerRepository(database=database, mapper=ListedMapper(), clock=clock),
            source=lambda: PostgresAuditSource.open(fresh.auditor),
        )


class TestPostgresAuditSource(AuditSourceContract):
    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[AuditedStore]:
        with emptied() as fresh, _opened(fresh, clock) as store:
            yield store


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    """Give a database of its own, with three events in it."""
    with _filled(server()) as fresh:
        yield fresh


@contextmanager
def _filled(server: Server) -> Generator[FreshDatabase]:
    with server.database() as fresh:
        with _opened(fresh, FixedClock(MORNING)) as store, store.writing():
            store.log.append(history(1, corrections=2))
        yield fresh


def _as_superuser(fresh: FreshDatabase, *statements: str) -> None:
    with psycopg.connect(fresh.superuser) as connection:
        for statement in statements:
            connection.execute(statement)


def test_no_time_limit_of_the_role_ends_an_audit(fresh: FreshDatabase) -> None:
    _as_superuser(
        fresh,
        *(
            f"ALTER ROLE {AUDITOR} IN DATABASE {fresh.name} SET {name} = '500ms'"
            for name in ("statement_timeout", "idle_in_transaction_session_timeout")
        ),
    )

    with PostgresAuditSource.open(fresh.auditor) as source:
        session = source._session
        session.ask("SELECT pg_sleep(0.6)")

        assert session.ask("SHOW idle_in_transaction_session_timeout") == [("0",)]
        assert source.extent().events == 3


def test_it_can_write_nothing(fresh: FreshDatabase) -> None:
    with PostgresAuditSource.open(fresh.auditor) as source:
        session = source._session

        for statement in ("CREATE TEMPORARY TABLE one (id integer)", "DELETE FROM owners"):
            with pytest.raises((StoreForbiddenError, StoreReadOnlyError)):
                session.ask(statement)
        assert session.ask("SHOW transaction_read_only") == [("on",)]


def test_what_cant_be_read_leaves_the_rest_readable(fresh: FreshDatabase) -> None:
    _as_superuser(
        fresh,
        "DROP TABLE remembrancer.spend_receipts",
        "ALTER TABLE remembrancer.originals RENAME COLUMN text TO words",
        "REVOKE SELECT ON remembrancer.sparse_documents FROM remembrancer_auditor",
    )

    with PostgresAuditSource.open(fresh.auditor) as source:
        events = source.streams()
        seen = [next(events)]
        for read, error in (
            (source.receipts, StoreCorruptError),
            (source.originals, StoreCorruptError),
            (lambda: source.texts([(bytes(16), 1)]), StoreCorruptError),
            (source.words, StoreForbiddenError),
        ):
            with pytest.raises(error):
                list(read())
        seen += events

    assert len(seen) == 3


def test_a_connection_that_is_lost_is_an_error_of_ours(fresh: FreshDatabase) -> None:
    with PostgresAuditSource.open(fresh.auditor) as source:
        events = source.events()
        next(events)
        _as_superuser(
            fresh,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
            " AND pid <> pg_backend_pid() AND usename = 'remembrancer_auditor'",
        )

        for read in (source.originals, source.streams, source.faults):
            with pytest.raises(StoreUnavailableError):
                list(read())


def test_damage_on_the_disk_is_told_as_damage(fresh: FreshDatabase) -> None:
    copy = server().named(f"{fresh.name}_copy")
    names = map(sql.Identifier, (copy.name, fresh.name))
    server().run(sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*names))
    with psycopg.connect(copy.superuser) as connection:
        [(path,)] = connection.execute(
            "SELECT pg_relation_filepath('remembrancer.stored_events')"
        ).fetchall()
    with psycopg.connect(fresh.superuser) as connection:
        # By the server, wherever it is, into a file which it has copied but not read yet.
        [(damage,)] = connection.execute(
            "SELECT lo_from_bytea(0, %s)", (b"\xff" * 8192,)
        ).fetchall()
        connection.execute("SELECT lo_export(%s, %s)", (damage, path))

    with PostgresAuditSource.open(copy.auditor) as source:
        with pytest.raises(StoreCorruptError, match="damaged"):
            list(source.streams())

        assert list(source.words()) == []
    server().drop(copy)


# -- A standby -----------------------------------------------------------------


@pytest.fixture
def standby() -> Iterator[str]:
    """Give a connection string of the auditor's at a replica, made of a server of our own."""
    primary = server()
    own = primary if isinstance(primary, OwnServer) else OwnServer()
    with _filled(own) as fresh, _replica(fresh) as dsn:
        yield dsn
    if own is not primary:
        own.stop()


@contextmanager
def _replica(fresh: FreshDatabase) -> Generator[str]:
    programs, user = embedded_programs(), unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="remembrancer-standby-"))
    if user:
        os.chown(folder, user["user"], user["group"])
    primary = conninfo_to_dict(fresh.superuser)
    subprocess.run(
        [programs / "pg_basebackup", "-D", folder / "data", "-R", "-c", "fast", "--no-sync",
         "-h", str(primary["host"]), "-p", str(primary["port"]), "-U", str(primary["user"])],
        check=True, cwd=folder, capture_output=True, **user,
    )  # fmt: skip
    process = subprocess.Popen(
        [programs / "postgres", "-D", folder / "data", "-cport=5432", "-clisten_addresses=",
         "-cmax_connections=200", f"-cunix_socket_directories={folder}"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user,
    )  # fmt: skip
    try:
        ready: list[str | Path] = [
            programs / "pg_isready",
            "-q",
            "-t",
            "30",
            "-h",
            folder,
            "-p",
            "5432",
        ]
        while process.poll() is None and subprocess.run(ready, check=False).returncode:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        yield make_conninfo(fresh.auditor, host=str(folder), port=5432)
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_standby_is_read_as_its_primary(standby: str) -> None:
    with PostgresAuditSource.open(standby) as source:
        session = source._session

        assert session.ask("SELECT pg_is_in_recovery()") == [(True,)]
        assert (list(source.faults()), len(list(source.streams()))) == ([], 3)
