"""What the page shows: sums over the whole log, and the latest of everything in detail.

Ids, labels, numbers and reasons only: neither the log nor this holds a text or a question.  Every
list has a bound, and says how many there were.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

OWNER_DAYS_MAX = 20_000
RESERVATIONS_MAX = 2_000
SELECTIONS_MAX = 300
ERASURES_MAX = 1_000
ENTRIES_OF_SELECTION_MAX = 50
LEFT_OUT_OF_SELECTION_MAX = 60
PACKS_OF_SELECTION_MAX = 10
IDS_OF_PACK_MAX = 60

T = TypeVar("T")


@dataclass(slots=True)
class Cell:
    """Reservations of one owner, day, kind and outcome."""

    count: int = 0
    charged_quanta: int = 0


@dataclass(slots=True, kw_only=True)
class OwnerDay:
    """What an owner's reservations of one UTC day came to."""

    tenant: str
    owner: str
    day: str
    ceiling_quanta: int
    """As the day's last admission recorded it."""
    ceiling_requests: int
    reserved_quanta: int = 0
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    """By kind and outcome."""

    @property
    def requests(self) -> int:
        """How many reservations were admitted."""
        return sum(cell.count for cell in self.cells.values())

    @property
    def charged_quanta(self) -> int:
        """What counts against the day, pending and unknown included."""
        return sum(cell.charged_quanta for cell in self.cells.values())


@dataclass(slots=True, kw_only=True)
class ReservationLife:
    """One reservation, from its admission to its outcome."""

    tenant: str
    owner: str
    reservation_id: str
    kind: str
    outcome: str
    day: str
    admitted_at: datetime
    ended_at: datetime | None = None
    reserved_quanta: int
    charged_quanta: int
    usage_tokens: int | None = None
    reason: str = ""
    """Why it became unknown, and who reconciled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEntry:
    """One selected entry."""

    entry_id: str
    version: int
    score: float
    dense_rank: int | None
    dense_score: float | None
    sparse_rank: int | None
    sparse_score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackShown:
    """One pack of a selection."""

    number: int
    at: datetime
    digest: str
    tokens: int
    token_budget: int
    token_counter: str
    included: tuple[str, ...]
    included_count: int
    omitted: tuple[tuple[str, str], ...]
    """(id, reason)."""
    omitted_count: int


@dataclass(slots=True, kw_only=True)
class SelectionShown:
    """One stage's selection, and the packs that were made of it."""

    tenant: str
    owner: str
    principal: str
    session: str
    stage: str
    kind: str
    mode: str
    mode_reason: str
    at: datetime
    limit: int
    filter: str
    embedding_tuple: str
    entries: tuple[ChosenEntry, ...]
    entries_count: int
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    """(reason, ids), in the order recorded."""
    left_out_count: int
    packs: list[PackShown] = field(default_factory=list)
    """The latest of them, oldest first."""
    packs_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureShown:
    """One erased entry; what it said is gone."""

    tenant: str
    owner: str
    entry_id: str
    kind: str
    scope: str
    sensitivity: str
    versions: int
    remembered_at: datetime
    erased_at: datetime
    reason: str


class Latest(Generic[T]):
    """Keeps those of many things that have the highest keys, and counts them all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[str, int, T]] = []
        self.count = 0

    def add(self, key: str, one: T) -> None:
        """Take one in; ``key`` sorts as it came to be: a time or a day."""
        self.count += 1
        item = (key, self.count, one)
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, item)
        elif item > self._heap[0]:
            heapq.heapreplace(self._heap, item)

    def __iter__(self) -> Iterator[T]:
        """Iterate over what was kept, latest first."""
        return (one for _, _, one in sorted(self._heap, key=lambda item: item[:2], reverse=True))

    def __len__(self) -> int:
        return len(self._heap)


@dataclass(slots=True)
class Picture:
    """All that the page shows of the log."""

    owner_days: Latest[OwnerDay] = field(default_factory=lambda: Latest(OWNER_DAYS_MAX))
    reservations: Latest[ReservationLife] = field(default_factory=lambda: Latest(RESERVATIONS_MAX))
    selections: Latest[SelectionShown] = field(default_factory=lambda: Latest(SELECTIONS_MAX))
    erasures: Latest[ErasureShown] = field(default_factory=lambda: Latest(ERASURES_MAX))
    entries: int = 0
    corrections: int = 0
    packs: int = 0
    withdrawals: int = 0
    events: int = 0
    unreadable: int = 0
    """Events that couldn't be read and are in nothing below; the findings name them."""
    stopped: str = ""
    """Why reading ended early, if it did."""
