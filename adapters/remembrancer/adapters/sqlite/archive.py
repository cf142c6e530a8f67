"""What the SQLite file has recorded, read by whose it is, and taken in from another store."""

from collections.abc import Generator, Iterator, Sequence
from itertools import groupby, islice
from typing import Any
from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite import spend_receipts
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.original_row import to_originals
from remembrancer.application.ports.archive import (
    WHOLE,
    Archive,
    ArchivedEvent,
    ArchivedSession,
    Counts,
    Part,
)
from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.errors import MalformedRecordError, StoreCorruptError
from remembrancer.domain.hash_chain import GENESIS, Link, check_chain, check_next
from remembrancer.domain.identity import EntryId
from remembrancer.domain.reservation_event import LedgerEvent

ORIGINALS_AT_ONCE = 16
"""Made in one go, in a quarter of the time; each may have a text of 1 MiB."""

# As in event_log_index.sql: SQLite uses an index only for what is spelt alike.
_TEXT = "CAST(first.state AS TEXT)"
_SAID = f"(CASE WHEN json_valid({_TEXT}) THEN {_TEXT} ->> '$.{{}}' END)"
_TENANT, _OWNER, _SESSION = (_SAID.format(name) for name in ("tenant", "owner", "session"))
_RESERVATION = _SAID.format("reservation_id._data_")
_OF_RESERVATION = (
    "first.topic IN ('remembrancer.reservation_ledger.reservation_admitted',"
    " 'remembrancer.reservation_ledger.reservation_settled',"
    " 'remembrancer.reservation_ledger.reservation_became_unknown',"
    " 'remembrancer.reservation_ledger.reservation_reconciled',"
    " 'remembrancer.cache_context.query_vectors_prepared')"
)
_SELECTED = "first.topic = 'remembrancer.l3_selection.l3_entries_selected'"

_EVENTS = (
    f"SELECT e.notification_id, {_TENANT}, {_OWNER}, e.originator_id, e.originator_version,"  # noqa: S608  # no foreign text
    " e.topic, e.state, e.predecessor_hash, e.event_hash, before.event_hash"
    " FROM stored_events AS e"
    " LEFT JOIN stored_events AS first"
    " ON first.originator_id = e.originator_id AND first.originator_version = 1"
    " LEFT JOIN stored_events AS before ON before.originator_id = e.originator_id"
    " AND before.originator_version = e.originator_version - 1"
    " WHERE {} ORDER BY e.notification_id LIMIT ?"
)
_WHOLE = "SELECT one.notification_id FROM stored_events AS one WHERE 1"
_OF_STREAM = "SELECT one.notification_id FROM stored_events AS one WHERE one.originator_id = ?"
_NAMING = "SELECT first.notification_id FROM stored_events AS first WHERE"
_OF_STREAMS = (
    "SELECT one.notification_id FROM stored_events AS first"
    " INNER JOIN stored_events AS one ON one.originator_id = first.originator_id"
    " WHERE first.originator_version = 1"
)
_HEAD = (
    "SELECT originator_version, event_hash FROM stored_events WHERE originator_id = ?"
    " ORDER BY originator_version DESC LIMIT 1"
)
_TAKE = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state,"
    " predecessor_hash, event_hash) VALUES (?, ?, ?, ?, ?, ?)"
)
_ORIGINALS = (
    "SELECT index_id, entry_id, version, tenant, owner, scope, kind, sensitivity, recorded_at,"
    " superseded_at, tokens, token_counter, digest, salt, subjects, metadata, reason, text"
    " FROM original INNER JOIN owned_scope ON owned_scope.number = original.owned_scope"
    " WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR owner = ?2) ORDER BY original.number"
)
_SESSIONS = (
    "SELECT k.selection_id, k.tenant, k.owner, k.session, k.key, i.number, i.items"
    " FROM session_key AS k LEFT JOIN session_items AS i ON i.selection_id = k.selection_id"
    " WHERE k.selection_id IS NOT NULL AND (?1 IS NULL OR k.tenant = ?1)"
    " AND (?2 IS NULL OR k.owner = ?2) ORDER BY k.number, i.number"
)
_COUNT_EVENTS = "SELECT count(*) FROM ({})"
_COUNT_ORIGINALS = (
    "SELECT coalesce(sum(kept), 0) FROM owned_scope"
    " WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR owner = ?2)"
)
_COUNT_SESSIONS = (
    "SELECT count(*) FROM session_key WHERE selection_id IS NOT NULL"
    " AND (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR owner = ?2)"
)
_HAS_ANYTHING = (
    "SELECT EXISTS (SELECT * FROM stored_events) OR EXISTS (SELECT * FROM original)"
    " OR EXISTS (SELECT * FROM session_key) OR EXISTS (SELECT * FROM erased_entry)"
)
_ADD_ERASED = "INSERT OR REPLACE INTO erased_entry (entry_id, tenant) VALUES (?, ?)"


class SqliteArchive(Archive):
    """Reads and fills the tables that belong to the log, the vaults and the ledgers."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def counts(self, part: Part) -> Counts:
        chosen, values = _chosen(part)
        whose = (part.tenant, part.owner)
        with self._database.read() as connection:
            return Counts(
                events=connection.execute(_COUNT_EVENTS.format(chosen), values).get,
                originals=connection.execute(_COUNT_ORIGINALS, whose).get,
                sessions=connection.execute(_COUNT_SESSIONS, whose).get,
            )

    @override
    def events(
        self,
        part: Part,
        *,
        after_position: int = 0,
        limit: int | None = None,
        newest: bool = False,
    ) -> Generator[ArchivedEvent]:
        statement, values = _reading(part, after_position, limit, newest=newest)
        with self._database.read() as connection:
            for row in connection.execute(statement, values):
                try:
                    event = _event(*row)
                except (TypeError, ValueError) as error:  # No id of a stream.
                    problem = "the log is damaged"
                    raise StoreCorruptError(
                        store=str(self._database.path), problem=problem
                    ) from error
                yield event

    @override
    def originals(self, part: Part) -> Iterator[Original]:
        store = str(self._database.path)
        with self._database.read() as connection:
            rows = connection.execute(_ORIGINALS, (part.tenant, part.owner))
            while some := list(islice(rows, ORIGINALS_AT_ONCE)):
                yield from to_originals(some, store=store)

    @override
    def sessions(self, part: Part) -> Iterator[ArchivedSession]:
        with self._database.read() as connection:
            rows = connection.execute(_SESSIONS, (part.tenant, part.owner))
            for (stored, tenant, owner, session, key), of_one in groupby(
                rows, lambda row: row[:5]
            ):
                yield ArchivedSession(
                    selection_id=UUID(bytes=stored),
                    tenant=tenant,
                    owner=owner,
                    session=session,
                    key=key,
                    items=tuple((row[5], row[6]) for row in of_one if row[5] is not None),
                )

    @override
    def is_empty(self) -> bool:
        with self._database.read() as connection:
            return not connection.execute(_HAS_ANYTHING).get

    @override
    def take_events(self, events: Sequence[ArchivedEvent]) -> None:
        heads: dict[UUID, Link | None] = {}
        rows = []
        with self._database.write() as connection:
            for one in events:
                stream_id = one.stream_id
                if stream_id not in heads:
                    heads[stream_id] = _head(connection, stream_id)
                link = Link(one.version, one.topic, one.state, one.predecessor, one.own)
                check_next(stream_id, link, head=heads[stream_id])
                heads[stream_id] = link
                rows.append((stream_id.bytes, *link))
            connection.executemany(_TAKE, rows)

    @override
    def take_erased(self, entries: Sequence[EntryId], *, tenant: str, owner: str) -> None:
        with self._database.write() as connection:
            connection.executemany(_ADD_ERASED, [(one.bytes, tenant) for one in entries])

    @override
    def take_receipts(self, facts: Sequence[LedgerEvent]) -> None:
        with self._database.write() as connection:
            for fact in facts:
                try:
                    spend_receipts.record(connection, fact)
                except apsw.ConstraintError as error:
                    raise _not_to_follow(fact) from error


def _not_to_follow(fact: LedgerEvent) -> MalformedRecordError:
    return MalformedRecordError(
        stream_id=fact.originator_id,
        version=fact.originator_version,
        problem="no receipt can follow it: its reservation was admitted before",
    )


def _reading(
    part: Part, after_position: int, limit: int | None, *, newest: bool
) -> tuple[str, list[str | int | bytes]]:
    """Return the statement that reads a part's events, and its values."""
    bound = -1 if limit is None else limit
    if part == WHOLE and not newest:  # In the order of the table: nothing is held for it.
        return _EVENTS.format("e.notification_id > ?"), [after_position, bound]
    chosen, values = _chosen(part)
    number = "first.notification_id" if part.reservation_id else "one.notification_id"
    chosen += f" AND {number} > ? ORDER BY {number}{' DESC' if newest else ''} LIMIT ?"
    return _EVENTS.format(f"e.notification_id IN ({chosen})"), [
        *values,
        after_position,
        bound,
        bound,
    ]


def _chosen(part: Part) -> tuple[str, list[str | int | bytes]]:
    """Return a statement for the numbers of a part's events, open to further conditions."""
    if part.stream_id is not None:
        return _OF_STREAM, [part.stream_id.bytes]
    conditions, values = list[str](), list[str | int | bytes]()
    if part.reservation_id is not None:
        conditions += [_OF_RESERVATION, f"{_RESERVATION} = ?"]
        values.append(part.reservation_id.hex)
    if part.session is not None:
        conditions += [_SELECTED, f"{_SESSION} = ?"]
        values.append(part.session)
    if part.tenant is not None:
        conditions.append(f"{_TENANT} = ?")
        values.append(part.tenant)
    if part.owner is not None:
        conditions.append(f"{_OWNER} = ?")
        values.append(part.owner)
    if part.reservation_id is not None:
        return f"{_NAMING} {' AND '.join(conditions)}", values
    if not conditions:
        return _WHOLE, values
    return f"{_OF_STREAMS} AND {' AND '.join(conditions)}", values


def _event(
    number: int, tenant: str | None, owner: str | None, key: bytes, *rest: Any
) -> ArchivedEvent:
    *link, before = rest
    stream_id = UUID(bytes=key)
    version, topic, state, predecessor, own = found = Link(*link)
    last = Link(version - 1, "", b"", GENESIS, before) if before is not None else None
    check_chain(stream_id, [found], before=last)
    if not isinstance(tenant, str) or not isinstance(owner, str):
        problem = "its stream doesn't say whose it is"
        raise MalformedRecordError(stream_id=stream_id, version=version, problem=problem)
    return ArchivedEvent(
        position=number,
        tenant=tenant,
        owner=owner,
        stream_id=stream_id,
        version=version,
        topic=topic,
        state=state,
        predecessor=predecessor,
        own=own,
    )


def _head(connection: apsw.Connection, stream_id: UUID) -> Link | None:
    row = connection.execute(_HEAD, (stream_id.bytes,)).fetchone()
    return None if row is None else Link(row[0], "", b"", GENESIS, row[1])
