"""Async twins of blocking methods."""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

_Self = TypeVar("_Self")
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def async_twin(
    method: Callable[Concatenate[_Self, _Params], _Result],
) -> Callable[Concatenate[_Self, _Params], Coroutine[Any, Any, _Result]]:
    """Return a coroutine method that runs ``method`` in a worker thread.

    A cancelled caller waits until the thread is done: what was begun is committed or rolled back
    before the cancellation goes on, never left running behind the caller's back.
    """

    @wraps(method)
    async def twin(self: _Self, *args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        return await _to_its_end(partial(method, self, *args, **kwargs))

    # `help()`, and the warning of a forgotten `await`, call it as the host does.
    twin.__name__ = f"a{twin.__name__}"
    owner, dot, _ = twin.__qualname__.rpartition(".")
    twin.__qualname__ = f"{owner}{dot}{twin.__name__}"
    return cast("Callable[Concatenate[_Self, _Params], Coroutine[Any, Any, _Result]]", twin)


async def _to_its_end(call: Callable[[], _Result]) -> _Result:
    # Here, since only hosts with an event loop need them.
    import asyncio  # noqa: PLC0415

    from anyio import CancelScope, to_thread  # noqa: PLC0415

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # Trio, where a shield is one.
        return await to_thread.run_sync(call)
    # Under asyncio anyio's shield doesn't hold against Task.cancel(), wait_for() and timeout().
    work = loop.create_task(to_thread.run_sync(call))
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        work.exception()  # Seen, so that asyncio doesn't report it as forgotten.
        raise cancelled
    return work.result()
