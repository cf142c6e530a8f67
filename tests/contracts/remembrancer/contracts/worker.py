"""What every worker promises.

Enrol an adapter by subclassing :class:`WorkerContract`::

    class TestMyWorker(WorkerContract):
        def worker(self) -> Worker:
            return MyWorker()
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from remembrancer.application.ports.worker import Worker

PATIENCE_S = 10.0
"""No test waits so long, unless it fails."""
BACKENDS = ("asyncio", "trio")


class WorkerContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the worker."""

    @abstractmethod
    def worker(self) -> Worker:
        """Make a worker."""

    @pytest.fixture(params=BACKENDS)
    def run(self, request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[Any]]], Any]:
        return lambda work: anyio.run(work, backend=request.param)

    def test_returns_what_the_call_returns(self, run: Callable[..., Any]) -> None:
        assert run(lambda: self.worker().run(lambda: 42)) == 42

    def test_raises_what_the_call_raises(self, run: Callable[..., Any]) -> None:
        def call() -> None:
            raise KeyError("missing")

        with pytest.raises(KeyError, match="missing"):
            run(lambda: self.worker().run(call))

    def test_calls_in_another_thread(self, run: Callable[..., Any]) -> None:
        assert run(lambda: self.worker().run(threading.get_ident)) != threading.get_ident()

    def test_the_event_loop_goes_on_meanwhile(self, run: Callable[..., Any]) -> None:
        released = threading.Event()

        async def both() -> bool:
            async def release() -> None:
                released.set()

            async with anyio.create_task_group() as group:
                group.start_soon(release)
                return await self.worker().run(lambda: released.wait(PATIENCE_S))
            raise AssertionError

        assert run(both)

    def test_a_cancelled_wait_ends_at_once_and_the_call_goes_on(
        self, run: Callable[..., Any]
    ) -> None:
        started, release, ended = threading.Event(), threading.Event(), threading.Event()

        def call() -> None:
            started.set()
            release.wait(PATIENCE_S)
            ended.set()

        async def cancelled() -> bool:
            async with anyio.create_task_group() as group:
                group.start_soon(self.worker().run, call)
                await anyio.to_thread.run_sync(started.wait, PATIENCE_S)
                group.cancel_scope.cancel()
            was_over_before_the_call = not ended.is_set()
            release.set()
            return was_over_before_the_call

        assert run(cancelled)
        assert ended.wait(PATIENCE_S)

    def test_a_deadline_holds_although_the_call_hangs(self, run: Callable[..., Any]) -> None:
        release = threading.Event()

        async def in_vain() -> None:
            try:
                with anyio.fail_after(0.01):
                    await self.worker().run(lambda: release.wait(PATIENCE_S))
            finally:
                release.set()

        with pytest.raises(TimeoutError):
            run(in_vain)
