"""Worlds from seeds: every rule holds in each, and the same seed gives the same world."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.provider import ALL
from tests.simulation.simulation import Run, shortened, simulate
from tests.simulation.story import story

ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "tests/simulation/seeds.txt"
IN_MEMORY, ON_FILE = 24, 3
LONG = 300


def once_failed() -> list[tuple[int, bool]]:
    """Return the seeds that once failed, and whether on a file."""
    lines = [one.split() for one in SEEDS.read_text().splitlines() if one[:1].isdigit()]
    return [(int(seed), place == "file") for seed, place, *_ in lines]


def assert_all_held(run: Run) -> None:
    assert run.violations == (), f"seed {run.seed}, after {run.after} steps; make simulate"


@pytest.fixture(scope="module")
def slice_of_runs() -> list[Run]:
    return [simulate(seed) for seed in range(IN_MEMORY)]


def test_every_rule_holds_in_memory(slice_of_runs: list[Run]) -> None:
    for run in slice_of_runs:
        assert_all_held(run)


@pytest.mark.parametrize("seed", range(1_000, 1_000 + ON_FILE))
def test_every_rule_holds_on_a_file(seed: int) -> None:
    assert_all_held(simulate(seed, on_file=True))


@pytest.mark.parametrize(("seed", "on_file"), once_failed())
def test_what_once_failed_holds(seed: int, on_file: bool) -> None:  # noqa: FBT001  # from a list
    assert_all_held(simulate(seed, on_file=on_file))


def test_the_slice_reaches_what_it_is_about(slice_of_runs: list[Run]) -> None:
    """Without this, the tests above could be blind."""
    seen = sum((run.seen for run in slice_of_runs), start=type(slice_of_runs[0].seen)())

    reached = {name for name, times in seen.items() if times > 0}
    assert reached >= {
        *("EntryRemembered", "EntryCorrected", "EntryErased", "L3EntriesSelected"),
        *("ContextPackAssembled", "ReservationAdmitted", "ReservationSettled"),
        *("ReservationBecameUnknown", "ReservationReconciled", "CacheContextBound"),
        *("CacheContextReplaced", "QueryVectorsPrepared", "AdmissionWithdrawn"),
        *("prepared:prepared", "cached:cached", "duplicate:duplicate", "withheld:credential"),
        *("refused:query_pending", "refused:over_money_ceiling", "unknown:timeout"),
        *("refused:over_request_ceiling", "refused:not_admitted", "unknown:not_admitted"),
        *("suspended", "clock_back", "clock_forward", "hit", "replay"),
    }
    told = "\n".join(line for run in slice_of_runs for line in run.lines)
    assert [name for name in ALL if f"provider {name} " not in told] == []


@pytest.mark.parametrize("on_file", [False, True])
def test_the_same_seed_gives_the_same_run_in_any_process(
    on_file: bool,  # noqa: FBT001  # from a list
) -> None:
    """Byte for byte: whatever the process's own hash seed is."""
    code = (
        "from tests.simulation.simulation import simulate;"
        f"print(*(simulate(seed, on_file={on_file}).digest for seed in (7, 8)))"
    )

    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(told) == 1


def test_a_longer_story_begins_as_a_shorter_one() -> None:
    assert story(5, 40)[:25] == story(5, 25)


def test_a_failing_story_is_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    from remembrancer.domain import reservation  # noqa: PLC0415  # broken in this test alone

    monkeypatch.setattr(reservation, "PENDING_QUERIES_MAX", 9)
    run = next(one for one in map(simulate, range(60)) if one.violations)

    short = shortened(run)

    assert short.violations[0].startswith("one_pending_query")
    assert len(short.steps) < 10 < len(run.steps)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_rule_holds_for_long(part: int) -> None:
    """With every seed that mutants are given: what catches one must hold without it."""
    for seed in range(part * LONG, (part + 1) * LONG):
        assert_all_held(simulate(seed, on_file=seed % 5 == 0))
