"""What it costs to import the library, against the three libraries that it stands on.

Fresh interpreters, in turn, so that a busy machine slows both sides.
"""

import subprocess
import sys
from functools import partial

from tests.benchmarks.row import Row, interleaved

ROUNDS = 41
RATIO_MAX = 1.3
OURS = "from remembrancer.composition import embedded"
LIBRARIES = "import eventsourcing.domain, pydantic, dependency_injector.containers"
NOTHING = "pass"


def measure() -> list[Row]:
    """Return the import's cost, without the interpreter's own start."""
    works = [partial(_run, statement) for statement in (NOTHING, OURS, LIBRARIES)]
    for work in works:
        work()  # Byte code is written once.
    start, ours, libraries = interleaved(works, rounds=ROUNDS)
    return [
        Row(
            what="import embedded",
            ours=ours - start,
            baseline=libraries - start,
            against="eventsourcing.domain, pydantic and dependency_injector",
            at_most=RATIO_MAX,
        )
    ]


def _run(statement: str) -> None:
    subprocess.run([sys.executable, "-c", statement], check=True)
