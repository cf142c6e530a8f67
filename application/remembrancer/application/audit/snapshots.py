"""Copies of ledgers: each is the fold of its stream up to its version."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.ports.audit_source import AuditSource
from remembrancer.domain.canonical_json import parse_canonical_json
from remembrancer.domain.ledger_snapshot import FORMAT, ledger_snapshot
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    DayTotals,
    Reservation,
)
from remembrancer.domain.reservation_ledger import ReservationLedger

SNAPSHOT = Invariant(
    name="snapshot-is-the-fold",
    sentence="The copy of a ledger says what its events up to that version say; it is never "
    "ahead of them.",
    source="design 4.2; adr/0010",
)
INVARIANTS: Final = (SNAPSHOT,)


class SnapshotCheck:
    """Compares a ledger's copy while its stream is read."""

    def __init__(self, source: AuditSource) -> None:
        self._source = source
        self._state = b""
        self.checked = 0

    def version_of(self, tenant: str, owner: str) -> int:
        """Return at which version the copy of this ledger was made; 0 where there is none."""
        row = self._source.snapshot(tenant, owner)
        if row is None:
            return 0
        self.checked += 1
        _, _, version, self._state = row
        return version

    def compare(
        self,
        place: Place,
        last_at: datetime,
        days: Mapping[str, tuple[int, int]],
        pending: list[Reservation],
    ) -> None:
        """Compare the copy that was looked up last with the fold at its version."""
        ledger = ReservationLedger.restored(
            str(place.tenant),
            str(place.owner),
            version=place.version,
            last_at=last_at,
            days={
                UtcDay(day): DayTotals(quanta=quanta, requests=requests)
                for day, (quanta, requests) in days.items()
            },
            pending=pending,
        )
        if ledger_snapshot(ledger) != self._state and _format(self._state) == FORMAT:
            place.report(SNAPSHOT, "the fold of the events up to it", "another state")

    def report_ahead(self, place: Place, version: int) -> None:
        """Report a copy of a version that the stream doesn't have."""
        place.report(SNAPSHOT, f"version {version}, which was copied", "the stream ends before it")


def stray_snapshots(source: AuditSource) -> list[tuple[UUID, str, str, int]]:
    """Return (stream, tenant, owner, version) of copies without any event."""
    found = []
    for tenant, owner, version, _ in source.snapshots():
        stream = ReservationLedger.create_id(tenant, owner)
        if next(source.stream(stream), None) is None:
            found.append((stream, tenant, owner, version))
    return found


def _format(state: bytes) -> Any:
    try:
        return parse_canonical_json(state)["format"]
    except (LookupError, TypeError, ValueError):
        return FORMAT  # Not readable at all: as wrong as any.
