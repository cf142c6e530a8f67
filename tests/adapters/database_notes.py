"""The smallest things to write into a database and to read back, for its tests."""

from pathlib import Path

from remembrancer.adapters.sqlite.database import Database


def note(database: Database, text: str) -> None:
    """Write something: a projection's position, the smallest row there is."""
    with database.write() as connection:
        connection.execute("INSERT INTO tracking VALUES (?, 1)", (text,))


def notes(database: Database) -> list[str]:
    with database.read() as connection:
        return [row[0] for row in connection.execute("SELECT application_name FROM tracking")]


def opened(path: Path, *, read_only: bool = False) -> list[str]:
    with Database.open(path, busy_timeout_s=0.2, read_only=read_only) as database:
        return notes(database)
