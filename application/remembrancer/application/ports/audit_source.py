"""A store as an auditor reads it: raw rows, nothing interpreted, nothing written.

What lies there may be damaged, half restored, or of a newer release, and is handed on as it is: a
value of the wrong type is the reader's to judge.  Rows are plain tuples, because there are
millions of them.  Every method reads one and the same state of the store, and leaves no trace:
no file appears, no byte and no time of change is another afterwards.

Where a part can't be read (any more), iterating raises: ``StoreCorruptError`` for damage,
``StoreForbiddenError`` where this reader has no right to it, another ``StoreError`` otherwise.
What was yielded before stands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

RawEvent = tuple[int, bytes, int, str, bytes, bytes, bytes]
"""Position, stream id (16 bytes), version, topic, state, predecessor's hash, own hash."""

RawOriginal = tuple[bytes, int, str, str, str, str, str, int, int | None, bytes, bytes, str]
"""Entry id (16 bytes), version, tenant, owner, scope, kind, sensitivity, recorded at and
superseded at (microseconds since 1970, UTC; None while current), digest (32 bytes), salt, text."""

RawText = tuple[bytes, int, str, str, str, bytes, str, str]
"""What a pack shows of a version: entry id (16 bytes), version, scope, kind, sensitivity, digest
(32 bytes), metadata (a JSON object), text."""

RawErased = tuple[bytes, str]
"""Entry id (16 bytes) and tenant of an entry that the vault knows as erased."""

RawReceipt = tuple[
    str, str, bytes, str, str, str, str, int, int, int, int, int | None, str | None, int, int, int
]
"""Tenant, owner, reservation id (16 bytes), kind, request digest, state, day, admitted at and
expires at (microseconds), reserved, charged, usage tokens, unknown reason, version of the
admission in the ledger's stream, ceilings in quanta and in requests."""

RawPlace = tuple[bytes, str | None, str | None]
"""What stands in an index: id (16 bytes), and the tenant and owner it is labelled with."""

RawVector = tuple[int, bytes, str | None, str | None]
"""Number of the vector index, then as :data:`RawPlace`."""

RawSession = tuple[bytes, str, str, str]
"""Selection id (16 bytes), tenant, owner and session of a key in the session vault."""

RawSnapshot = tuple[str, str, int, bytes]
"""Tenant, owner, version and state of the copy of a ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogExtent:
    """How far the log goes."""

    events: int
    first: int
    """The smallest position; 0 where there is none."""
    last: int
    given: int | None
    """The last position that was ever given out, where the store counts that by itself."""
    gapless: bool
    """Whether positions have no holes in this kind of store, so that a hole shows a removal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFault:
    """Something that the store itself shows to be wrong, before any event is looked at."""

    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSpace:
    """One vector index: its number, and its embedding tuple's digest (None: unreadable)."""

    number: int
    tuple_digest: str | None


class AuditSource(Protocol):
    """Read-only access to all that an audit needs."""

    @property
    def name(self) -> str:
        """What the store is called in messages: a path, or a server without its password."""
        ...

    def faults(self) -> Iterator[StoreFault]:
        """Check the store's own structure: damage, another program's or a newer schema."""
        ...

    def extent(self) -> LogExtent:
        """Count the log."""
        ...

    def events(self, *, after_position: int = 0) -> Iterator[RawEvent]:
        """Iterate over all events by position."""
        ...

    def streams(self) -> Iterator[RawEvent]:
        """Iterate over all events by (stream id, version); stream ids compare as bytes."""
        ...

    def stream(self, stream_id: UUID) -> Iterator[RawEvent]:
        """Iterate over one stream by version."""
        ...

    def originals(self) -> Iterator[RawOriginal]:
        """Iterate over every kept version of every entry, in any order."""
        ...

    def texts(self, wanted: Sequence[tuple[bytes, int]]) -> list[RawText]:
        """Return these versions of entries (id as 16 bytes), in any order, less those not kept."""
        ...

    def erased(self) -> Iterator[RawErased]:
        """Iterate over the entries that the vault knows as erased."""
        ...

    def receipts(self) -> Iterator[RawReceipt]:
        """Iterate over the projection of all ledgers."""
        ...

    def snapshots(self) -> Iterator[RawSnapshot]:
        """Iterate over the copies of ledgers."""
        ...

    def snapshot(self, tenant: str, owner: str) -> RawSnapshot | None:
        """Return the copy of one owner's ledger, if there is one."""
        ...

    def words(self) -> Iterator[RawPlace]:
        """Iterate over what stands in the sparse index."""
        ...

    def spaces(self) -> Iterator[RawSpace]:
        """Iterate over the vector indexes."""
        ...

    def vectors(self) -> Iterator[RawVector]:
        """Iterate over what stands in the vector indexes that are kept in this store."""
        ...

    def kept(self, index_ids: Sequence[bytes]) -> frozenset[bytes]:
        """Return those ids under which a kept version of an entry stands in an index.

        A current version stands under its entry's id, a superseded one under its
        :func:`~remembrancer.domain.identity.version_id`.
        """
        ...

    def sessions(self) -> Iterator[RawSession]:
        """Iterate over the selections whose key the session vault keeps."""
        ...

    def session(self, selection_id: bytes, *, number: int) -> tuple[bytes | None, bytes | None]:
        """Return a selection's key and the host's items of a pack; None for what was erased."""
        ...

    def items(
        self, wanted: Sequence[tuple[bytes, int]]
    ) -> dict[tuple[bytes, int], tuple[bytes | None, bytes | None]]:
        """Return :meth:`session` of each of these selections' packs; a store may ask for all."""
        return {one: self.session(one[0], number=one[1]) for one in wanted}

    def changed_meanwhile(self) -> bool:
        """Say whether what was read may not have been one state: somebody wrote without a lock.

        Asked at the end.
        """
        ...
