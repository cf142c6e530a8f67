"""What belongs together is committed together."""

from contextlib import AbstractContextManager
from typing import Protocol


class Transactions(Protocol):
    """Write transactions over every port of one store.

    Inside ``with transactions.begin():`` all writes that the same thread makes through ports of
    this store are committed together when the block ends, durably (they survive a power cut once
    ``__exit__`` has returned), or not at all when it raises.  Reads inside see the writes.
    Blocks nest: an inner one joins the outer.  A port's single write outside any block is a
    transaction of its own.  At most one transaction writes for an owner at a time, in threads and
    in processes; a store may let one write at all.

    Where a store has row security, whose rows are seen and taken is said by :meth:`acting_for`,
    or by the tenant that a call names itself; a call by id alone, outside such a block, is then
    refused with ``InvalidInputError``.

    Raises:
        StoreUnavailableError: from ``begin``, when the wait is over; nothing was changed.
        StoreFullError: no room; nothing was changed.
        StoreReadOnlyError: from ``begin``.
    """

    def begin(self, *, alone: bool = False) -> AbstractContextManager[object]:
        """Begin, or join, a write transaction of this thread.

        ``alone``: no other writes entries meanwhile, of no owner; only where it begins.
        """
        ...

    def snapshot(self) -> AbstractContextManager[object]:
        """Begin, or join, a read transaction: all reads inside see one state of the store."""
        ...

    def acting_for(self, tenant: str, owner: str | None = None) -> AbstractContextManager[None]:
        """Say for whom this thread reads and writes inside.

        Reading sees this owner's rows, or all of the tenant's where ``owner`` is None; new rows
        need an owner.  Blocks nest, the inner one counts; a write transaction that acts for
        several owners names them in sorted order, so that two of them never wait for each other.
        """
        ...

    def over_all_tenants(self) -> AbstractContextManager[None]:
        """Let this thread's reads inside see every tenant's rows: for upkeep, never for a host.

        Raises:
            SettingsError: this store was opened without the right to.
        """
        ...

    def scrub(self) -> bool:
        """Remove what erased rows left behind in the store's files.

        Returns:
            True once no byte of a committed erasure can be found in them; False while another
            reader's snapshot still needs the old pages: the erasure is *pending*, call again.
        """
        ...
