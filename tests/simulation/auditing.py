"""The product's own auditor over a simulated store: what it finds is a broken rule, too."""

from functools import cache
from pathlib import Path
from typing import Any

from remembrancer.adapters.memory.audit_source import MemoryAuditSource
from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.application.audit.audit import Audit
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.ports.audit_source import AuditSource
from remembrancer.composition.store import Store


def findings_in(store: Store, path: Path | None) -> list[str]:
    """Audit a store; return what was found, one line each."""
    if path is None:
        return _found(_memory_source(store))
    with SqliteAuditSource.open(path, is_ours=True) as source:
        return _found(source)


def _found(source: AuditSource) -> list[str]:
    report = Audit(source=source, reader=_reader())()
    return [f"{one.invariant}: {one}" for one in report.findings]


@cache
def _reader() -> StateReader:
    """Return what reads states; it is costly to make, and knows no store."""
    return StateReader()


def _memory_source(store: Any) -> MemoryAuditSource:
    return MemoryAuditSource(
        recorder=store.log._recorder,
        vault=store.vault,
        sessions=store.sessions,
        sparse=store.sparse,
        indexes=store.indexes,
        ledger=store.ledger,
    )
