"""Work that is watched while it is out: a check each second, and any failure stops it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

_Result = TypeVar("_Result")

Check = Callable[[], Awaitable[str | None]]
"""Gives a code that says why the work must stop, or None."""

CHECK_FAILED = "check_failed"
"""Code of a check that raised, or that took longer than the interval: not knowing stops too."""


class StoppedError(Exception):
    """The work was stopped by its watch."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


async def watched(
    work: Callable[[], Awaitable[_Result]], check: Check, *, interval_s: float
) -> _Result:
    """Return what ``work`` returns, unless a check fails first: then ``work`` is cancelled.

    The checks run beside the work; one that is failing when the work ends still counts.

    Raises:
        StoppedError: a check gave a code, raised, or didn't come back within the interval.
    """
    codes: list[str] = []
    results: list[_Result] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while not codes:
                await anyio.sleep(interval_s)
                code = await _asked(check, interval_s)
                if code is not None:
                    codes.append(code)
            group.cancel_scope.cancel()

        group.start_soon(watch)
        try:
            results.append(await work())
        except Exception as failure:  # noqa: BLE001  # raised below, not as a group
            failures.append(failure)
        group.cancel_scope.cancel()
    if codes:
        raise StoppedError(codes[0])
    if failures:
        raise failures[0]
    return results[0]


async def _asked(check: Check, interval_s: float) -> str | None:
    try:
        with anyio.fail_after(interval_s):
            return await check()
    except Exception:  # noqa: BLE001  # a check that can't be made is a check that failed
        return CHECK_FAILED
