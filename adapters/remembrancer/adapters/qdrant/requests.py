"""The three requests that everything waits for: a question, points by their ids, a batch written.

The client's own methods check and copy every number in models of theirs, which takes longer than
a server's answer (adr/0019).  So a server is spoken to in the words of its protocol, over the
client's connections: ``http_requests``, ``grpc_requests``.  A folder is the client's own code, so
it is asked by its methods: ``folder_requests``.  All that is rare goes by the client's methods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from typing_extensions import override

from remembrancer.domain.identity import EntryId

if TYPE_CHECKING:
    from remembrancer.adapters.qdrant.rows import Rows

Payload = Mapping[str, Any]
Conditions = Sequence[tuple[str, tuple[str, ...]]]
"""Fields and the values of which each must have one."""
COMPLETED = "completed"
"""What Qdrant says to a write that all can see; nothing else counts."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The nearest points that are asked for."""

    direction: "Rows" = field(repr=False)
    """One row."""
    limit: int
    conditions: Conditions = field(repr=False)
    params: Mapping[str, Any]
    """How to search, in the words of both protocols."""
    with_numbers: bool
    at_least: float | None = None


class Point(NamedTuple):
    """A point that was found; a tuple, as a question finds hundreds."""

    id: EntryId
    score: float
    """Qdrant's; 0 where points were asked for by their ids."""
    numbers: bytes
    """The vector as it was given, in float32; empty where not asked for, as all that follows."""
    norm: str
    """Its length, in hexadecimal."""
    version: int | None

    @override
    def __repr__(self) -> str:
        return f"Point({self.id}, {self.score})"


@dataclass(frozen=True, slots=True)
class Batch:
    """Points to be written."""

    ids: Sequence[EntryId]
    directions: "Rows" = field(repr=False)
    """A row for each."""
    payloads: Sequence[Payload] = field(repr=False)
    """One for each; values are strings, lists of strings and whole numbers."""


class Requests(Protocol):
    """What a collection is asked; every call ends with its thread's deadline.

    What goes wrong is raised as it comes, for the link to translate.
    """

    def nearest(self, collection: str, wanted: Wanted) -> list[Point]:
        """Return Qdrant's own nearest points, best first."""
        ...

    def retrieved(
        self, collection: str, ids: Sequence[EntryId], *, with_numbers: bool
    ) -> list[Point]:
        """Return those of ``ids`` that are here."""
        ...

    def upsert(self, collection: str, batch: Batch) -> str:
        """Write, wait, order strongly; return what Qdrant says to it."""
        ...
