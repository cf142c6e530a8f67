"""Loading an aggregate of 100 events, against the event-sourcing library's own repository."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from eventsourcing.application import Application
from tests.benchmarks.row import Row, interleaved

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.application.load import append, load
from remembrancer.application.ports import EventLog
from remembrancer.composition.settings import StoreSettings
from remembrancer.composition.store import open_store
from remembrancer.domain.entry import EntryHeader, MemoryEntry
from remembrancer.domain.identity import EntryId
from remembrancer.domain.sensitivity import Sensitivity

EVENTS = 100
ROUNDS = 201
RATIO_MAX = 0.5


def measure() -> list[Row]:
    """Return the comparison with the library's SQLite recorder, and with its plain objects."""
    with tempfile.TemporaryDirectory() as folder, _log(Path(folder) / "memory.db") as log:
        append(log, entry := _entry())
        stored = Application[UUID](
            env={
                "PERSISTENCE_MODULE": "eventsourcing.sqlite",
                "SQLITE_DBNAME": str(Path(folder) / "theirs.db"),
            }
        )
        plain = Application[UUID](env={})
        for application in (stored, plain):
            application.save(_entry())
        ours, theirs_stored, theirs_plain = interleaved(
            [
                lambda: load(log, MemoryEntry, entry.id),
                lambda: stored.repository.get(entry.id),
                lambda: plain.repository.get(entry.id),
            ],
            rounds=ROUNDS,
        )
        stored.close()
    return [
        Row(
            what=f"load an aggregate of {EVENTS} events, from SQLite",
            ours=ours,
            baseline=theirs_stored,
            against="the library's repository, on SQLite",
            at_most=RATIO_MAX,
        ),
        Row(
            what="the same",
            ours=ours,
            baseline=theirs_plain,
            against="the library's repository, in memory",
        ),
    ]


@contextmanager
def _log(path: Path) -> Iterator[EventLog]:
    settings = StoreSettings(path=path)
    with open_store(settings, clock=SystemClock(), randomness=SystemRandomness()) as store:
        yield store.log


def _entry() -> MemoryEntry:
    header = EntryHeader(
        tenant="acme",
        owner="ana",
        entry_id=EntryId(UUID(int=7)),
        version=1,
        scope="project/alpha",
        kind="note",
        sensitivity=Sensitivity.INTERNAL,
    )
    at = datetime(2030, 1, 1, tzinfo=UTC)
    entry = MemoryEntry.remember(header, digest="a" * 64, length=400, at=at)
    for _ in range(EVENTS - 1):
        entry.correct(header, digest="b" * 64, length=410, reason="outdated", at=at)
    return entry
