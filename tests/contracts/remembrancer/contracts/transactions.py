"""What transactions over the ports of one store promise, shown on its event log."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import ClassVar

import pytest

from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.transactions import Transactions
from remembrancer.contracts.event_log_examples import history

Store = tuple[Transactions, EventLog]
WAIT_S = 10


class _BrokenError(Exception):
    """What a use case may raise in the middle."""


class TransactionsContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    durable: ClassVar[bool] = False
    """Whether opening the same folder again must find what was committed before."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[Store]:
        """Open transactions and the event log of one store kept in ``folder``; empty at first."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with self.opened(tmp_path) as store:
            yield store

    def test_commits_what_was_written_inside(self, store: Store) -> None:
        transactions, log = store

        with transactions.begin():
            log.append(history(1, corrections=0))
            log.append(history(2, corrections=0))

        assert log.position() == 2

    def test_reads_inside_see_the_writes(self, store: Store) -> None:
        transactions, log = store

        with transactions.begin():
            log.append(history(1, corrections=0))
            inside = log.position()

        assert inside == 1

    def test_keeps_nothing_of_a_block_that_raises(self, store: Store) -> None:
        transactions, log = store

        with pytest.raises(_BrokenError):
            _append_and_break(store, 1)

        assert log.position() == 0
        log.append(history(1, corrections=0))
        assert len(log.follow(after_position=0, limit=2)) == 1  # Behind a gap, perhaps.
        assert transactions.scrub()

    def test_blocks_nest(self, store: Store) -> None:
        transactions, log = store

        with transactions.begin():
            with transactions.begin():
                log.append(history(1, corrections=0))
            log.append(history(2, corrections=0))

        assert log.position() == 2

    def test_an_inner_block_is_not_committed_by_its_end(self, store: Store) -> None:
        transactions, log = store

        def nest_and_break() -> None:
            with transactions.begin():
                with transactions.begin():
                    log.append(history(1, corrections=0))
                _break()

        with pytest.raises(_BrokenError):
            nest_and_break()

        assert log.position() == 0

    def test_a_failed_inner_block_dooms_the_whole(self, store: Store) -> None:
        """So that nobody commits half of what an adapter meant to do as one."""
        transactions, log = store

        def swallow() -> None:
            with transactions.begin():
                log.append(history(1, corrections=0))
                with suppress(_BrokenError):
                    _append_and_break(store, 2)

        with pytest.raises(_BrokenError):
            swallow()

        assert log.position() == 0

    def test_a_doomed_transaction_is_over_with_its_end(self, store: Store) -> None:
        transactions, log = store
        with pytest.raises(_BrokenError), transactions.begin(), suppress(_BrokenError):
            _append_and_break(store, 1)

        with transactions.begin():
            log.append(history(2, corrections=0))

        assert len(log.follow(after_position=0, limit=2)) == 1

    def test_a_snapshot_may_be_taken_inside(self, store: Store) -> None:
        transactions, log = store

        with transactions.begin():
            log.append(history(1, corrections=0))
            with transactions.snapshot():
                inside = log.position()

        assert inside == 1

    def test_snapshots_nest(self, store: Store) -> None:
        transactions, log = store

        with transactions.snapshot(), transactions.snapshot():
            inside = log.position()

        assert inside == 0

    def test_a_snapshot_that_raises_is_over(self, store: Store) -> None:
        transactions, log = store
        with pytest.raises(_BrokenError), transactions.snapshot():
            _break()

        log.append(history(1, corrections=0))

        assert log.position() == 1

    def test_a_snapshot_sees_one_state(self, store: Store) -> None:
        transactions, log = store
        log.append(history(1, corrections=0))

        with transactions.snapshot():
            before = log.position()
            writer = threading.Thread(target=log.append, args=[history(2, corrections=0)])
            writer.start()
            writer.join(0.05)  # It may finish, or wait for the snapshot to end.
            after = log.position()
        writer.join(WAIT_S)

        assert (before, after) == (1, 1)
        assert log.position() == 2

    def test_another_thread_sees_no_half(self, store: Store) -> None:
        transactions, log = store
        written, looked = threading.Event(), threading.Event()

        def look() -> int:
            written.wait(WAIT_S)
            with transactions.snapshot():
                seen = log.position()
            looked.set()
            return seen

        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(look)
            with transactions.begin():
                log.append(history(1, corrections=0))
                written.set()
                looked.wait(0.05)  # It may look now, or wait for the transaction to end.
                log.append(history(2, corrections=0))

        assert seen.result() in {0, 2}

    def test_another_threads_write_is_not_drawn_in(self, store: Store) -> None:
        """Its commit waits for ours, and is not undone with ours."""
        transactions, log = store
        inside = threading.Event()

        def write() -> None:
            inside.wait(WAIT_S)
            log.append(history(2, corrections=0))

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(write)
            with suppress(_BrokenError), transactions.begin():
                log.append(history(1, corrections=0))
                inside.set()
                _break()
            other.result(WAIT_S)

        assert [one.event for one in log.follow(after_position=0, limit=9)] == history(
            2, corrections=0
        )

    def test_read_and_write_in_one_transaction_does_not_race(self, store: Store) -> None:
        """Each thread reads how many there are and adds one: no number comes twice."""
        transactions, log = store
        threads, each = 4, 10

        def add(_: int) -> list[int]:
            numbers = []
            for _i in range(each):
                with transactions.begin():
                    numbers.append(log.position())
                    log.append(history(numbers[-1] + 1, corrections=0))
            return numbers

        with ThreadPoolExecutor(threads) as pool:
            numbers = [number for one in pool.map(add, range(threads)) for number in one]

        assert sorted(numbers) == list(range(threads * each))

    def test_nothing_to_scrub_is_scrubbed(self, store: Store) -> None:
        transactions, log = store
        log.append(history(1, corrections=0))

        assert transactions.scrub()
        assert transactions.scrub()

    def test_survives_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            # The flag says so: what ends with its process can't be opened again.
            pytest.skip("this adapter does not promise durability")
        with self.opened(tmp_path) as (transactions, log), transactions.begin():
            log.append(history(1, corrections=0))
            log.append(history(2, corrections=0))

        with self.opened(tmp_path) as (_, log):
            found = [one.event.originator_version for one in log.follow(after_position=0, limit=9)]
            streams = {one.event.originator_id for one in log.follow(after_position=0, limit=9)}

        assert (found, len(streams)) == ([1, 1], 2)


def _append_and_break(store: Store, number: int) -> None:
    transactions, log = store
    with transactions.begin():
        log.append(history(number, corrections=0))
        _break()


def _break() -> None:
    raise _BrokenError
