"""A time that came from outside and can be told in UTC, with room for a lease."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

_ROOM = timedelta(days=2)
"""More than any zone is from UTC, and a lease is long."""
_FIRST = datetime.min.replace(tzinfo=UTC) + _ROOM
_LAST = datetime.max.replace(tzinfo=UTC) - _ROOM


def is_in_utc(at: datetime) -> bool:
    """Say whether a time is aware, and no calendar ends near it."""
    return at.tzinfo is not None and _FIRST <= at <= _LAST


def _in_utc(at: datetime) -> datetime:
    if not is_in_utc(at):
        raise ValueError("must be a time that UTC can tell")
    return at


UtcTime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""An aware time, in whatever zone it is told."""
