"""Async twins: cancelled callers leave nothing running behind their backs."""

import asyncio
import threading

import anyio
import pytest

from remembrancer.composition.twin import async_twin
from remembrancer.domain.errors import StoreClosedError


class Slow:
    """Does its work in steps that a test can hold up."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.done = False

    def work(self, value: int, *, doubled: bool = False) -> int:
        """Wait, then answer."""
        self.begun.set()
        self.go_on.wait(5)
        self.done = True
        return value * 2 if doubled else value

    def fail(self) -> None:
        raise StoreClosedError

    awork = async_twin(work)
    afail = async_twin(fail)


def test_a_twin_passes_arguments_and_result_on() -> None:
    slow = Slow()
    slow.go_on.set()

    assert asyncio.run(slow.awork(21, doubled=True)) == 42
    assert slow.awork.__doc__ == slow.work.__doc__


def test_a_twin_is_called_by_its_own_name() -> None:
    """So that ``help()`` shows it as what a host calls."""
    assert (Slow.awork.__name__, Slow.awork.__qualname__) == ("awork", "Slow.awork")


def test_a_twin_raises_what_its_method_raises() -> None:
    with pytest.raises(StoreClosedError):
        asyncio.run(Slow().afail())


async def _begun(slow: Slow) -> None:
    await asyncio.get_running_loop().run_in_executor(None, slow.begun.wait)


def test_the_event_loop_goes_on_meanwhile() -> None:
    slow = Slow()

    async def use() -> int:
        working = asyncio.ensure_future(slow.awork(1))
        await _begun(slow)
        slow.go_on.set()
        return await working

    assert asyncio.run(use()) == 1


def test_a_cancelled_caller_waits_until_the_work_is_done() -> None:
    slow = Slow()

    async def use() -> None:
        working = asyncio.ensure_future(slow.awork(1))
        await _begun(slow)
        for _ in range(3):  # The second cancel would escape a plain shield.
            working.cancel()
            await asyncio.sleep(0)
            assert not working.done()
        slow.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert slow.done

    asyncio.run(use())


def test_a_timeout_waits_for_what_was_begun() -> None:
    slow = Slow()

    async def use() -> None:
        release = asyncio.get_running_loop().call_later(0.05, slow.go_on.set)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow.awork(1), timeout=0.01)
        assert slow.done
        release.cancel()

    asyncio.run(use())


def test_a_cancelled_scope_of_anyio_waits_too() -> None:
    slow = Slow()

    async def use() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(slow.awork, 1)
            await _begun(slow)
            group.cancel_scope.cancel()
            asyncio.get_running_loop().call_later(0.02, slow.go_on.set)
        assert slow.done

    asyncio.run(use())
