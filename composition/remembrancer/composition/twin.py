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
        from anyio import to_thread  # noqa: PLC0415  # only hosts with an event loop need it

        return await to_thread.run_sync(partial(method, self, *args, **kwargs))

    return cast("Callable[Concatenate[_Self, _Params], Coroutine[Any, Any, _Result]]", twin)
