"""Threads of several processes on one file, and processes that are killed: nothing half done."""

import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.application.agreement import Told, assert_agreement
from tests.application.house import House, open_house, postgres_place, replay_of

from remembrancer.composition.settings import StoreSettings
from remembrancer.domain import EntryId
from remembrancer.domain.l3_selection import L3Selection

ROOT = Path(__file__).parents[2]


def _busy(path: Path, seed: str, *, threads: int, steps: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.application.busy_process",
            *(str(path), seed, str(threads), str(steps)),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _acknowledged(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _check(house: House, acknowledged: list[dict[str, Any]]) -> None:
    """What was acknowledged is there; what is there agrees with itself, and can be replayed."""
    told = assert_agreement(house.store, common_word="common")
    for one in acknowledged:
        assert len({EntryId(UUID(entry_id)) in told for entry_id in one.get("batch", "")}) < 2
        for entry_id in one.get("remembered", ()):
            assert EntryId(UUID(entry_id)) in told
        if "corrected" in one:
            assert len(_entry(told, one["corrected"]).digests) >= one["version"]
        if "erased" in one:
            assert _entry(told, one["erased"]).erased
    for one in acknowledged:
        if "digest" in one:
            again = house.memory.replay(one["session"], one["stage"], **replay_of())
            if not again.differences:
                assert again.digest == one["digest"]
            assert {difference.reason for difference in again.differences} <= {"erased"}
    _check_selections(house)


def _entry(told: dict[EntryId, Told], entry_id: str) -> Told:
    return told[EntryId(UUID(entry_id))]


def _check_selections(house: House) -> None:
    """Every committed selection has its key; every recorded pack its items."""
    for event in house.events():
        if isinstance(event, L3Selection.L3EntriesSelected):
            assert house.store.sessions.key(event.originator_id)
        elif isinstance(event, L3Selection.ContextPackAssembled):
            assert house.store.sessions.items(event.originator_id, number=event.number)


@pytest.mark.parametrize(
    "steps", [6, pytest.param(100, marks=pytest.mark.slow)], ids=["short", "long"]
)
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_eight_threads_in_two_processes_lose_nothing(
    tmp_path: Path, steps: int, backend: str
) -> None:
    if backend == "sqlite":
        _use_at_once(tmp_path / "memory.db", tmp_path / "memory.db", steps)
    else:
        with postgres_place(tmp_path) as place:
            _use_at_once(tmp_path, place, steps)


def _use_at_once(named: Path, path: Path | StoreSettings, steps: int) -> None:
    processes = [_busy(named, str(number), threads=8, steps=steps) for number in range(2)]
    told = [process.communicate(timeout=280) for process in processes]

    assert [errors for _, errors in told] == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    acknowledged = [one for out, _ in told for one in _acknowledged(out.splitlines(keepends=True))]
    with open_house(path) as house:
        _check(house, acknowledged)
        entries = assert_agreement(house.store)
    remembered = {entry for one in acknowledged for entry in one.get("remembered", ())}
    erased = {one["erased"] for one in acknowledged if "erased" in one}
    corrected = sum("corrected" in one for one in acknowledged)
    assert {str(entry_id) for entry_id in entries} == remembered
    assert {str(entry_id) for entry_id, one in entries.items() if one.erased} == erased
    assert sum(len(one.digests) - 1 for one in entries.values()) == corrected


@pytest.mark.parametrize(
    "kills", [6, pytest.param(150, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_a_killed_process_leaves_all_or_nothing_of_each_call(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "memory.db"
    chance = random.Random(7)  # noqa: S311 -- reproducible, guards nothing
    acknowledged: list[dict[str, Any]] = []
    for number in range(kills):
        process = _busy(path, f"kill{number}", threads=2, steps=10_000)
        assert process.stdout is not None
        lines = [process.stdout.readline()]  # It is at work.
        lines += [process.stdout.readline() for _ in range(chance.randrange(25))]
        process.kill()
        rest, errors = process.communicate(timeout=60)
        assert errors == ""
        acknowledged += _acknowledged([*lines, *rest.splitlines(keepends=True)])
        with open_house(path) as house:
            _check(house, acknowledged if number % 5 == 0 or number == kills - 1 else [])

    assert len(acknowledged) >= kills
