"""How a stream's rows are named, chosen and kept from colliding."""

from types import TracebackType
from typing import Any
from uuid import UUID

import apsw
from eventsourcing.persistence import IntegrityError


def stream_key(originator_id: UUID | str) -> bytes:
    """Return the 16 bytes under which a stream is stored."""
    return originator_id.bytes if isinstance(originator_id, UUID) else UUID(originator_id).bytes


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
        statement += " AND originator_version > ?"
        values.append(gt)
    if lte is not None:
        statement += " AND originator_version <= ?"
        values.append(lte)
    statement += " ORDER BY originator_version" + (" DESC" if desc else "")
    if limit is not None:
        statement += " LIMIT ?"
        values.append(limit)
    return statement, values


class conflicts:  # noqa: N801  # used as a function, once for each append
    """Raise the library's error for a row that may not be added."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, apsw.ConstraintError):
            raise IntegrityError(str(error)) from error
