"""Blocking twins of async use cases."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

_Result = TypeVar("_Result")


def run_blocking(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run ``work`` to its end in an event loop of its own and return its result.

    A KeyboardInterrupt cancels the work, which cleans up, and is raised afterwards.  Also where
    the calling thread already runs an event loop: then another thread runs ours, the caller's
    loop stands still, and it sees an interrupt only once the work has ended (13 s at most for a
    preparation); its async twin is the better choice there.
    """

    async def main() -> _Result:
        return await work()

    if not _in_event_loop():
        return anyio.run(main)
    with start_blocking_portal() as portal:
        return portal.call(main)


def _in_event_loop() -> bool:
    try:
        anyio.get_current_task()
    except (RuntimeError, LookupError):
        return False
    return True
