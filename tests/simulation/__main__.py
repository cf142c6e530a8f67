"""Simulate until a time or a number of seeds has passed, or something breaks.

``python -m tests.simulation [--seconds S] [--count N] [--from SEED] [--steps N]``, in turns in
memory and on a real SQLite file.  What fails is printed with its seed and the shortest story found
that fails too; the exit status is then 1.  ``--seed N`` tells one story in full.
"""

import argparse
import sys
import time
from itertools import count

from tests.simulation.simulation import LENGTH, Run, shortened, simulate
from tests.simulation.story import story

FILE_EVERY = 4
"""One run in so many is on a file; those take longer."""
LINES_SHOWN = 60


def main() -> int:
    """Run as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--count", type=int, default=None)
    parser.add_argument("--from", dest="first", type=int, default=None)
    parser.add_argument("--steps", type=int, default=LENGTH)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    if given.seed is not None:
        run = simulate(given.seed, steps=story(given.seed, given.steps))
        sys.stdout.write("\n".join((*run.lines, *run.violations, run.digest)) + "\n")
        return 1 if run.violations else 0
    began_s = time.monotonic()
    first = int(time.time()) if given.first is None else given.first
    seconds = 60.0 if given.seconds is None and given.count is None else given.seconds
    for done in count():
        took_s = time.monotonic() - began_s
        over = seconds is not None and took_s >= seconds
        if over or (given.count is not None and done >= given.count):
            break
        seed, on_file = first + done, done % FILE_EVERY == FILE_EVERY - 1
        _progress(done, given.steps, took_s, seed)
        run = simulate(seed, on_file=on_file, steps=story(seed, given.steps))
        if run.violations:
            _tell(run, on_file=on_file)
            return 1
    _progress(done, given.steps, time.monotonic() - began_s, first + done)
    sys.stdout.write(f"\nseeds {first} to {first + done - 1}: every rule held\n")
    return 0


def _progress(done: int, steps: int, took_s: float, seed: int) -> None:
    end = "\r" if sys.stdout.isatty() else ""
    if end or done % 100 == 0:
        line = f"{done} runs of {steps} steps in {took_s:.0f} s, now seed {seed}"
        sys.stdout.write(line + (end or "\n"))
        sys.stdout.flush()


def _tell(run: Run, *, on_file: bool) -> None:
    place = "on a file" if on_file else "in memory"
    sys.stdout.write(f"\nseed {run.seed} {place} fails after {run.after} steps:\n")
    sys.stdout.write("\n".join(run.violations) + "\n\nmade short:\n")
    short = shortened(run, on_file=on_file)
    for step in short.steps:
        sys.stdout.write(f"  {step}\n")
    sys.stdout.write("\n" + "\n".join(short.lines[-LINES_SHOWN:]) + "\n")
    sys.stdout.write("\n".join(short.violations) + "\n")
    sys.stdout.write(
        f"\nseed {run.seed} {place}; steps {[one.number for one in short.steps]}\n"
        "Put a line into tests/simulation/seeds.txt once it is mended.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
