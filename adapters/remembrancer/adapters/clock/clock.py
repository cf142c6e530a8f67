"""The machine's clocks."""

import time
from datetime import UTC, datetime

from typing_extensions import override

from remembrancer.application.ports.clock import Clock


class SystemClock(Clock):
    """What the operating system says."""

    @override
    def now(self) -> datetime:
        return datetime.now(UTC)

    @override
    def monotonic(self) -> float:
        return time.monotonic()
