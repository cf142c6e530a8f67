"""The SQLite file as an auditor reads it: rows as they lie there."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite import schema
from remembrancer.adapters.sqlite.audit_file import AuditFile, open_for_audit
from remembrancer.adapters.sqlite.audit_remnants import remnants
from remembrancer.adapters.sqlite.audit_schema import schema_differences
from remembrancer.adapters.sqlite.translation import translating
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
from remembrancer.domain.errors import InvalidInputError, StoreCorruptError

_EVENTS: Final = (
    "SELECT notification_id, originator_id, originator_version, topic, state, predecessor_hash,"
    " event_hash FROM stored_events"
)
# Joined with itself, so that what stands in the table is compared with where its index has it:
# SQLite would otherwise take id and version from the index alone.
_STREAMS: Final = (
    "SELECT row.notification_id, row.originator_id, row.originator_version, row.topic, row.state,"
    " row.predecessor_hash, row.event_hash FROM stored_events AS place"
    " CROSS JOIN stored_events AS row ON row.notification_id = place.notification_id"
    " ORDER BY place.originator_id, place.originator_version"
)
_EXTENT: Final = (
    "SELECT count(*), min(notification_id), max(notification_id) FROM stored_events NOT INDEXED"
)
_ORIGINALS: Final = (
    "SELECT entry_id, version, tenant, owner, scope, kind, sensitivity, recorded_at,"
    " nullif(superseded_at, 9223372036854775807), digest, salt, text FROM original"
    " LEFT JOIN owned_scope ON owned_scope.number = original.owned_scope"
    " WHERE original.index_id IS NOT NULL"
)
# What is looked up comes first, and isn't sorted: with IN it would be.
_TEXTS: Final = (
    "SELECT entry_id, version, scope, kind, sensitivity, digest, metadata, text"
    " FROM carray(?) AS wanted CROSS JOIN original ON original.index_id = wanted.value"
    " CROSS JOIN owned_scope ON owned_scope.number = original.owned_scope"
)
_KEPT: Final = "SELECT index_id FROM original WHERE index_id IN (SELECT value FROM carray(?))"
_RECEIPTS: Final = (
    "SELECT tenant, owner, reservation_id, kind, request_digest, state, day, admitted_at,"
    " expires_at, reserved_quanta, charged_quanta, usage_tokens, unknown_reason,"
    " admitted_version, ceiling_quanta, ceiling_requests FROM spend_receipts"
)
_SNAPSHOTS: Final = "SELECT tenant, owner, version, state FROM ledger_snapshots"
_WORDS: Final = (
    "SELECT sparse_document.id, sparse_owner.tenant, sparse_owner.owner FROM sparse_document"
    " LEFT JOIN sparse_label ON sparse_label.number = sparse_document.label"
    " LEFT JOIN sparse_owner ON sparse_owner.number = sparse_label.owner_number"
)
_SPACES: Final = "SELECT number, embedding_tuple, place FROM vector_index ORDER BY number"
_VECTORS: Final = (
    "SELECT {n}, key, json_extract(metadata, '$.tenant'), json_extract(metadata, '$.owner')"
    " FROM vector_row_{n} WHERE gone IS NULL"
)
_SESSIONS: Final = (
    "SELECT selection_id, tenant, owner, session FROM session_key WHERE selection_id IS NOT NULL"
)
_ITEMS: Final = (
    "SELECT wanted.value, key, session_items.number, items FROM carray(?) AS wanted"
    " LEFT JOIN session_key ON session_key.selection_id = wanted.value"
    " LEFT JOIN session_items ON session_items.selection_id = wanted.value"
)

_ROWS_AT_ONCE: Final = 128
_TABLES: Final = (
    *("stored_events", "original", "owned_scope", "erased_entry", "spend_receipts"),
    *("ledger_snapshots", "session_key", "session_items", "vector_index", "sparse_document"),
    *("sparse_label", "sparse_owner"),
)
"""What every file of ours has, and an audit reads."""


class SqliteAuditSource(AuditSource):
    """Reads through a connection that changes nothing."""

    def __init__(self, *, file: AuditFile) -> None:
        self._file = file
        self._connection = file.connection

    @classmethod
    @contextmanager
    def open(
        cls, path: Path, *, busy_timeout_s: float = 5.0, is_ours: bool = False
    ) -> Generator[Self]:
        """Open ``path`` and close it on the way out; see :func:`.audit_file.open_for_audit`."""
        with open_for_audit(path, busy_timeout_s=busy_timeout_s, is_ours=is_ours) as file:
            yield cls(file=file)

    @property
    @override
    def name(self) -> str:
        return str(self._file.path)

    @override
    def faults(self) -> Iterator[StoreFault]:
        with self._reading():
            yield from self._schema_faults()
            for table in _TABLES:
                if not self._connection.table_exists("main", table):
                    yield StoreFault(expected=f"table {table}", found="none")
            yield from remnants(self._connection)
            # The other tables are read whole in any case, and compared with the log.
            for (said,) in self._connection.execute("PRAGMA quick_check('stored_events')"):
                if said != "ok":
                    yield StoreFault(expected="the log as SQLite left it", found=said)

    @override
    def extent(self) -> LogExtent:
        with self._reading():
            [(events, first, last)] = self._connection.execute(_EXTENT)
            given: int | None = self._connection.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'stored_events'"
            ).get
        return LogExtent(
            events=events, first=first or 0, last=last or 0, given=given, gapless=True
        )

    @override
    def events(self, *, after_position: int = 0) -> Iterator[RawEvent]:
        return self._rows(
            f"{_EVENTS} WHERE notification_id > ? ORDER BY notification_id", (after_position,)
        )

    @override
    def streams(self) -> Iterator[RawEvent]:
        return self._rows(_STREAMS)

    @override
    def stream(self, stream_id: UUID) -> Iterator[RawEvent]:
        return self._rows(
            f"{_EVENTS} WHERE originator_id = ? ORDER BY originator_version", (stream_id.bytes,)
        )

    @override
    def originals(self) -> Iterator[RawOriginal]:
        return self._rows(_ORIGINALS)

    @override
    def texts(self, wanted: Sequence[tuple[bytes, int]]) -> list[RawText]:
        # Current versions stand under their entry's id; only for others one has to be computed.
        found = self._texts_at([entry_id for entry_id, _ in wanted])
        older = [key for key in wanted if key not in found]
        found |= self._texts_at([version_key(*key) for key in older])
        return [found[key] for key in dict.fromkeys(wanted) if key in found]

    @override
    def erased(self) -> Iterator[RawErased]:
        return self._rows("SELECT entry_id, tenant FROM erased_entry")

    @override
    def receipts(self) -> Iterator[RawReceipt]:
        return self._rows(_RECEIPTS)

    @override
    def snapshots(self) -> Iterator[RawSnapshot]:
        return self._rows(_SNAPSHOTS)

    @override
    def snapshot(self, tenant: str, owner: str) -> RawSnapshot | None:
        return next(
            self._rows(f"{_SNAPSHOTS} WHERE tenant = ? AND owner = ?", (tenant, owner)), None
        )

    @override
    def words(self) -> Iterator[RawPlace]:
        return self._rows(_WORDS)

    @override
    def spaces(self) -> Iterator[RawSpace]:
        for number, spelt, _ in self._rows(_SPACES):
            try:
                digest = EmbeddingTuple.model_validate_json(spelt).digest
            except (InvalidInputError, ValueError):
                yield RawSpace(number=number, tuple_digest=None)
            else:
                yield RawSpace(number=number, tuple_digest=digest)

    @override
    def vectors(self) -> Iterator[RawVector]:
        for number, _, place in list(self._rows(_SPACES)):
            if place == "local":
                yield from self._rows(_VECTORS.format(n=int(number)))

    @override
    def kept(self, index_ids: Sequence[bytes]) -> frozenset[bytes]:
        if not index_ids:
            return frozenset()  # carray takes no empty array.
        rows: Iterator[tuple[bytes]] = self._rows(_KEPT, (apsw.carray(tuple(index_ids)),))
        return frozenset(index_id for (index_id,) in rows)

    @override
    def sessions(self) -> Iterator[RawSession]:
        return self._rows(_SESSIONS)

    @override
    def session(self, selection_id: bytes, *, number: int) -> tuple[bytes | None, bytes | None]:
        one = (selection_id, number)
        return self.items([one])[one]

    @override
    def items(
        self, wanted: Sequence[tuple[bytes, int]]
    ) -> dict[tuple[bytes, int], tuple[bytes | None, bytes | None]]:
        if not wanted:
            return {}  # carray takes no empty array.
        selections = (apsw.carray(tuple({selection_id for selection_id, _ in wanted})),)
        keys: dict[bytes, bytes | None] = {}
        items: dict[tuple[bytes, int], bytes] = {}
        for selection_id, key, number, given in self._rows(_ITEMS, selections):
            keys[selection_id] = key
            items[selection_id, number] = given
        return {one: (keys.get(one[0]), items.get(one)) for one in wanted}

    @override
    def changed_meanwhile(self) -> bool:
        return self._file.was_written()

    @contextmanager
    def _reading(self) -> Generator[None]:
        try:
            with translating(store=self.name):
                yield
        except apsw.Error as error:
            # Every statement here is right for a file of ours: what fails comes of this one.
            problem = "holds what no release of ours has written"
            raise StoreCorruptError(store=self.name, problem=problem) from error

    def _texts_at(self, places: list[bytes]) -> dict[tuple[bytes, int], RawText]:
        if not places:
            return {}  # carray takes no empty array.
        with self._reading():
            rows: Any = self._connection.execute(_TEXTS, (apsw.carray(tuple(places)),)).fetchall()
        return {row[:2]: row for row in rows}

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        with self._reading():
            rows = self._connection.execute(statement, values)
            while True:
                # Some at a time: SQLite and the rules push each other out of the processor.
                some: list[Any] = []
                try:
                    some.extend(islice(rows, _ROWS_AT_ONCE))
                finally:
                    yield from some  # What was read before any damage stands.
                if not some:
                    return

    def _schema_faults(self) -> Iterator[StoreFault]:
        application_id = self._connection.pragma("application_id")
        version = self._connection.pragma("user_version")
        if application_id != schema.APPLICATION_ID:
            yield StoreFault(expected="a store of ours", found="a database of another program")
        elif version > schema.SCHEMA_VERSION:
            yield StoreFault(
                expected=f"schema {schema.SCHEMA_VERSION} or older",
                found=f"schema {version}, of a newer release",
            )
        else:
            yield from schema_differences(self._connection)
