"""One thread's part in a database: for whom it acts, and the transactions it is in."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import psycopg

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.exchange import Call
from remembrancer.adapters.postgres.pool import Pool
from remembrancer.adapters.postgres.scope import Scope


class Everybody(Enum):
    """What a thread acts for that may see every tenant's rows."""

    EVERYBODY = "everybody"


EVERYBODY = Everybody.EVERYBODY


@dataclass(frozen=True, slots=True)
class Identity:
    """By what a transaction can be asked for, once its connection is lost."""

    xid: str
    backend: int
    timeline: str
    """Of the server's history: another server's numbers mean nothing."""


class LaterRow:
    """The row of an answer that may be still on its way."""

    def __init__(self, cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
        """Fetch nothing yet."""
        self._cursor = cursor
        self._row: tuple[Any, ...] | None = None

    def __call__(self) -> tuple[Any, ...]:
        """Return it, waiting for it the first time."""
        if self._row is None:
            self._row = self._cursor.fetchone()
            assert self._row is not None  # noqa: S101 - a SELECT without FROM
        return self._row

    def identity(self) -> Identity:
        """Return what it begins with."""
        xid, backend, timeline = self()[:3]
        return Identity(xid, backend, timeline)


@dataclass(slots=True)
class Transaction:
    """One that a connection is in."""

    connection: Connection
    pool: Pool
    writing: bool = False
    scope: Scope | None = None
    """What row security was told last."""
    locked: set[tuple[str, str]] = field(default_factory=set)
    """Owners that wait for its end."""
    identity: Callable[[], Identity] | None = None
    opening_row: Callable[[], tuple[Any, ...]] | None = None
    """The answer to the statement that tells the identity, with what else it tells."""
    bound: int | None = None
    """In a snapshot: the last position that a follower may be given."""
    holds_position: bool = False
    """Whether it has said which positions of the log it may take."""
    doom: BaseException | None = None
    """The first error of a joined block."""
    calls: list[Callable[[], None]] = field(default_factory=list)
    """What to call after the commit."""
    closing: list[Call] | None = None
    """What is sent with the commit, if that is wanted."""
    pipeline: ExitStack = field(default_factory=ExitStack)


@dataclass(slots=True)
class ThreadState:
    """Of one thread in one process."""

    blocks: list[Scope | Everybody] = field(default_factory=list)
    """For whom the thread acts, the innermost last."""
    app: Transaction | None = None
    """Under row security."""
    reader: Transaction | None = None
    """With the right to see all rows, and none to write."""
    snapshots: int = 0
    """How many blocks deep it wants one state of the store."""

    @property
    def writing(self) -> bool:
        """Whether it is in a write transaction."""
        return self.app is not None and self.app.writing

    @property
    def block(self) -> Scope | None:
        """For whom it acts; None if for nobody, or for everybody."""
        last = self.blocks[-1] if self.blocks else None
        return last if isinstance(last, Scope) else None

    @property
    def for_everybody(self) -> bool:
        """Whether its reads may see all rows."""
        return bool(self.blocks) and self.blocks[-1] is EVERYBODY
