"""How a stream's rows are chosen, and kept from colliding."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import IntegrityError


def stream_key(originator_id: UUID | str) -> UUID:
    """Return the id under which a stream is stored."""
    return originator_id if isinstance(originator_id, UUID) else UUID(originator_id)


def within(
    statement: str,
    values: list[Any],
    *,
    gt: int | None,
    lte: int | None,
    desc: bool,
    limit: int | None,
) -> tuple[str, list[Any]]:
    """Narrow a statement that chooses a stream to versions, an order and a limit."""
    if gt is not None:
        statement += " AND originator_version > %s"
        values.append(gt)
    if lte is not None:
        statement += " AND originator_version <= %s"
        values.append(lte)
    statement += " ORDER BY originator_version" + (" DESC" if desc else "")
    if limit is not None:
        statement += " LIMIT %s"
        values.append(limit)
    return statement, values


@contextmanager
def conflicts() -> Generator[None]:
    """Raise the library's error for a row that may not be added."""
    try:
        yield
    except psycopg.IntegrityError as error:
        raise IntegrityError(str(error)) from error
