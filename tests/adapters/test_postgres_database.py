"""Transactions, scopes and connections of the PostgreSQL database."""

from collections.abc import Generator

import pytest
from tests.adapters.postgres_server import FreshDatabase, server

from remembrancer.adapters.postgres.database import Database
from remembrancer.domain.errors import InvalidInputError, SettingsError


@pytest.fixture
def fresh() -> Generator[FreshDatabase]:
    database = server().fresh_database()
    yield database
    server().drop(database)


@pytest.fixture
def database(fresh: FreshDatabase) -> Generator[Database]:
    with Database.open(fresh.app, reader_dsn=fresh.auditor) as database:
        yield database


def test_nobody_named_is_refused_before_anything_is_sent(database: Database) -> None:
    with pytest.raises(InvalidInputError, match="name the tenant"), database.read():
        pass
    with pytest.raises(InvalidInputError, match="name the tenant"), database.write():
        pass
    with pytest.raises(InvalidInputError, match="name the owner"), database.write(tenant="acme"):
        pass


def test_reading_over_all_tenants_needs_the_auditors_role(fresh: FreshDatabase) -> None:
    with (
        Database.open(fresh.app) as database,
        pytest.raises(SettingsError, match="reader_dsn"),
        database.over_all_tenants(),
    ):
        pass
