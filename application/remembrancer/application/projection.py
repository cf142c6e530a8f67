"""Use case: carry entries to the index that is kept elsewhere (adr/0020).

It follows the log from the position that the index has reached: at least once, each entry's
events in order, a batch at a time and none before the last was acknowledged.  A crash anywhere
repeats the batch and loses nothing.  Erasures go first, however far ahead of the position.
"""

from collections.abc import Callable
from dataclasses import dataclass

from remembrancer.application.entry_versions import touched
from remembrancer.application.index_points import IndexPoints
from remembrancer.application.ports import (
    EventLog,
    IndexState,
    Randomness,
    Transactions,
    VectorIndex,
    VectorIndexes,
    VectorOutbox,
)
from remembrancer.application.remember import Progress
from remembrancer.domain.errors import (
    SettingsError,
    StoreClosedError,
    StoreCorruptError,
    StoreUnavailableError,
)

EVENTS_AT_ONCE = 512
ERASURES_AT_ONCE = 256
LEASE_S = 60.0
"""For a batch.  Whoever takes over from one that was only slow repeats its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """How far entries have been carried."""

    index: VectorIndex | None
    """None where the store keeps the vectors itself: nothing has to be carried."""
    end: int
    """Last position of the log."""
    waiting_vectors: int = 0
    waiting_erasures: int = 0
    busy: bool = False
    """Whether another is carrying at present."""

    @property
    def behind(self) -> int:
        """How many positions the index is behind the log."""
        return 0 if self.index is None else max(0, self.end - self.index.position)


class Projection:
    """Carries what the store has left for indexes elsewhere."""

    def __init__(  # one port each
        self,
        *,
        log: EventLog,
        indexes: VectorIndexes,
        outbox: VectorOutbox,
        points: IndexPoints,
        transactions: Transactions,
        randomness: Randomness,
    ) -> None:
        self._log = log
        self._indexes = indexes
        self._outbox = outbox
        self._points = points
        self._transactions = transactions
        self._randomness = randomness
        self._prepared: set[int] = set()

    def __call__(
        self,
        *,
        progress: Progress | None = None,
        go_on: Callable[[], bool] = lambda: True,
    ) -> Projected:
        """Carry all there is, and return how it stands then.

        Asked between batches, ``go_on`` may end it early.  What another carries at present, in
        this process or elsewhere, is left to it: see :attr:`Projected.busy`.

        Raises:
            StoreUnavailableError: the index doesn't answer; what was acknowledged is recorded.
        """
        holder = str(self._randomness.uuid())
        with self._transactions.over_all_tenants():
            busy = False
            for index in self._elsewhere():
                if not self._outbox.claim(index, holder, lease_s=LEASE_S):
                    busy = busy or index.state is IndexState.ACTIVE
                    continue
                try:
                    self._carry(index, holder, progress, go_on)
                finally:
                    self._outbox.release(index, holder)
            return self._standing(busy=busy)

    def standing(self) -> Projected:
        """Return how far entries have been carried; asks nobody but the store."""
        with self._transactions.over_all_tenants(), self._transactions.snapshot():
            return self._standing(busy=False)

    def waits(self) -> bool:
        """Say whether there is anything to carry."""
        with self._transactions.over_all_tenants(), self._transactions.snapshot():
            end = self._log.position()
            return any(
                self._outbox.count(one)[1] or (_is_active(one) and one.position < end)
                for one in self._elsewhere()
            )

    def erasures(self) -> bool:
        """Carry erasures alone; say whether nothing is left to carry.  Never fails for it."""
        if not self._elsewhere():
            return True
        try:
            with self._transactions.over_all_tenants():
                for index in self._elsewhere():
                    self._carry_erasures(index)
        except (SettingsError, StoreClosedError, StoreCorruptError, StoreUnavailableError):
            return False
        return True

    # -- Inside ------------------------------------------------------------

    def _elsewhere(self) -> list[VectorIndex]:
        """Return the indexes that are kept elsewhere, the one that answers first."""
        found = [one for one in self._indexes.all() if one.follows]
        return sorted(found, key=lambda one: not _is_active(one))

    def _standing(self, *, busy: bool) -> Projected:
        elsewhere = self._elsewhere()
        active = next((one for one in elsewhere if _is_active(one)), None)
        return Projected(
            index=active,
            end=self._log.position(),
            waiting_vectors=0 if active is None else self._outbox.count(active)[0],
            waiting_erasures=sum(self._outbox.count(one)[1] for one in elsewhere),
            busy=busy,
        )

    def _carry(
        self,
        index: VectorIndex,
        holder: str,
        progress: Progress | None,
        go_on: Callable[[], bool],
    ) -> None:
        index = self._as_it_is(index)
        self._carry_erasures(index)
        while _is_active(index) and go_on():
            records = self._log.follow(after_position=index.position, limit=EVENTS_AT_ONCE)
            if not records or not self._outbox.claim(index, holder, lease_s=LEASE_S):
                return
            self._prepare(index)
            entry_ids, erased = touched(record.event for record in records)
            brought = self._points.bring(index, entry_ids, erased)
            with self._transactions.begin():
                self._points.done(index, brought.rows)
                index = self._indexes.advance(index, records[-1].position)
            if progress is not None:
                progress(index.position, self._log.position())
            self._carry_erasures(index)

    def _as_it_is(self, index: VectorIndex) -> VectorIndex:
        """Return the index as the one before has left it, who carried until the claim was free."""
        return next((one for one in self._indexes.all() if one.number == index.number), index)

    def _carry_erasures(self, index: VectorIndex) -> None:
        while waiting := self._outbox.erasures(index, limit=ERASURES_AT_ONCE):
            gone = {one.entry_id: one.versions for one in waiting}
            if index.position > 0:
                self._prepare(index)
            # At 0 there may be what was carried and not recorded.
            if index.position > 0 or self._indexes.holds(index):
                self._points.erase(index, gone)
            with self._transactions.begin():
                for one in sorted(waiting, key=lambda one: (one.tenant, one.owner)):
                    with self._transactions.acting_for(one.tenant, one.owner):
                        self._outbox.erased(index, [one])

    def _prepare(self, index: VectorIndex) -> None:
        if index.position == 0 or index.number not in self._prepared:
            self._indexes.prepare(index)
            self._prepared.add(index.number)


def _is_active(index: VectorIndex) -> bool:
    return index.state is IndexState.ACTIVE
