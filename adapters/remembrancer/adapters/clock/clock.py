"""The machine's clocks."""

import time
from datetime import UTC, datetime

from typing_extensions import override

from remembrancer.application.ports.clock import Clock

_SINCE_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock(Clock):
    """What the operating system says."""

    @override
    def now(self) -> datetime:
        return datetime.now(UTC)

    @override
    def monotonic(self) -> float:
        # Linux's usual monotonic clock stands still while the machine sleeps; leases don't.
        return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)
