"""What every vector outbox promises.

Enrol an adapter by subclassing :class:`VectorOutboxContract`::

    class TestMyVectorOutbox(VectorOutboxContract):
        @contextmanager
        def opened(
            self, folder: Path, clock: Clock
        ) -> Generator[tuple[VectorOutbox, Transactions]]:
            with MyStore.open(folder) as store:
                yield MyVectorOutbox(store, clock), MyTransactions(store)
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.transactions import Transactions
from remembrancer.application.ports.vector_indexes import IndexState, VectorIndex
from remembrancer.application.ports.vector_outbox import (
    OutboxErasure,
    OutboxVector,
    VectorOutbox,
)
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.rollback import rolled_back
from remembrancer.contracts.vector_examples import EAST, FIRST, NORTH, SECOND, THIRD
from remembrancer.contracts.vector_indexes import ELSEWHERE, SPACE
from remembrancer.domain.errors import ImpossibleVectorError

THERE = VectorIndex(
    number=1, embedding_tuple=SPACE, state=IndexState.ACTIVE, position=0, place=ELSEWHERE
)
OTHER = replace(THERE, number=2, state=IndexState.BUILDING)
NAN = float("nan")


def ana(vector: Sequence[float] | None = EAST, version: int = 1) -> OutboxVector:
    """Return a version of Ana's entry."""
    return OutboxVector(tenant="acme", owner="ana", entry_id=FIRST, version=version, vector=vector)


def ben(vector: Sequence[float] | None = NORTH) -> OutboxVector:
    """Return Ben's entry."""
    return OutboxVector(tenant="acme", owner="ben", entry_id=SECOND, version=1, vector=vector)


ERASED = OutboxErasure(tenant="acme", owner="ana", entry_id=FIRST, versions=2)
ERASED_LATER = OutboxErasure(tenant="acme", owner="ben", entry_id=SECOND, versions=1)


class VectorOutboxContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened(
        self, folder: Path, clock: Clock
    ) -> AbstractContextManager[tuple[VectorOutbox, Transactions]]:
        """Open an outbox kept in ``folder``, empty at first, and its store's transactions.

        A store with a clock of its own may leave ``clock`` aside: see :meth:`wait`.
        """

    def wait(self, clock: FixedClock, seconds: float) -> None:
        """Let time pass for the store."""
        clock.advance(timedelta(seconds=seconds))

    @pytest.fixture
    def clock(self) -> FixedClock:
        return FixedClock()

    @pytest.fixture
    def both(
        self, tmp_path: Path, clock: FixedClock
    ) -> Iterator[tuple[VectorOutbox, Transactions]]:
        with self.opened(tmp_path, clock) as both:
            yield both

    @pytest.fixture
    def outbox(self, both: tuple[VectorOutbox, Transactions]) -> VectorOutbox:
        return both[0]

    @pytest.fixture
    def transactions(self, both: tuple[VectorOutbox, Transactions]) -> Transactions:
        return both[1]

    # -- Vectors -----------------------------------------------------------

    def test_an_empty_outbox_has_nothing(self, outbox: VectorOutbox) -> None:
        assert outbox.vectors(THERE, [(FIRST, 1)]) == {}
        assert outbox.erasures(THERE, limit=10) == []
        assert outbox.count(THERE) == (0, 0)

    def test_gives_back_what_was_left(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana([0.1, 2, 3e38, -1e-44]), ben(None))

        found = outbox.vectors(THERE, [(FIRST, 1), (SECOND, 1), (THIRD, 1)])

        assert set(found) == {(FIRST, 1), (SECOND, 1)}
        one, other = found[FIRST, 1], found[SECOND, 1]
        assert one.vector is not None
        assert list(one.vector) == list(array("f", [0.1, 2, 3e38, -1e-44]))
        assert (one.tenant, one.owner, one.entry_id, one.version) == ("acme", "ana", FIRST, 1)
        assert (other.owner, other.vector) == ("ben", None)

    def test_versions_and_indexes_are_kept_apart(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana(EAST, 1), ana(NORTH, 2))

        assert outbox.vectors(THERE, [(FIRST, 3)]) == {}
        assert outbox.vectors(OTHER, [(FIRST, 1), (FIRST, 2)]) == {}
        assert set(outbox.vectors(THERE, [(FIRST, 1), (FIRST, 2)])) == {(FIRST, 1), (FIRST, 2)}

    def test_a_later_vector_replaces_the_earlier(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana(EAST))

        leave(outbox, transactions, THERE, ana(NORTH))

        [found] = outbox.vectors(THERE, [(FIRST, 1)]).values()
        assert list(found.vector or []) == list(NORTH)
        assert outbox.count(THERE) == (1, 0)

    @pytest.mark.parametrize("vector", [[0, 0, 0, 0], [1, 0, NAN, 0], [1, 0, 0]])
    def test_refuses_an_impossible_vector_and_all_with_it(
        self, outbox: VectorOutbox, transactions: Transactions, vector: list[float]
    ) -> None:
        with pytest.raises(ImpossibleVectorError):
            leave(outbox, transactions, THERE, ben(), ana(vector))

        assert outbox.count(THERE) == (0, 0)

    def test_what_has_arrived_is_taken_out(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana(), ben(None))
        leave(outbox, transactions, OTHER, ana())

        outbox.remove(THERE, list(outbox.vectors(THERE, [(FIRST, 1)]).values()))

        assert outbox.vectors(THERE, [(FIRST, 1)]) == {}
        assert outbox.count(THERE) == (1, 0)
        assert outbox.count(OTHER) == (1, 0)

    def test_taking_out_what_is_not_there_is_no_error(self, outbox: VectorOutbox) -> None:
        outbox.remove(THERE, [ana()])

        assert outbox.count(THERE) == (0, 0)

    # -- Erasures ----------------------------------------------------------

    def test_an_erased_entry_is_noted_for_every_index_and_its_vectors_go(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana(EAST, 1), ana(EAST, 2), ben())

        with transactions.acting_for("acme", "ana"), transactions.begin():
            outbox.erase([THERE, OTHER], ERASED)

        assert outbox.vectors(THERE, [(FIRST, 1), (FIRST, 2)]) == {}
        assert outbox.erasures(THERE, limit=10) == [ERASED]
        assert outbox.erasures(OTHER, limit=10) == [ERASED]
        assert outbox.count(THERE) == (1, 1)

    def test_vectors_go_also_where_no_index_has_to_hear_of_it(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana())

        with transactions.acting_for("acme", "ana"), transactions.begin():
            outbox.erase([], ERASED)

        assert outbox.count(THERE) == (0, 0)

    def test_the_oldest_erasures_come_first(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        erase(outbox, transactions, ERASED_LATER)
        erase(outbox, transactions, ERASED)

        assert outbox.erasures(THERE, limit=1) == [ERASED_LATER]
        assert outbox.erasures(THERE, limit=2) == [ERASED_LATER, ERASED]

    def test_an_erasure_that_has_arrived_is_taken_out(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        erase(outbox, transactions, ERASED)
        erase(outbox, transactions, ERASED_LATER)

        outbox.erased(THERE, [ERASED])

        assert outbox.erasures(THERE, limit=10) == [ERASED_LATER]

    # -- Life --------------------------------------------------------------

    def test_nothing_is_on_its_way_to_a_forgotten_index(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana())
        leave(outbox, transactions, OTHER, ana())
        erase(outbox, transactions, ERASED_LATER)

        outbox.forget(THERE)

        assert outbox.count(THERE) == (0, 0)
        assert outbox.count(OTHER) == (1, 0)

    def test_a_rollback_takes_everything_back(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana())

        with transactions.acting_for("acme", "ana"), rolled_back(transactions):
            outbox.put(THERE, [ana(NORTH, 2)])
            outbox.erase([THERE], ERASED)
            outbox.put(THERE, [ana(NORTH, 1)])

        assert outbox.count(THERE) == (1, 0)
        [found] = outbox.vectors(THERE, [(FIRST, 1)]).values()
        assert list(found.vector or []) == list(EAST)

    def test_shows_no_vector_in_its_repr(
        self, outbox: VectorOutbox, transactions: Transactions
    ) -> None:
        leave(outbox, transactions, THERE, ana([0.1234567, 0, 0, 0]))

        assert "0.12345" not in f"{outbox!r} {outbox.vectors(THERE, [(FIRST, 1)])!r}"

    # -- Only one carries over ---------------------------------------------

    def test_a_claim_keeps_others_away_while_it_lasts(
        self, outbox: VectorOutbox, clock: FixedClock
    ) -> None:
        assert outbox.claim(THERE, "one", lease_s=10)

        self.wait(clock, 1)

        assert not outbox.claim(THERE, "other", lease_s=10)

    def test_its_holder_can_prolong_a_claim(self, outbox: VectorOutbox, clock: FixedClock) -> None:
        outbox.claim(THERE, "one", lease_s=2)
        self.wait(clock, 1)

        assert outbox.claim(THERE, "one", lease_s=60)

        self.wait(clock, 2)
        assert not outbox.claim(THERE, "other", lease_s=1)

    def test_a_claim_ends_by_itself(self, outbox: VectorOutbox, clock: FixedClock) -> None:
        outbox.claim(THERE, "one", lease_s=1)

        self.wait(clock, 1.5)

        assert outbox.claim(THERE, "other", lease_s=1)

    def test_a_released_claim_is_free_at_once(self, outbox: VectorOutbox) -> None:
        outbox.claim(THERE, "one", lease_s=60)

        outbox.release(THERE, "one")

        assert outbox.claim(THERE, "other", lease_s=60)

    def test_a_claim_is_of_one_index(self, outbox: VectorOutbox) -> None:
        outbox.claim(THERE, "one", lease_s=60)

        assert outbox.claim(OTHER, "other", lease_s=60)

    def test_only_its_holder_releases_a_claim(self, outbox: VectorOutbox) -> None:
        outbox.claim(THERE, "one", lease_s=60)

        outbox.release(THERE, "other")

        assert not outbox.claim(THERE, "other", lease_s=60)


def leave(
    outbox: VectorOutbox, transactions: Transactions, index: VectorIndex, *vectors: OutboxVector
) -> None:
    """Leave vectors, each in its owner's name."""
    with transactions.begin():
        for one in sorted(vectors, key=lambda one: one.owner):
            with transactions.acting_for(one.tenant, one.owner):
                outbox.put(index, [one])


def erase(outbox: VectorOutbox, transactions: Transactions, erasure: OutboxErasure) -> None:
    """Note an erasure, in its owner's name."""
    with transactions.acting_for(erasure.tenant, erasure.owner), transactions.begin():
        outbox.erase([THERE], erasure)
