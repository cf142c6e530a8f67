"""A writer is killed anywhere in a whole scenario: what was acknowledged is there, and whole."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PARTS = 3
OPERATIONS_MAX = 1_000
"""More than a part of the scenario has."""
MOMENTS = 700


def killed(folder: Path, mode: str, *, first: int, count: int, every: int = 1) -> Any:
    """Let a process of its own fork and kill; return what it tells."""
    values = [str(one) for one in (folder, mode, first, count, every)]
    command = [sys.executable, "-m", "tests.crash.killing", *values]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout)


def test_a_writer_killed_at_some_writes_loses_nothing(folder: Path) -> None:
    told = killed(folder, "step", first=2, count=12, every=127)

    assert told["lost"] == []
    assert told["kills"] == 12
    assert told["contents"] > 6


def test_a_writer_killed_at_random_moments_loses_nothing(folder: Path) -> None:
    told = killed(folder, "moment", first=1, count=10)

    assert told["lost"] == []
    assert told["kills"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_writer_killed_at_each_write_loses_nothing(folder: Path, part: int) -> None:
    told = killed(folder, "step", first=part, count=OPERATIONS_MAX, every=PARTS)

    assert told["lost"] == []
    assert told["kills"] == len(range(part, told["operations"], PARTS))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_writer_killed_at_any_moment_loses_nothing(folder: Path, part: int) -> None:
    told = killed(folder, "moment", first=part, count=MOMENTS)

    assert told["lost"] == []
    assert told["kills"] > MOMENTS // 2
