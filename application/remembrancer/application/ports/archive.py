"""What a store has recorded, as it is recorded: read by whose it is, and taken into another store.

Reading serves looking back (timelines, what became of a reservation) and exports; taking in serves
the restoring of an export into an empty store.  Indexes aren't part of it: they are rebuilt.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.identity import EntryId

if TYPE_CHECKING:
    from remembrancer.domain.reservation_event import LedgerEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which part of a store: where all that is given holds; nothing given is everything."""

    tenant: str | None = None
    owner: str | None = None
    """Goes with a tenant."""
    session: str | None = None
    """All stages of a session; goes with a tenant."""
    reservation_id: UUID | None = None
    """The events that name it, in the ledger and in cache contexts; goes with an owner."""
    stream_id: UUID | None = None


WHOLE = Part()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedEvent:
    """An event byte for byte as it is recorded, and whose it is."""

    position: int
    """In the log that it was read from."""
    tenant: str
    owner: str
    """As the first event of its stream says."""
    stream_id: UUID
    version: int
    topic: str
    state: bytes
    predecessor: bytes
    own: bytes
    """Hashes as :mod:`remembrancer.domain.hash_chain` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedSession:
    """What the session vault keeps of one selection."""

    selection_id: UUID
    tenant: str
    owner: str
    session: str
    key: bytes = field(repr=False)
    items: tuple[tuple[int, bytes], ...] = field(repr=False)
    """By the number of the pack, rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much there is of a part."""

    events: int
    originals: int
    sessions: int


class Archive(Protocol):
    """Reads a part of a store, and writes into one that is empty.

    What iterates is consumed inside ``Transactions.snapshot()`` or ``begin()``, and gives one
    state of the store, a piece at a time.  Originals and sessions can be asked for by tenant and
    owner only.
    """

    def counts(self, part: Part) -> Counts:
        """Count a part by tenant and owner, or the whole."""
        ...

    def events(
        self,
        part: Part,
        *,
        after_position: int = 0,
        limit: int | None = None,
        newest: bool = False,
    ) -> Iterator[ArchivedEvent]:
        """Iterate over events in position order, each checked against its hash and predecessor.

        With ``newest``, of all that would come only the last ``limit``.  What a durable store
        needs for an owner, a session, a reservation or a stream grows with that, not with the
        log.

        Raises:
            MalformedRecordError: an event isn't what was recorded, doesn't follow its
                predecessor, or its stream doesn't say whose it is.
        """
        ...

    def originals(self, part: Part) -> Iterator[Original]:
        """Iterate over the kept versions of entries, those of one entry by rising version."""
        ...

    def sessions(self, part: Part) -> Iterator[ArchivedSession]:
        """Iterate over what the session vault keeps."""
        ...

    def is_empty(self) -> bool:
        """Say whether nothing was ever recorded or kept in the store, over all tenants."""
        ...

    def take_events(self, events: Sequence[ArchivedEvent]) -> None:
        """Append events of one owner as they are, in this order, at new positions; all or none.

        Raises:
            MalformedRecordError: one doesn't follow what its stream holds, by version or hash.
        """
        ...

    def take_erased(self, entries: Sequence[EntryId], *, tenant: str, owner: str) -> None:
        """Have the vault know entries as erased whose originals it never had."""
        ...

    def take_receipts(self, facts: "Sequence[LedgerEvent]") -> None:
        """Let the receipts of ledgers follow events that were taken in, in order.

        Raises:
            MalformedRecordError: a reservation was admitted before; roll back.
        """
        ...
