"""Dot products of one query's codes with many rows' codes: the only step that touches every row.

numkong does it with the processor's byte instructions, about three times as fast as a float32
product.  Where it can't be imported the same whole numbers come from numpy, some 30 times slower.

A long scan is shared with one helper thread, in pieces that both take from one pile: a helper that
gets no processor costs nothing but its wake-up, and one that another query uses is not waited for.
Linux likes to wake a thread on the core of the one that wakes it, where it only takes turns with
that one; so the helper is kept off the core from which the scan is asked for.
"""

import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache

import numpy as np

from remembrancer.adapters.sqlite.int8_codes import CODE_MAX, Codes, Singles

Kernel = Callable[[Codes, Codes, Singles], None]
"""Fills its third argument (1, n) with the products of the first (1, D) and the second (n, D)."""

PIECE_BYTES = 6 * 1024 * 1024
"""Some 0.2 ms of work: long against a wake-up, short against a wait for a helper's last piece."""
_FLOAT32_WHOLE_MAX = 2**24


def numpy_kernel(query: Codes, rows: Codes, out: Singles) -> None:
    """Compute the products with numpy alone, in a kind of float that holds their sums exactly."""
    exact_in_float32 = query.shape[1] * CODE_MAX**2 < _FLOAT32_WHOLE_MAX
    kind = np.float32 if exact_in_float32 else np.float64
    wide = query[0].astype(kind)
    for start in range(0, len(rows), 1024):
        out[0, start : start + 1024] = rows[start : start + 1024].astype(kind) @ wide


def fastest_kernel() -> Kernel:
    """Return numkong's kernel, or numpy's where there is no numkong for this platform."""
    try:
        # Here, because it may be missing.
        from numkong import cdist  # noqa: PLC0415
    except ImportError:
        return numpy_kernel

    def numkong_kernel(query: Codes, rows: Codes, out: Singles) -> None:
        cdist(query, rows, "dot", out=out, out_dtype="float32")

    return numkong_kernel


class CodeScan:
    """Scans rows, with a helper where that is worth it."""

    def __init__(self, *, kernel: Kernel | None = None) -> None:
        self._kernel = kernel or fastest_kernel()
        self._helper = (
            ThreadPoolExecutor(
                1, thread_name_prefix="remembrancer-scan", initializer=self._helper_began
            )
            if (os.cpu_count() or 1) > 1
            else None
        )
        self._helper_thread: tuple[int, int] | None = None
        """Its process and its number in the system, once it runs."""

    def dots(self, query: Codes, rows: Codes) -> Singles:
        """Return the dot product of ``query`` (1, D) with each of ``rows`` (n, D).

        Computed exactly, then rounded to float32, which up to 1,040 dimensions changes nothing.
        """
        out = np.empty((1, len(rows)), dtype=np.float32)
        step = max(1, PIECE_BYTES // query.shape[1])
        if self._helper is None or len(rows) < 3 * step:
            self._kernel(query, rows, out)
        else:
            self._share(self._helper, query, rows, out, step)
        dots: Singles = out[0]
        return dots

    def _share(
        self, helper: ThreadPoolExecutor, query: Codes, rows: Codes, out: Singles, step: int
    ) -> None:
        pile = deque(range(0, len(rows), step))

        def work() -> None:
            while True:
                try:
                    start = pile.popleft()
                except IndexError:
                    return
                end = start + step
                self._kernel(query, rows[start:end], out[:, start:end])

        process, thread = self._helper_thread or (None, 0)
        if process == os.getpid():  # A forked child has none; that number is its parent's.
            _keep_off_this_core(thread)
        try:
            helped = helper.submit(work)
        except RuntimeError:  # The interpreter is shutting down.
            work()
            return
        work()
        if not helped.cancel():
            helped.result()

    def _helper_began(self) -> None:
        self._helper_thread = os.getpid(), threading.get_native_id()


def _keep_off_this_core(thread: int) -> None:
    """Let ``thread`` run wherever this one may, except where this one runs."""
    if sys.platform != "linux":
        return
    with suppress(AttributeError, OSError):  # Another C library, or a system that forbids it.
        others = os.sched_getaffinity(0) - {_library().sched_getcpu()}
        if others:
            os.sched_setaffinity(thread, others)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)  # C's own, which is loaded anyway.
