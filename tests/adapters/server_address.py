"""Where a PostgreSQL server is, for relays that stand before it, wherever that is."""

import socket
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Of a machine, or of a socket in a folder of this one."""

    host: str
    port: int

    def connected(self) -> socket.socket:
        """Open a socket to it."""
        if not self.host.startswith("/"):
            return at_once(socket.create_connection((self.host, self.port)))
        one = socket.socket(socket.AF_UNIX)
        one.connect(f"{self.host}/.s.PGSQL.{self.port}")
        return one


def at_once(one: socket.socket) -> socket.socket:
    """Let a relay's socket send small pieces as they come, not once the last was confirmed."""
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def address_of(dsn: str) -> ServerAddress:
    """Return where a connection string leads, as libpq finds it."""
    with psycopg.connect(dsn) as connection:
        info = connection.info
        return ServerAddress(info.hostaddr or info.host, info.port)


def through_port(dsn: str, port: int) -> str:
    """Return the connection string that leads through a relay at a port of this machine.

    In the clear: the relays read along.
    """
    here = "127.0.0.1"
    return make_conninfo(
        dsn, host=here, hostaddr=here, port=port, sslmode="disable", gssencmode="disable"
    )
