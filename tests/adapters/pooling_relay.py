"""A pooler as PgBouncer is in transaction mode: each transaction gets another of few sessions.

Only what matters here: it speaks the protocol far enough to know where a transaction ends, answers
a client itself, and hands the session that was idle longest to whoever begins.
"""

import os
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn
from tests.adapters.server_address import at_once, through_port

_ENCRYPTION = {80877103, 80877104}
_CHUNK = 65536
_TOLD = (
    "server_version", "server_encoding", "client_encoding", "is_superuser", "DateStyle",
    "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
)  # fmt: skip
"""What a server says of itself, and a client wants to know."""


@dataclass
class _Session:
    """One with the server."""

    socket: socket.socket
    greeting: bytes
    opened_by: PGconn
    """It has logged in, and would close the session if it were collected."""


@dataclass
class _Frames:
    """Finds the messages in a stream: each is a letter, a length, and as many bytes."""

    rest: bytes = b""

    def of(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self.rest += data
        while len(self.rest) >= 5:
            (length,) = struct.unpack(">I", self.rest[1:5])
            if len(self.rest) <= length:
                return
            yield self.rest[:1], self.rest[5 : length + 1]
            self.rest = self.rest[length + 1 :]


@dataclass
class PoolingRelay:
    """Listens on :attr:`port`; close it at the end."""

    dsn: str
    """Of the server, with a password that all its roles have, or none."""
    sessions: int = 3
    handed_out: list[int] = field(default_factory=list)
    """Which session each transaction got, as the file number of its socket."""

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listening.getsockname()[1]
        self._idle: dict[bytes, deque[_Session]] = {}
        self._free = threading.Condition()
        self._open = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, dsn: str) -> str:
        """Return a connection string that leads through here."""
        return through_port(dsn, self._port)

    def close(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(at_once(client))
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, ConnectionError):
            wanted = _greeting_of(client)
            session = self._take(wanted)
            self._give(wanted, session)
            client.sendall(
                _message(b"R", struct.pack(">I", 0))
                + session.greeting
                + _message(b"K", struct.pack(">II", 1, 1))  # Nobody's number.
                + _message(b"Z", b"I")
            )
            self._pass_on(client, wanted)
        client.close()

    def _pass_on(self, client: socket.socket, wanted: bytes) -> None:
        session: _Session | None = None
        asked, answered = _Frames(), _Frames()
        pending = 0
        try:
            while True:
                sources = [client] if session is None else [client, session.socket]
                ready, _, _ = select.select(sources, [], [])
                if session is not None and session.socket in ready:
                    data = session.socket.recv(_CHUNK)
                    states = [body for kind, body in answered.of(data) if kind == b"Z"]
                    pending -= len(states)
                    client.sendall(data)
                    if pending == 0 and states and states[-1] == b"I":
                        self._give(wanted, session)
                        session = None
                    continue
                data = client.recv(_CHUNK)
                kinds = [kind for kind, _ in asked.of(data)]
                if not data or b"X" in kinds:
                    return
                session = session or self._take(wanted)
                pending += kinds.count(b"S") + kinds.count(b"Q")
                session.socket.sendall(data)
        finally:
            if session is not None:  # The client has left in the middle.
                session.socket.close()
                self._give(wanted, self._opened(wanted))

    def _take(self, wanted: bytes) -> _Session:
        with self._free:
            if wanted not in self._idle:
                self._idle[wanted] = deque(self._opened(wanted) for _ in range(self.sessions))
            self._free.wait_for(lambda: self._idle[wanted], timeout=30)
            session = self._idle[wanted].popleft()
        self.handed_out.append(session.socket.fileno())
        return session

    def _give(self, wanted: bytes, session: _Session) -> None:
        with self._free:
            self._idle[wanted].append(session)
            self._free.notify()

    def _opened(self, wanted: bytes) -> _Session:
        words = wanted.split(b"\0")
        said = dict(zip(words[::2], words[1::2], strict=False))
        dsn = make_conninfo(
            self.dsn,
            user=said[b"user"].decode(),
            dbname=said[b"database"].decode(),
            sslmode="disable",
            gssencmode="disable",
        )
        opened = pq.PGconn.connect(dsn.encode())
        if opened.status != pq.ConnStatus.OK:
            raise ConnectionError(opened.error_message)
        server = socket.socket(fileno=os.dup(opened.socket))
        server.setblocking(True)
        self._open.append(server)
        told = [(name.encode(), opened.parameter_status(name.encode())) for name in _TOLD]
        greeting = [_message(b"S", b"%s\0%s\0" % one) for one in told if one[1] is not None]
        return _Session(server, b"".join(greeting), opened)


def _greeting_of(client: socket.socket) -> bytes:
    """Return what a client says of itself, user and database among it."""
    while True:
        length, code = struct.unpack(">II", _exactly(client, 8))
        body = _exactly(client, length - 8)
        if code not in _ENCRYPTION:
            return body
        client.sendall(b"N")


def _exactly(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body
