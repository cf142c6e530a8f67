"""Work that is watched while it is out: looked at all the time, and any failure stops it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

_Result = TypeVar("_Result")

Check = Callable[[], Awaitable[str | None]]
"""Gives a code that says why the work must stop, or None."""

CHECK_FAILED = "check_failed"
"""Code of a check that raised, or that took longer than the interval: not knowing stops too."""

CHECKS_PER_INTERVAL = 2
"""So that what changed just after one check is acted on within the interval."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The work was stopped by its watch."""

    code: str


async def watched(
    work: Callable[[], Awaitable[_Result]], check: Check, *, interval_s: float
) -> _Result | Stopped:
    """Return what ``work`` returns, unless a check fails first: then ``work`` is cancelled.

    The checks run beside the work; one that has failed when the work ends still counts.  What
    ``work`` raises is raised as it is, never in a group.
    """
    stopped: list[Stopped] = []
    results: list[_Result] = []
    failures: list[BaseException] = []
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            try:
                stopped.append(Stopped(await _first_code(check, interval_s)))
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as failure:  # noqa: BLE001  # raised below, not as a group
                failures.append(failure)
            group.cancel_scope.cancel()

        group.start_soon(watch)
        try:
            results.append(await work())
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as failure:  # noqa: BLE001  # raised below, not as a group
            failures.append(failure)
        group.cancel_scope.cancel()
    if failures:
        raise failures[0]
    return stopped[0] if stopped else results[0]


async def _first_code(check: Check, interval_s: float) -> str:
    next_s = anyio.current_time()
    while True:
        next_s = max(next_s + interval_s / CHECKS_PER_INTERVAL, anyio.current_time())
        await anyio.sleep_until(next_s)
        try:
            with anyio.fail_after(interval_s):
                code = await check()
        except Exception:  # noqa: BLE001  # a check that can't be made is a check that failed
            return CHECK_FAILED
        if code is not None:
            return code
