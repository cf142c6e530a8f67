"""Forks of several threads of one process."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from remembrancer.adapters.sqlite.database import Database

WAIT_S = 20


def _fork_often() -> None:
    for _ in range(10):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def test_threads_that_fork_at_once_stop_nobody(tmp_path: Path) -> None:
    done = threading.Event()

    def write_on() -> None:
        while not done.is_set():
            with database.write() as connection:
                connection.execute("INSERT OR REPLACE INTO tracking VALUES ('a', 1)")

    with Database.open(tmp_path / "memory.db") as database, ThreadPoolExecutor(3) as pool:
        writer = pool.submit(write_on)
        forks = [pool.submit(_fork_often) for _ in range(2)]
        for fork in forks:
            fork.result(WAIT_S)
        done.set()

        assert writer.result(WAIT_S) is None
