"""Ledgers that this process has decided upon, and whose turn it is for each."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.reservation_ledger import ReservationLedger

KNOWN_MAX = 1_024
"""Owners whose ledger is remembered, to read only what others have added since."""

_Owner = tuple[str, str]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class KnownLedger:
    """A ledger as it was committed."""

    ledger: ReservationLedger
    head: bytes | None
    """Hash of its last event; None if only the event tells."""
    snapshot_version: int = 0
    """Of the newest snapshot of it that this process has met."""


@dataclass(slots=True)
class _Turn:
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: int = 0
    """How many threads have it or wait for it."""


class KnownLedgers:
    """Committed ledgers by owner, each lent to one decision at a time, the latest used kept.

    A ledger is taken out before it decides and put back after the commit.  So what was rolled
    back is never met again, and what other processes have added since is read from the log.
    An owner's threads wait for each other here, not with a connection each at the server.
    """

    def __init__(self, *, store: str) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._by_owner: dict[_Owner, KnownLedger] = {}
        self._turns: dict[_Owner, _Turn] = {}

    def in_turn(
        self,
        tenant: str,
        owner: str,
        decide: Callable[[KnownLedger | None], _Result],
        *,
        wait_s: float,
    ) -> _Result:
        """Let only this thread of the process decide for an owner; return what was decided.

        Args:
            tenant: whose ledger it is.
            owner: as ``tenant``.
            decide: gets what is known of the ledger, which is known no more until it is put back.
            wait_s: how long to wait for others.

        Raises:
            StoreUnavailableError: others were before it for too long.
        """
        with self._guard:
            turn = self._turns.setdefault((tenant, owner), _Turn())
            turn.asked += 1
        try:
            if not turn.lock.acquire(timeout=wait_s):
                problem = "other threads decide for this owner for too long"
                raise StoreUnavailableError(store=self._store, problem=problem)
            try:
                with self._guard:
                    known = self._by_owner.pop((tenant, owner), None)
                return decide(known)
            finally:
                turn.lock.release()
        finally:
            with self._guard:
                turn.asked -= 1
                if not turn.asked:
                    del self._turns[tenant, owner]

    def put(self, known: KnownLedger) -> None:
        """Know a ledger as it was committed."""
        with self._guard:
            self._by_owner[known.ledger.tenant, known.ledger.owner] = known
            if len(self._by_owner) > KNOWN_MAX:
                del self._by_owner[next(iter(self._by_owner))]
