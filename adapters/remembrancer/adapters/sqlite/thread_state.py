"""One thread's part in a database: its connection, and the transaction it is in."""

import threading
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import apsw

from remembrancer.adapters.sqlite.files_in_place import FilesInPlace
from remembrancer.adapters.sqlite.heads import Heads

if TYPE_CHECKING:
    from collections.abc import Callable


class ThreadState:
    """One thread's connection and its transaction; dropped, and so closed, with the thread."""

    __slots__ = (
        "__weakref__",
        "calls",
        "connection",
        "doom",
        "files",
        "gate",
        "heads",
        "immutable",
        "inside",
        "joined_read",
        "joined_write",
        "number",
        "writing",
    )

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self.connection = connection
        self.files = FilesInPlace(connection, path)
        self.immutable = bool(connection.open_flags & apsw.SQLITE_OPEN_URI)
        self.inside = False
        """Whether a transaction is open."""
        self.number = 0
        """Of the transaction, counted up with each."""
        self.writing = False
        self.doom: BaseException | None = None
        """The first error of a joined block."""
        self.calls: list[Callable[[], None]] = []
        """What to call after the commit."""
        self.gate = threading.RLock()
        """Held while the thread is inside a transaction, or while it must not begin one."""
        self.heads = Heads()
        self.joined_read = nullcontext(connection)
        """A block inside the transaction."""
        self.joined_write: JoinedWrite | None = None
        """A block inside the write transaction, while there is one."""

    def raise_if_doomed(self) -> None:
        """Raise the first error of a joined block, if there was one."""
        if self.doom is not None:
            raise self.doom


class JoinedWrite:
    """A block inside the thread's write transaction: if it raises, it dooms the whole.

    One for all blocks of a transaction, some five of which make up a write.
    """

    __slots__ = ("_mine", "_number")

    def __init__(self, mine: ThreadState) -> None:
        self._mine = mine
        self._number = mine.number

    def __enter__(self) -> apsw.Connection:
        mine = self._mine
        if mine.number != self._number:
            raise RuntimeError("the transaction of this block is over")
        return mine.connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What was left in the middle, as a generator is, may end when its transaction is over.
        mine = self._mine
        if error is not None and mine.doom is None and mine.number == self._number:
            mine.doom = error
