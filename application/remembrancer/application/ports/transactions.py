"""What belongs together is committed together."""

from contextlib import AbstractContextManager
from typing import Protocol


class Transactions(Protocol):
    """Write transactions over every port of one store.

    Inside ``with transactions.begin():`` all writes that the same thread makes through ports of
    this store are committed together when the block ends, durably (they survive a power cut once
    ``__exit__`` has returned), or not at all when it raises.  Reads inside see the writes.
    Blocks nest: an inner one joins the outer.  A port's single write outside any block is a
    transaction of its own.  One transaction writes at a time; others wait, in threads and in
    processes.

    Raises:
        StoreUnavailableError: from ``begin``, when the wait is over; nothing was changed.
        StoreFullError: no room; nothing was changed.
        StoreReadOnlyError: from ``begin``.
    """

    def begin(self) -> AbstractContextManager[None]:
        """Begin, or join, a write transaction of this thread."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Begin, or join, a read transaction: all reads inside see one state of the store."""
        ...

    def scrub(self) -> bool:
        """Remove what erased rows left behind in the store's files.

        Returns:
            True once no byte of a committed erasure can be found in them; False while another
            reader's snapshot still needs the old pages: the erasure is *pending*, call again.
        """
        ...
