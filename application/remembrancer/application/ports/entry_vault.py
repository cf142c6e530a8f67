"""Where originals are kept, beside the log."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from remembrancer.domain.entry import EntryHeader
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

_LABELS = len(EntryHeader._fields)


class Original(NamedTuple):
    """One version of one entry.  ``repr`` shows nothing private.

    It begins with the fields of :class:`EntryHeader`.  A named tuple, since ten are made for each
    pack that is replayed: a frozen class takes three times as long (adr/0006).
    """

    tenant: str
    owner: str
    entry_id: EntryId
    version: int
    """From 1, without gaps."""
    scope: str
    kind: str
    sensitivity: Sensitivity
    text: str
    salt: bytes
    """32 random bytes of this version's own; keys :attr:`digest`."""
    digest: str
    """See :func:`remembrancer.domain.original_digest.original_digest`."""
    tokens: int
    """What :attr:`token_counter` counted for ``text`` when it was written."""
    token_counter: str
    subjects: tuple[str, ...]
    metadata: Mapping[str, str]
    recorded_at: datetime
    """When this version became current."""
    reason: str = ""
    """Why the version was written, in the words of whoever corrected it."""
    superseded_at: datetime | None = None
    """When the next version did; None while this one is current."""

    @property
    def header(self) -> EntryHeader:
        """The labels that permission is decided by."""
        return tuple.__new__(EntryHeader, self[:_LABELS])  # As _make, in two thirds of the time.

    def __repr__(self) -> str:
        at = f"recorded_at={self.recorded_at!r}, superseded_at={self.superseded_at!r}"
        return f"Original({self.header!r}, digest={self.digest!r}, {at})"


class EntryVault(Protocol):
    """Originals by entry id and version, until erased.

    Look-ups of many answer in one go; what isn't there is left out of the answer, not an error.
    """

    def keep(self, originals: Sequence[Original]) -> None:
        """Keep new versions, each current from its ``recorded_at`` on.

        The version before, if any, becomes superseded at that time.  All or none.

        Raises:
            StaleStreamError: a version doesn't follow the one that is kept; nothing was changed.
        """
        ...

    def current(self, entry_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        """Return the current version of each entry that has one."""
        ...

    def versions(
        self, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], Original]:
        """Return these versions, current or not."""
        ...

    def in_order(self, wanted: Sequence[tuple[EntryId, int]]) -> list[Original | None]:
        """Return the same one for one: None stands in the place of what isn't there.

        For who quotes them all, and would only put them back in this order.
        """
        found = self.versions(wanted)
        return [found.get(key) for key in wanted]

    def indexed(self, index_ids: Sequence[EntryId]) -> dict[EntryId, Original]:
        """Resolve ids as they stand in an index.

        An index holds a current version under the entry's id and a superseded one under
        :func:`remembrancer.domain.identity.version_id`.  A superseded version's id only resolves
        while it is superseded.
        """
        ...

    def history(self, entry_id: EntryId) -> list[Original]:
        """Return all kept versions of an entry, oldest first."""
        ...

    def of_kind(
        self, *, tenant: str, owners: tuple[str, ...] | None, kind: str, scopes: tuple[str, ...]
    ) -> list[Original]:
        """Return current entries of ``kind`` whose scope is one of ``scopes``, oldest first.

        Ordered by (``recorded_at``, entry id).  ``owners`` None means the whole tenant.
        """
        ...

    def scopes(self, *, tenant: str, owners: tuple[str, ...] | None) -> list[str]:
        """Return the distinct scopes of all kept versions, sorted."""
        ...

    def entries_of(self, *, tenant: str, owner: str) -> list[EntryId]:
        """Return the ids of an owner's kept entries, sorted."""
        ...

    def count(self) -> int:
        """Return how many entries are kept, over all tenants."""
        ...

    def erase(self, entry_id: EntryId) -> list[int]:
        """Destroy text, salt, subjects, metadata and labels of all versions of an entry.

        Bytes are overwritten, not only unlinked; :meth:`Transactions.scrub` then clears what
        journals still hold.  Returns the versions that were there; none is not an error.
        What stays is that the entry was erased, and its tenant.
        """
        ...

    def tenant_of_erased(self, entry_id: EntryId) -> str | None:
        """Return the tenant of an erased entry; None for one that is kept or was never here."""
        ...
