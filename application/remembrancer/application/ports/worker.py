"""Blocking calls from async code."""

from collections.abc import Callable
from typing import Protocol, TypeVar

_Result = TypeVar("_Result")


class Worker(Protocol):
    """Runs blocking calls beside the event loop, so that deadlines and checks go on meanwhile."""

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """Run ``call`` in another thread and return its result.

        When the caller is cancelled, the wait ends at once and ``call`` goes on by itself: the
        caller must have made sure that what it does then is harmless.
        """
        ...
