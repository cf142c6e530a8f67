"""Keeping the HTTP library's debug log shut while our request is out.

At level DEBUG the library logs each answer's headers and protocol errors with the bytes that
caused them; providers echo keys there (design section 10).  The filter drops those records for
our own requests only: whatever else a host does with the same library is logged as before.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from typing_extensions import override

_LOGGERS = ("httpcore2.connection", "httpcore2.http11", "httpcore2.proxy")
_requesting: ContextVar[bool] = ContextVar("remembrancer_requesting", default=False)


class _OurRequests(logging.Filter):
    @override
    def filter(self, record: logging.LogRecord) -> bool:
        return not _requesting.get()


_FILTER = _OurRequests()


@contextmanager
def silence() -> Iterator[None]:
    """Drop the HTTP library's log records of the running task, and of no other."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # Adding it twice changes nothing.
    token = _requesting.set(True)
    try:
        yield
    finally:
        _requesting.reset(token)
