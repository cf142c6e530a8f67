"""PostgreSQL as an auditor's role reads it: rows as they lie there (adr/0018)."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.postgres.audit_faults import faults
from remembrancer.adapters.postgres.audit_session import LOG, AuditSession
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.application.audit.natural_key import version_key
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
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import InvalidInputError

# Ids as bytes: a million objects of class UUID take longer than all the rest.
_EVENTS: Final = (
    "SELECT position, uuid_send(originator_id), originator_version, topic, state,"
    " predecessor_hash, event_hash FROM stored_events"
)
_EXTENT: Final = "SELECT count(*), min(position), max(position) FROM stored_events"
_ORIGINALS: Final = (
    "SELECT uuid_send(entry_id), version, tenant, owner, scope, kind, sensitivity, recorded_at,"
    " superseded_at, digest, salt, text FROM originals"
)
_TEXTS: Final = (
    "SELECT uuid_send(entry_id), version, scope, kind, sensitivity, digest, metadata, text"
    " FROM originals WHERE index_id = ANY(%s)"
)
_KEPT: Final = "SELECT uuid_send(index_id) FROM originals WHERE index_id = ANY(%s)"
# Microseconds, because a timestamp would come in whatever zone the session has.
_RECEIPTS: Final = (
    "SELECT tenant, owner, uuid_send(reservation_id), coalesce(kind, 'indexing'), request_digest,"
    " state, day, (extract(epoch FROM admitted_at) * 1000000)::bigint,"
    " (extract(epoch FROM admitted_at) * 1000000)::bigint + lease_s * 1000000::bigint,"
    " reserved_quanta, charged_quanta, usage_tokens, unknown_reason, admitted_version,"
    " ceiling_quanta, ceiling_requests FROM spend_receipts"
)
_SNAPSHOTS: Final = "SELECT tenant, owner, version, state FROM ledger_snapshots"
_WORDS: Final = "SELECT uuid_send(id), tenant, owner FROM sparse_documents"
_SPACES: Final = "SELECT number, embedding_tuple FROM vector_indexes ORDER BY number"
_VECTORS: Final = "SELECT index_number, uuid_send(id), tenant, owner FROM vectors"
_ERASED: Final = "SELECT uuid_send(entry_id), tenant FROM erased_entries"
_SESSIONS: Final = "SELECT uuid_send(selection_id), tenant, owner, session FROM session_keys"
_ITEMS: Final = (
    "SELECT uuid_send(wanted.id), wanted.number, k.key, i.items"
    " FROM unnest(%s::uuid[], %s::bigint[]) AS wanted (id, number)"
    " JOIN session_keys AS k ON k.selection_id = wanted.id"
    " LEFT JOIN session_items AS i ON i.tenant = k.tenant AND i.selection_id = wanted.id"
    " AND i.number = wanted.number"
)


class PostgresAuditSource(AuditSource):
    """Reads in the one snapshot of its session."""

    def __init__(self, *, session: AuditSession) -> None:
        self._session = session

    @classmethod
    @contextmanager
    def open(cls, dsn: str, *, limits: Limits | None = None) -> Generator[Self]:
        """Open a database as the auditor's role; see :meth:`.audit_session.AuditSession.open`."""
        with AuditSession.open(dsn, limits=limits or Limits()) as session:
            yield cls(session=session)

    @property
    @override
    def name(self) -> str:
        return self._session.name

    @override
    def faults(self) -> Iterator[StoreFault]:
        return faults(self._session)

    @override
    def extent(self) -> LogExtent:
        [(events, first, last)] = self._session.look_up(LOG, _EXTENT)
        # What a transaction took and rolled back is a hole that says nothing (adr/0017).
        return LogExtent(
            events=events, first=first or 0, last=last or 0, given=None, gapless=False
        )

    @override
    def events(self, *, after_position: int = 0) -> Iterator[RawEvent]:
        statement = f"{_EVENTS} WHERE position > %s ORDER BY position"
        return self._session.rows(LOG, statement, (after_position,))

    @override
    def streams(self) -> Iterator[RawEvent]:
        # Sorted by the server, on its disk: no index has this order, since keys begin with the
        # tenant.
        return self._session.rows(LOG, f"{_EVENTS} ORDER BY originator_id, originator_version")

    @override
    def stream(self, stream_id: UUID) -> Iterator[RawEvent]:
        statement = f"{_EVENTS} WHERE originator_id = %s ORDER BY originator_version"
        return self._session.rows(LOG, statement, (stream_id,))

    @override
    def originals(self) -> Iterator[RawOriginal]:
        for *labels, text in self._session.rows("originals", _ORIGINALS):
            yield (*labels, _decoded(text))

    @override
    def texts(self, wanted: Sequence[tuple[bytes, int]]) -> list[RawText]:
        # Current versions stand under their entry's id, superseded ones under their own.
        places = [UUID(bytes=place) for key in wanted for place in (key[0], version_key(*key))]
        asked = set(wanted)
        rows = self._session.look_up("originals", _TEXTS, (places,))
        return [(*row[:-1], _decoded(row[-1])) for row in rows if row[:2] in asked]

    @override
    def erased(self) -> Iterator[RawErased]:
        return self._session.rows("erased_entries", _ERASED)

    @override
    def receipts(self) -> Iterator[RawReceipt]:
        return self._session.rows("spend_receipts", _RECEIPTS)

    @override
    def snapshots(self) -> Iterator[RawSnapshot]:
        return self._session.rows("ledger_snapshots", _SNAPSHOTS)

    @override
    def snapshot(self, tenant: str, owner: str) -> RawSnapshot | None:
        statement = f"{_SNAPSHOTS} WHERE tenant = %s AND owner = %s"
        found: list[RawSnapshot] = self._session.look_up(
            "ledger_snapshots", statement, (tenant, owner)
        )
        return found[0] if found else None

    @override
    def words(self) -> Iterator[RawPlace]:
        return self._session.rows("sparse_documents", _WORDS)

    @override
    def spaces(self) -> Iterator[RawSpace]:
        for number, spelt in self._session.rows("vector_indexes", _SPACES):
            try:
                digest = EmbeddingTuple.model_validate_json(spelt).digest
            except (InvalidInputError, ValueError):
                yield RawSpace(number=number, tuple_digest=None)
            else:
                yield RawSpace(number=number, tuple_digest=digest)

    @override
    def vectors(self) -> Iterator[RawVector]:
        return self._session.rows("vectors", _VECTORS)

    @override
    def kept(self, index_ids: Sequence[bytes]) -> frozenset[bytes]:
        ids = [UUID(bytes=one) for one in index_ids]
        return frozenset(one for (one,) in self._session.look_up("originals", _KEPT, (ids,)))

    @override
    def sessions(self) -> Iterator[RawSession]:
        return self._session.rows("session_keys", _SESSIONS)

    @override
    def session(self, selection_id: bytes, *, number: int) -> tuple[bytes | None, bytes | None]:
        one = (selection_id, number)
        return self.items([one])[one]

    @override
    def items(
        self, wanted: Sequence[tuple[bytes, int]]
    ) -> dict[tuple[bytes, int], tuple[bytes | None, bytes | None]]:
        ids = [UUID(bytes=selection_id) for selection_id, _ in wanted]
        numbers = [number for _, number in wanted]
        # Items stay no longer than their key.
        nothing: tuple[bytes | None, bytes | None] = (None, None)
        found = dict.fromkeys(wanted, nothing)
        for *one, key, items in self._session.look_up("session_keys", _ITEMS, (ids, numbers)):
            found[one[0], one[1]] = key, items
        return found

    @override
    def changed_meanwhile(self) -> bool:
        return False  # Nobody changes a snapshot.


def _decoded(text: Any) -> Any:
    """Return a text of ours; what isn't one as it is, for the reader to judge."""
    try:
        return text.decode()
    except (AttributeError, UnicodeDecodeError):
        return text
