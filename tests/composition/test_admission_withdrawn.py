"""The end of an admission, while the memory runs and while a request is out."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.composition.remote_world import (
    QUERY,
    WHO,
    World,
    a_context,
    a_query,
    an_entry,
    open_world,
    until,
)

from remembrancer.contracts.loopback_provider import honest, silent
from remembrancer.domain.eligibility import QueryStatus
from remembrancer.domain.errors import NotAdmittedError

WITHIN_S = 1.0


def _revoked(world: World) -> None:
    world.revoke()


def _ceiling_zero(world: World) -> None:
    world.change(ceilings={"quanta_per_day": 0})


def _other_url(world: World) -> None:
    world.change(provider={"url": "http://127.0.0.1:9/v1"})


def _settings_broken(world: World) -> None:
    world.settings = None  # type: ignore[assignment] # whatever reading them again may give


def _by_the_host(world: World) -> None:
    world.opened[-1].withdraw_admission()


WITHDRAWALS: list[Callable[[World], None]] = [
    _revoked, _ceiling_zero, _other_url, _settings_broken, _by_the_host,
]  # fmt: skip


@pytest.mark.parametrize("withdraw", WITHDRAWALS)
def test_withdrawn_it_empties_the_cache_within_a_second(
    withdraw: Callable[[World], None], tmp_path: Path
) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()
        memory.prepare([QUERY], a_context(), **WHO)
        lookup = memory.semantic_lookup()
        assert lookup.lookup(QUERY, a_context()) is not None

        withdraw(world)

        until(lambda: lookup.lookup(QUERY, a_context()) is None, within_s=WITHIN_S)


@pytest.mark.parametrize("withdraw", WITHDRAWALS)
def test_withdrawn_it_refuses_with_a_type_afterwards_and_nothing_leaves(
    withdraw: Callable[[World], None], tmp_path: Path
) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()
        memory.prepare([QUERY], a_context(), **WHO)
        preparer = memory.query_preparer()
        before = len(world.server.requests)

        withdraw(world)
        until(lambda: _refuses(memory.query_preparer), within_s=WITHIN_S)

        with pytest.raises(NotAdmittedError):
            memory.prepare([a_query("another")], a_context(), **WHO)
        memory.remember(an_entry("A rule for later."))
        assert preparer is not None
        assert len(world.server.requests) == before


@pytest.mark.parametrize("withdraw", WITHDRAWALS)
def test_withdrawn_in_flight_the_request_is_cancelled_within_a_second(
    withdraw: Callable[[World], None], tmp_path: Path
) -> None:
    with open_world(tmp_path, silent()) as world, ThreadPoolExecutor() as pool:
        world.admit()
        memory = world.open()
        preparing = pool.submit(memory.prepare, [QUERY], a_context(), **WHO)
        assert world.server.arrived.wait(5)
        at = time.monotonic()

        withdraw(world)

        assert world.server.gone.wait(WITHIN_S), "the connection was not closed"
        [outcome] = preparing.result(timeout=5).outcomes
        assert time.monotonic() - at < WITHIN_S + 0.5
        assert outcome.status is QueryStatus.UNKNOWN
        [day] = memory.spend(**WHO)
        assert (day.requests, day.unknown, day.pending) == (1, 1, 0)
        assert day.charged_quanta == day.reserved_quanta == day.unknown_quanta


def test_settings_changed_back_do_not_revive_what_was_withdrawn(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()
        world.change(ceilings={"quanta_per_day": 0})
        until(lambda: _refuses(memory.query_preparer), within_s=WITHIN_S)

        world.change()

        assert _refuses(memory.query_preparer)
        assert world.open().query_preparer() is not None


def test_the_log_says_that_the_context_ended(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.admit()
        memory = world.open()
        memory.prepare([QUERY], a_context(), **WHO)

        memory.withdraw_admission(reason="operator_said_so")

        log = memory._container.store().log
        topics = [type(one.event).__name__ for one in log.follow(after_position=0, limit=100)]
        assert topics[-1] == "AdmissionWithdrawn"


FORKED = """
import os, sys
from pathlib import Path
from tests.composition.remote_world import *
with open_world(Path(sys.argv[1])) as world:
    world.admit()
    memory = world.open()
    query = a_query("Which rule binds releases?")
    memory.prepare([query], a_context(), **WHO)
    child = os.fork()
    if not child:
        lookup = memory.semantic_lookup()
        assert lookup.lookup(query, a_context()) is not None
        until(lambda: lookup.lookup(query, a_context()) is None, within_s=5)
        os._exit(7)
    world.revoke()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_hears_of_it_too(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert run.returncode == 0, run.stderr


def test_withdrawn_while_an_entry_is_embedded_the_entry_is_kept(tmp_path: Path) -> None:
    with open_world(tmp_path, silent()) as world, ThreadPoolExecutor() as pool:
        world.admit()
        memory = world.open()
        remembering = pool.submit(memory.remember, an_entry("A rule for releases."))
        assert world.server.arrived.wait(5)

        world.revoke()

        assert world.server.gone.wait(WITHIN_S)
        entry_id = remembering.result(timeout=5)
        [found] = memory.recall(a_query("releases"), a_context()).entries
        assert found.entry_id == entry_id
        [day] = memory.spend(**WHO)
        assert (day.unknown, day.charged_quanta) == (1, day.reserved_quanta)


def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    with open_world(tmp_path, honest()) as world:
        world.admit()
        memory = world.open()
        assert "remembrancer-admission" in {thread.name for thread in threading.enumerate()}

        memory.close()

        assert "remembrancer-admission" not in {thread.name for thread in threading.enumerate()}


def _refuses(asked: Callable[[], object]) -> bool:
    try:
        asked()
    except NotAdmittedError:
        return True
    return False
