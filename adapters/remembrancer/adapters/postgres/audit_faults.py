"""What a database itself shows to be wrong, before any event is looked at.

Labels are looked at here: the hash of an event doesn't cover the columns ``tenant`` and ``owner``,
by which row security decides who sees it.
"""

from collections.abc import Iterator
from typing import Any, Final

from remembrancer.adapters.postgres.audit_session import LOG, AuditSession
from remembrancer.adapters.postgres.migrations.head import HEAD
from remembrancer.adapters.postgres.migrations.rights import COMMON, OWNED
from remembrancer.adapters.postgres.statements import SCHEMA
from remembrancer.application.ports.audit_source import StoreFault

FAULTS_MAX: Final = 100
"""Rows of one kind of fault that are named."""

_REVISION: Final = "SELECT version_num FROM alembic_version"
_GUARDED: Final = (
    "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('stored_events')"
    " AND tgname = 'stored_events_are_not_changed' AND tgenabled IN ('O', 'A')"
)
_GIVEN: Final = (
    "SELECT last_value, (SELECT coalesce(max(position), 0) FROM stored_events)"
    " FROM event_positions"
)
# The first event of a stream names whom it is about, in canonical JSON; a name stands unescaped
# in no other place of it.
_MISLABELLED: Final = """
    SELECT DISTINCT originator_id::text FROM stored_events
    WHERE originator_version = 1 AND (
        position(convert_to('"tenant":' || to_json(tenant)::text, 'UTF8') IN state) = 0
        OR position(convert_to('"owner":' || to_json(owner)::text, 'UTF8') IN state) = 0
    )
    LIMIT %s
"""
_SPLIT: Final = """
    SELECT originator_id::text FROM stored_events GROUP BY originator_id
    HAVING min(tenant) <> max(tenant) OR min(owner) <> max(owner) LIMIT %s
"""
_STRANGE_VECTORS: Final = """
    SELECT vectors.id::text, index_number FROM vectors
    JOIN originals ON originals.index_id = vectors.id
    WHERE (vectors.tenant, vectors.owner) <> (originals.tenant, originals.owner) LIMIT %s
"""


def faults(session: AuditSession) -> Iterator[StoreFault]:
    """Look at schema, revision, tables, row security and labels; raises as the session."""
    if not session.sight.has_schema:
        yield StoreFault(expected=f"schema {SCHEMA}", found="none")
        return
    yield from _revision(session)
    yield from _tables(session)
    if _can_read(session, LOG):
        yield from _log(session)
    if _can_read(session, "vectors") and _can_read(session, "originals"):
        for vector, index in session.ask(_STRANGE_VECTORS, (FAULTS_MAX,)):
            yield StoreFault(
                expected=f"vector {vector} in index {index} labelled as its version is",
                found="another tenant or owner",
            )


def _revision(session: AuditSession) -> Iterator[StoreFault]:
    if "alembic_version" not in session.sight.tables:
        return  # Named among the tables.
    found = [str(row[0]) for row in session.look_up("alembic_version", _REVISION)]
    if found == [HEAD]:
        return
    is_newer = len(found) == 1 and found[0].isdecimal() and int(found[0]) > int(HEAD)
    wanted = f"revision {HEAD} or older" if is_newer else f"revision {HEAD}"
    said = " and ".join(f"revision {one!r}"[:100] for one in found) or "none"
    yield StoreFault(expected=wanted, found=f"{said}, of a newer release" if is_newer else said)


def _tables(session: AuditSession) -> Iterator[StoreFault]:
    for table in sorted({*OWNED, *COMMON}):
        seen = session.sight.tables.get(table)
        if seen is None:
            yield StoreFault(expected=f"table {table}", found="none")
        elif table in OWNED and not seen.is_forced:
            yield StoreFault(expected=f"row security forced on table {table}", found="not so")
        elif table in OWNED and seen.is_readable and not seen.shows_all:
            yield StoreFault(
                expected=f"table {table} whole", found="row security hides rows from the auditor"
            )


def _log(session: AuditSession) -> Iterator[StoreFault]:
    [(guards,)] = session.ask(_GUARDED)
    if not guards:
        yield StoreFault(expected="a trigger that keeps events from being changed", found="none")
    [(given, last)] = session.ask(_GIVEN)
    if given < last:
        yield StoreFault(expected=f"positions up to {last} given out", found=f"{given}")
    for statement in (_MISLABELLED, _SPLIT):
        for row in session.ask(statement, (FAULTS_MAX,)):
            yield _mislabelled(row)


def _mislabelled(row: Any) -> StoreFault:
    return StoreFault(
        expected=f"stream {row[0]} labelled with the tenant and owner that it names",
        found="another tenant or owner",
    )


def _can_read(session: AuditSession, table: str) -> bool:
    seen = session.sight.tables.get(table)
    return seen is not None and seen.is_whole
