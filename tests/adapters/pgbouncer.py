"""PgBouncer itself, where it is installed, in transaction mode before the tests' server."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.adapters.postgres_server import APPLICATION, AUDITOR, OWNER, PASSWORD, unprivileged
from tests.adapters.server_address import address_of, through_port

_SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {here}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
"""


@dataclass(frozen=True, slots=True)
class PgBouncer:
    """One that runs, with few sessions for each role."""

    port: int

    def through(self, dsn: str) -> str:
        """Return a connection string that leads through it."""
        return through_port(dsn, self.port)


def program() -> str | None:
    """Return where PgBouncer is, or None."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def bouncing(dsn: str) -> Generator[PgBouncer]:
    """Run PgBouncer before the server that a connection string leads to."""
    found = program()
    assert found is not None
    server = address_of(dsn)
    folder = Path(tempfile.mkdtemp(prefix="remembrancer-pgbouncer-"))
    users, settings = folder / "users", folder / "pgbouncer.ini"
    users.write_text("".join(f'"{role}" "{PASSWORD}"\n' for role in (OWNER, APPLICATION, AUDITOR)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        bouncer = PgBouncer(free.getsockname()[1])
    settings.write_text(
        _SETTINGS.format(host=server.host, port=server.port, here=bouncer.port, users=users)
    )
    user = unprivileged()  # Nor does PgBouncer run as root.
    for one in (folder, users, settings) if user else ():
        os.chown(one, user["user"], user["group"])
    process = subprocess.Popen([found, "-q", settings], stderr=subprocess.DEVNULL, **user)
    try:
        _wait_until_ready(process, bouncer.through(dsn))
        yield bouncer
    finally:
        process.kill()
        process.wait(30)
        shutil.rmtree(folder)


def _wait_until_ready(process: subprocess.Popen[bytes], dsn: str) -> None:
    for _ in range(300):
        with suppress(psycopg.OperationalError), psycopg.connect(dsn):
            return
        with suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"PgBouncer ended with {process.wait(0.1)}")
    raise RuntimeError("PgBouncer takes no connection")
