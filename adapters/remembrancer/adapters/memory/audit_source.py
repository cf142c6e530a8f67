"""The in-process store as an auditor reads it.

Looks into its sister adapters' dictionaries: what they answer through their ports is checked and
interpreted, and an audit wants it as it is.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.memory.entry_vault import MemoryEntryVault
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.session_vault import MemorySessionVault
from remembrancer.adapters.memory.sparse_index import MemorySparseIndex
from remembrancer.adapters.memory.vector_indexes import MemoryVectorIndexes
from remembrancer.application.ports.audit_source import (
    AuditSource,
    LogExtent,
    RawErased,
    RawEvent,
    RawOriginal,
    RawPlace,
    RawReceipt,
    RawSession,
    RawSnapshot,
    RawSpace,
    RawText,
    RawVector,
    StoreFault,
)
from remembrancer.domain.identity import EntryId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class MemoryAuditSource(AuditSource):
    """Reads one state if nobody writes meanwhile; hold a snapshot where somebody may."""

    def __init__(
        self,
        *,
        recorder: MemoryRecorder,
        vault: MemoryEntryVault,
        sessions: MemorySessionVault,
        sparse: MemorySparseIndex,
        indexes: MemoryVectorIndexes,
        ledger: MemoryLedgerRepository,
    ) -> None:
        self._events = recorder._rows  # noqa: SLF001 - of this package
        self._vault = vault
        self._originals = vault._kept  # noqa: SLF001 - of this package
        self._erased = vault._erased  # noqa: SLF001 - of this package
        self._sessions = sessions
        self._secrets = sessions._kept  # noqa: SLF001 - of this package
        self._sparse = sparse._indexed  # noqa: SLF001 - of this package
        self._indexes = indexes
        self._receipts = ledger._receipts  # noqa: SLF001 - of this package

    @property
    @override
    def name(self) -> str:
        return "memory"

    @override
    def faults(self) -> Iterator[StoreFault]:
        return iter(())

    @override
    def extent(self) -> LogExtent:
        count = len(self._events)
        return LogExtent(events=count, first=min(1, count), last=count, given=None, gapless=True)

    @override
    def events(self, *, after_position: int = 0) -> Iterator[RawEvent]:
        for position, row in enumerate(self._events[after_position:], start=after_position + 1):
            link = row.link
            yield (
                *(position, row.stream_id.bytes, link.version, link.topic, link.state),
                *(link.predecessor, link.own),
            )

    @override
    def streams(self) -> Iterator[RawEvent]:
        return iter(sorted(self.events(), key=lambda event: (event[1], event[2], event[0])))

    @override
    def stream(self, stream_id: UUID) -> Iterator[RawEvent]:
        return (event for event in self.streams() if event[1] == stream_id.bytes)

    @override
    def originals(self) -> Iterator[RawOriginal]:
        for versions in self._originals.values():
            for one in versions:
                superseded_at = None
                if one.superseded_at is not None:
                    superseded_at = (one.superseded_at - _EPOCH) // _MICROSECOND
                yield (
                    *(one.entry_id.bytes, one.version, one.tenant, one.owner, one.scope, one.kind),
                    *(one.sensitivity.value, (one.recorded_at - _EPOCH) // _MICROSECOND),
                    *(superseded_at, bytes.fromhex(one.digest), one.salt, one.text),
                )

    @override
    def texts(self, wanted: Sequence[tuple[bytes, int]]) -> list[RawText]:
        asked = [(EntryId(UUID(bytes=entry_id)), version) for entry_id, version in wanted]
        return [
            (
                *(one.entry_id.bytes, one.version, one.scope, one.kind, one.sensitivity.value),
                *(bytes.fromhex(one.digest), json.dumps(dict(one.metadata)), one.text),
            )
            for one in self._vault.versions(asked).values()
        ]

    @override
    def erased(self) -> Iterator[RawErased]:
        return ((entry_id.bytes, tenant) for entry_id, tenant in self._erased.items())

    @override
    def receipts(self) -> Iterator[RawReceipt]:
        for (tenant, owner), receipts in self._receipts.items():
            for receipt in receipts.values():
                one, admission = receipt.reservation, receipt.admission
                yield (
                    *(tenant, owner, one.reservation_id.bytes, one.kind.value),
                    *(one.request_digest, one.state.value, one.day),
                    (one.admitted_at - _EPOCH) // _MICROSECOND,
                    (one.expires_at - _EPOCH) // _MICROSECOND,
                    *(one.reserved_quanta, one.charged_quanta, one.usage_tokens),
                    one.unknown_reason and one.unknown_reason.value,
                    *(admission.originator_version, admission.ceiling_quanta),
                    admission.ceiling_requests,
                )

    @override
    def snapshots(self) -> Iterator[RawSnapshot]:
        return iter(())

    @override
    def snapshot(self, tenant: str, owner: str) -> RawSnapshot | None:
        return None

    @override
    def words(self) -> Iterator[RawPlace]:
        for entry_id, indexed in self._sparse.items():
            metadata = indexed.document.metadata
            yield entry_id.bytes, metadata.get("tenant"), metadata.get("owner")

    @override
    def spaces(self) -> Iterator[RawSpace]:
        for index in self._indexes.all():
            yield RawSpace(number=index.number, tuple_digest=index.embedding_tuple.digest)

    @override
    def vectors(self) -> Iterator[RawVector]:
        for index in self._indexes.all():
            if index.follows:
                continue  # Its vectors are elsewhere.
            stored = self._indexes.store(index)._stored  # noqa: SLF001  # as above
            for entry_id, one in stored.items():
                labels = one.metadata
                yield index.number, entry_id.bytes, labels.get("tenant"), labels.get("owner")

    @override
    def kept(self, index_ids: Sequence[bytes]) -> frozenset[bytes]:
        asked = [EntryId(UUID(bytes=one)) for one in index_ids]
        return frozenset(one.bytes for one in self._vault.indexed(asked))

    @override
    def sessions(self) -> Iterator[RawSession]:
        for selection_id, kept in self._secrets.items():
            yield selection_id.bytes, kept.tenant, kept.owner, kept.session

    @override
    def session(self, selection_id: bytes, *, number: int) -> tuple[bytes | None, bytes | None]:
        selection = UUID(bytes=selection_id)
        return self._sessions.key(selection), self._sessions.items(selection, number=number)

    @override
    def changed_meanwhile(self) -> bool:
        return False
