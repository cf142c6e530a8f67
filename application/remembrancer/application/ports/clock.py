"""Time."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time; nothing else reads one."""

    def now(self) -> datetime:
        """Return the time as aware UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences mean something."""
        ...
