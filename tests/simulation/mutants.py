"""Every rule that is broken on purpose, and the seed that catches it.

``python -m tests.simulation.mutants [NAME ...]`` runs them, each in a process of its own, and
prints a table; the exit status is 1 if one survives.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.mutation import Mutation, install
from tests.simulation.mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
SEEDS_MAX = 300
"""How many seeds a mutant may live through."""
SURVIVED = "survived"
TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant."""

    mutation: Mutation
    caught: bool
    how: str
    """The seed and the rule that caught it, or what its process said."""


def fate_of(mutation: Mutation, *, seeds: int = SEEDS_MAX) -> Fate:
    """Run a mutant in a process of its own, until it is caught."""
    command = [
        sys.executable,
        "-m",
        "tests.simulation.mutants",
        "--one",
        mutation.name,
        str(seeds),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT_S, check=False
    )
    said = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0:
        return Fate(mutation, caught=False, how=f"broken: {done.stderr.strip()[-400:]}")
    return Fate(mutation, caught=said != SURVIVED, how=said)


def _run_one(name: str, seeds: int) -> None:
    [mutation] = [one for one in MUTATIONS if one.name == name]
    install(mutation)
    # Only now: everything must be imported with the rule broken.
    from tests.simulation.simulation import simulate  # noqa: PLC0415  # see above

    for seed in range(seeds):
        run = simulate(seed, on_file=mutation.module.startswith("adapters.sqlite"))
        if mutation.full_module not in sys.modules:
            raise SystemExit(f"{mutation.full_module} was never imported")
        if run.violations:
            rule = run.violations[0].partition(":")[0]
            sys.stdout.write(f"seed {seed}, step {run.after}: {rule}\n")
            return
    sys.stdout.write(f"{SURVIVED}\n")


def main(names: Sequence[str]) -> int:
    """Run the named mutants, or all; print the table and return the exit status."""
    chosen = [one for one in MUTATIONS if not names or one.name in names]
    width = max(len(one.name) for one in chosen)
    survivors = 0
    for mutation in chosen:
        fate = fate_of(mutation)
        survivors += not fate.caught
        mark = "caught" if fate.caught else "MISSED"
        sys.stdout.write(f"{mark}  {mutation.name:{width}}  {fate.how}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} of {len(chosen)} mutants caught\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _run_one(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1:]))
