"""Threads of anyio's pool, under asyncio and under trio alike (adr/0014)."""

from collections.abc import Callable
from typing import TypeVar

from typing_extensions import override

from remembrancer.application.ports.worker import Worker

_Result = TypeVar("_Result")


class AnyioWorker(Worker):
    """Hands each call to a thread of the running event loop's pool."""

    @override
    async def run(self, call: Callable[[], _Result]) -> _Result:
        # Hosts that never wait for anything asynchronous don't load it.
        from anyio import to_thread  # noqa: PLC0415

        # A thread can't be stopped.  Without this, a cancelled caller would wait until it ends,
        # and no deadline would hold.
        return await to_thread.run_sync(call, abandon_on_cancel=True)
