"""A TCP relay before a server that loses what is sent, or the answer to a COMMIT, when told to."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

from tests.adapters.server_address import ServerAddress, address_of, at_once, through_port

_CHUNK = 65536


class Cut(Enum):
    """What the next COMMIT meets."""

    COMMIT = "commit"
    """It is lost, and the server learns that the client is gone."""
    ANSWER = "answer"
    """The server commits, and nobody hears of it."""
    SILENCE = "silence"
    """It is lost, and the server doesn't learn that the client is gone."""


class CuttingRelay:
    """Passes everything on, until it cuts."""

    def __init__(self, server: ServerAddress) -> None:
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listening.getsockname()[1]
        self.next_cut: Cut | None = None
        self.stays_cut = False
        """Whether nobody gets through any more once it has cut."""
        self.cut_after: int | None = None
        """How many times more a client is heard before it loses its connection, once."""
        self.heard = ""
        """Who has said something, in order: ``c`` for the client, ``s`` for the server."""
        self._has_cut = False
        self._open = list[socket.socket]()
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, dsn: str) -> str:
        """Return a connection string that leads through here."""
        return through_port(dsn, self._port)

    def close(self) -> None:
        for one in [self._listening, *self._open]:
            _end(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._has_cut and self.stays_cut:
                    _end(client)
                    continue
                server = self._server.connected()
                self._open += [at_once(client), server]
                for call in (self._to_server, self._to_client):
                    threading.Thread(target=call, args=[client, server], daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        silent = False
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                self.heard += "c"
                if self._counts_out():
                    break
                if b"COMMIT\0" in data and self.next_cut in {Cut.COMMIT, Cut.SILENCE}:
                    silent, self.next_cut, self._has_cut = self.next_cut is Cut.SILENCE, None, True
                    break
                server.sendall(data)
        _end(client)
        if not silent:
            _end(server)

    def _counts_out(self) -> bool:
        if self.cut_after is None:
            return False
        self.cut_after -= 1
        if self.cut_after >= 0:
            return False
        self.cut_after = None
        return True

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                self.heard += "s"
                if b"COMMIT\0" in data and self.next_cut is Cut.ANSWER:
                    self.next_cut, self._has_cut = None, True
                    break
                client.sendall(data)
        _end(client)


@contextmanager
def relay_before(dsn: str) -> Iterator[CuttingRelay]:
    """Run a relay before the server that a connection string leads to."""
    relay = CuttingRelay(address_of(dsn))
    try:
        yield relay
    finally:
        relay.close()


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
