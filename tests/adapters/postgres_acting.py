"""The suites' tests name nobody: here every call of a port acts for one owner, in any thread."""

from collections.abc import Generator
from contextlib import contextmanager

from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.transactions import PostgresTransactions

TENANT, OWNER = "acme", "ana"


class ActingTransactions(PostgresTransactions):
    """Transactions that begin by saying for whom."""

    @override
    @contextmanager
    def begin(self, *, alone: bool = False) -> Generator[None]:
        with self.acting_for(TENANT, OWNER), super().begin(alone=alone):
            yield


def acting_log(database: Database) -> RecordedEventLog:
    """Return a log of one owner's events, whoever is acted for."""
    return RecordedEventLog(
        recorder=PostgresApplicationRecorder(database=database, tenant=TENANT, owner=OWNER)
    )
