"""Every ``bench_*.py`` of this folder, each in a process of its own, and one table.

Run with ``make bench``, or ``python -m tests.benchmarks recall replay`` for some of them; exits
with 1 where a bound is not kept.  A benchmark is a module with ``measure() -> list[Row]``; what
it writes to stderr is progress.
"""

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.row import Row

PREFIX = "bench_"
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Settings of the host that may slow numpy down, and so flatter us; they belong together."""
HEADINGS = ("what", "ours", "baseline", "ratio", "bound", "kept")
_SCALES = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")), "B": ((2**20, "MiB"), (2**10, "KiB"))}
_SHOWN = 3
"""Digits of a figure."""


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and say whether every bound was kept."""
    known = sorted(
        path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob("bench_*")
    )
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"which ones; by default all: {', '.join(known)}")
    parser.add_argument("--rows", action="store_true", help="measure here and print rows as JSON")
    parser.add_argument("--markdown", type=Path, help="write the table into this file as well")
    chosen = parser.parse_args(arguments)
    names: list[str] = chosen.name or known
    unknown = set(names) - set(known)
    if unknown:
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}")
    if chosen.rows:
        for name in names:
            _print_rows(name)
        return 0
    return _table(names, chosen.markdown)


def _table(names: Sequence[str], markdown: Path | None) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in SLOWING}
    kernel = _kernel(environment)
    _say(f"{os.cpu_count()} processors, numpy on OpenBLAS kernel {kernel}")
    rows: list[Row] = []
    failed: list[str] = []
    for name in names:
        began = time.perf_counter()
        found = _measured(name, environment)
        rows += found or []
        if found is None:
            failed.append(name)
        _say(
            f"{name}: {time.perf_counter() - began:.0f} s"
            + ("" if found is not None else ", FAILED")
        )
    lines = [HEADINGS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        sys.stdout.write(_padded(line, widths, "  ") + "\n")
    for name in failed:
        sys.stdout.write(f"{name} could not be measured\n")
    if markdown is not None:
        markdown.write_text(_as_markdown(lines, widths, kernel), encoding="utf-8")
    return int(bool(failed) or not all(row.kept for row in rows))


def _measured(name: str, environment: Mapping[str, str]) -> list[Row] | None:
    """Return what one benchmark found, or None where it broke."""
    run = subprocess.run(
        [sys.executable, "-m", __package__, "--rows", name],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode:
        return None
    return [Row(**json.loads(line)) for line in run.stdout.splitlines()]


def _print_rows(name: str) -> None:
    module = importlib.import_module(f"{__package__}.{PREFIX}{name}")
    with contextlib.redirect_stdout(sys.stderr):
        rows: list[Row] = module.measure()
    for row in rows:
        sys.stdout.write(json.dumps(asdict(row)) + "\n")


def _kernel(environment: Mapping[str, str]) -> str:
    """Return which of its kernels OpenBLAS takes in the processes that measure."""
    script = (
        "import ctypes, glob, pathlib, numpy\n"
        "libraries = pathlib.Path(numpy.__file__).parents[1] / 'numpy.libs'\n"
        "library = ctypes.CDLL(glob.glob(str(libraries / '*openblas*'))[0])\n"
        "name = library.scipy_openblas_get_corename64_\n"
        "name.restype = ctypes.c_char_p\n"
        "print(name().decode())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or "unknown"


def _cells(row: Row) -> tuple[str, ...]:
    bounds = [(row.at_most, "at most"), (row.at_least, "at least")]
    bounded = [(bound, words) for bound, words in bounds if bound is not None]
    unit = row.unit if row.baseline is None else ""
    baseline = "" if row.baseline is None else f"{_figure(row.baseline, row.unit)} {row.against}"
    return (
        row.what,
        _figure(row.ours, row.unit),
        baseline,
        "" if row.baseline is None else f"{row.judged:.2f}",
        " and ".join(f"{words} {_figure(bound, unit)}" for bound, words in bounded),
        "" if not bounded else ("yes" if row.kept else "NO"),
    )


def _figure(value: float, unit: str) -> str:
    for size, name in _SCALES.get(unit, ()):
        if value >= size:
            return f"{value / size:.{_SHOWN}g} {name}"
    return f"{value:,.0f} {unit}" if value >= 10**_SHOWN else f"{value:.{_SHOWN}g} {unit}".strip()


def _padded(line: Iterable[str], widths: Sequence[int], between: str) -> str:
    cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
    return between.join(cells).rstrip()


def _as_markdown(lines: Sequence[tuple[str, ...]], widths: Sequence[int], kernel: str) -> str:
    rule = tuple("-" * width for width in widths)
    table = "\n".join(
        f"| {_padded(line, widths, ' | ')} |" for line in (lines[0], rule, *lines[1:])
    )
    return f"{table}\n\n{os.cpu_count()} processors, numpy on OpenBLAS kernel {kernel}.\n"


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
