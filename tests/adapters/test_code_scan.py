import os
import sys
from collections.abc import Callable

import numpy as np
import pytest

from remembrancer.adapters.sqlite import code_scan
from remembrancer.adapters.sqlite.code_scan import CodeScan, fastest_kernel, numpy_kernel
from remembrancer.adapters.sqlite.int8_codes import Codes


@pytest.mark.parametrize("dimensions", [1, 7, 64, 384, 1_041, 16_384])
@pytest.mark.parametrize("kernel", [fastest_kernel, lambda: numpy_kernel])
def test_every_kernel_gives_the_exact_whole_numbers_rounded_once(
    kernel: Callable[[], code_scan.Kernel], dimensions: int
) -> None:
    query, rows = codes(1, dimensions), codes(1_030, dimensions)
    query[0], rows[3] = 127, -127

    dots = CodeScan(kernel=kernel()).dots(query, rows)

    exact = rows.astype(np.int64) @ query[0].astype(np.int64)
    assert dots.tolist() == exact.astype(np.float32).tolist()


def test_a_shared_scan_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_scan, "PIECE_BYTES", 64 * 100)
    query, rows = codes(1, 64), codes(12_345, 64)
    scan = CodeScan()

    for _ in range(20):
        dots = scan.dots(query, rows)

        assert dots.tolist() == (rows.astype(np.int64) @ query[0].astype(np.int64)).tolist()


@pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) == 1,
    reason="only Linux tells cores, and there must be two",
)
def test_the_helper_is_kept_off_the_core_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_scan, "PIECE_BYTES", 64 * 100)
    query, rows = codes(1, 64), codes(12_345, 64)
    scan = CodeScan()

    for _ in range(2):  # The first starts it.
        scan.dots(query, rows)

    assert scan._helper_thread is not None
    mine, its = os.sched_getaffinity(0), os.sched_getaffinity(scan._helper_thread[1])
    assert its < mine


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells cores")
@pytest.mark.parametrize("cores", ["one", "not to be chosen"])
def test_a_scan_is_shared_where_there_is_no_core_to_choose(
    monkeypatch: pytest.MonkeyPatch, cores: str
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    if cores == "one":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _thread: set())
    else:
        monkeypatch.setattr(os, "sched_setaffinity", refused)
    monkeypatch.setattr(code_scan, "PIECE_BYTES", 64 * 100)
    query, rows = codes(1, 64), codes(12_345, 64)
    scan = CodeScan()

    for _ in range(2):
        dots = scan.dots(query, rows)

        assert dots.tolist() == (rows.astype(np.int64) @ query[0].astype(np.int64)).tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells cores")
def test_a_forked_child_leaves_its_parents_helper_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code_scan, "PIECE_BYTES", 64 * 100)
    query, rows = codes(1, 64), codes(12_345, 64)
    scan = CodeScan()
    scan.dots(query, rows)

    if (child := os.fork()) == 0:
        status = 2
        try:
            chosen: list[int] = []
            code_scan._keep_off_this_core = chosen.append  # type: ignore[assignment]  # a child's
            expected = (rows.astype(np.int64) @ query[0].astype(np.int64)).tolist()
            status = int(scan.dots(query, rows).tolist() != expected or bool(chosen))
        finally:
            os._exit(status)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_error_in_a_shared_scan_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_scan, "PIECE_BYTES", 64 * 100)

    def failing(*_: object) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        CodeScan(kernel=failing).dots(codes(1, 64), codes(5_000, 64))


def test_numpy_serves_where_numkong_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numkong", None)

    assert fastest_kernel() is numpy_kernel


def test_numkong_serves_where_it_is_installed() -> None:
    assert fastest_kernel() is not numpy_kernel


def codes(rows: int, dimensions: int) -> Codes:
    random = np.random.default_rng(rows * dimensions)
    return random.integers(-127, 128, (rows, dimensions), dtype=np.int8)
