"""Where streams end, as far as one connection knows for certain.

Each append asks for its stream's head, and each decision whether anybody has added to its ledger.
SQLite tells for next to nothing whether anyone at all has committed since: another connection,
another process, or this one.  While nobody has, what was appended last needs no reading.
"""

HEADS_MAX = 1_024
"""Streams whose head is remembered, some 200 bytes each."""

Head = tuple[int, bytes]
"""Version and hash of a stream's newest event."""


class Heads:
    """One connection's, for use inside its write transactions.

    A transaction that appends with nothing but the recorder may :meth:`vouch` for it; every other
    one makes this forget what it knew.
    """

    __slots__ = ("_by_stream", "_data_version", "_vouched")

    def __init__(self) -> None:
        self._by_stream: dict[bytes, Head] = {}
        self._data_version: int | None = None
        self._vouched = False

    def begin(self, data_version: int) -> None:
        """Take it that a write transaction has begun, at this state of the file."""
        if data_version != self._data_version:
            self._by_stream.clear()
        self._data_version, self._vouched = None, False

    def vouch(self) -> None:
        """Promise that the open transaction adds to no stream but through the recorder."""
        self._vouched = True

    def committed(self, data_version: int) -> None:
        """Take it that the transaction was committed, and made this the state of the file."""
        if self._vouched:
            self._data_version = data_version

    def find(self, stream: bytes) -> Head | None:
        """Return a stream's head, if it is known."""
        return self._by_stream.get(stream)

    def take(self, stream: bytes) -> Head | None:
        """Return a stream's head, if it is known, for the last time before :meth:`keep`."""
        return self._by_stream.pop(stream, None)

    def keep(self, heads: dict[bytes, Head]) -> None:
        """Remember heads that the last transaction has committed."""
        if self._data_version is not None:
            self._by_stream.update(heads)
            while len(self._by_stream) > HEADS_MAX:
                del self._by_stream[next(iter(self._by_stream))]
