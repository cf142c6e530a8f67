"""What a session leaves that is content: sealing keys, salts and the host's own items."""

from typing import Protocol
from uuid import UUID


class SessionVault(Protocol):
    """Secrets and items by tenant, session and selection; destroyed by ``erase_session``."""

    def keep_key(
        self, selection_id: UUID, *, tenant: str, owner: str, session: str, key: bytes
    ) -> None:
        """Keep the 32-byte key of one selection's sealed vector and item digests.

        Keeping another key for the same selection replaces it only while no event of the
        selection is committed; callers do both in one transaction.
        """
        ...

    def key(self, selection_id: UUID) -> bytes | None:
        """Return the key, or None once erased."""
        ...

    def keep_items(self, selection_id: UUID, *, number: int, items: bytes) -> None:
        """Keep the host's items of pack ``number``, as canonical JSON.

        Only while the selection's key is there: without it nothing is kept, so that an erased
        session stays erased.  Later items of the same number replace the earlier.
        """
        ...

    def items(self, selection_id: UUID, *, number: int) -> bytes | None:
        """Return the items of a pack, or None once erased."""
        ...

    def keyed_items(self, selection_id: UUID, *, number: int) -> tuple[bytes, bytes] | None:
        """Return the selection's key and the items of a pack; None once one of them is erased.

        An adapter that can give both in one go should.
        """
        key, items = self.key(selection_id), self.items(selection_id, number=number)
        return None if key is None or items is None else (key, items)

    def erase_session(self, *, tenant: str, session: str) -> int:
        """Destroy keys and items of a session's stages; return how many selections had any."""
        ...

    def erase_owner(self, *, tenant: str, owner: str) -> int:
        """Destroy keys and items of an owner's sessions; return how many selections had any."""
        ...
