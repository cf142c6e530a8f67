"""The event log over the PostgreSQL recorder."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from tests.adapters.postgres_acting import OWNER, TENANT, acting_log
from tests.adapters.postgres_server import server
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.application.ports.event_log import EventLog
from remembrancer.contracts.event_log import EventLogContract
from remembrancer.contracts.event_log_rows import RawRecord


class TestPostgresEventLog(EventLogContract):
    durable = True

    @pytest.fixture(autouse=True)
    def _fresh(self) -> Iterator[None]:
        with server().database() as self.fresh:
            yield

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[EventLog]:
        with Database.open(self.fresh.app) as database:
            yield acting_log(database)

    @override
    def plant(self, log: EventLog, record: RawRecord) -> None:
        with psycopg.connect(self.fresh.superuser) as connection:
            connection.execute(
                "INSERT INTO remembrancer.stored_events (tenant, owner, originator_id,"
                " originator_version, topic, state, predecessor_hash, event_hash)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    TENANT,
                    OWNER,
                    record.stream_id,
                    record.version,
                    record.topic,
                    record.state,
                    record.predecessor,
                    record.own,
                ),
            )

    @override
    def alter(self, log: EventLog, stream_id: UUID, version: int, state: bytes) -> None:
        with psycopg.connect(self.fresh.superuser) as connection:
            connection.execute("ALTER TABLE remembrancer.stored_events DISABLE TRIGGER USER")
            connection.execute(
                "UPDATE remembrancer.stored_events SET state = %s"
                " WHERE originator_id = %s AND originator_version = %s",
                (state, stream_id, version),
            )
