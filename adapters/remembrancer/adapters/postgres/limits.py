"""How long and how much a memory may keep a server busy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sane for a service; all of them are sent with each transaction, none stays in a session."""

    connections: int = 10
    """At most, for each of the two roles."""
    connection_wait_s: float = 5.0
    """How long a thread waits for one of them."""
    connect_timeout_s: int = 5
    statement_timeout_s: float = 30.0
    lock_timeout_s: float = 5.0
    """For each lock: who stands in line behind somebody who waits may wait for twice as long."""
    idle_in_transaction_timeout_s: float = 60.0
    outcome_wait_s: float = 5.0
    """How long to ask what became of a commit that wasn't confirmed."""
    prepare_after: int | None = 5
    """Uses of a statement before the server keeps it prepared; None behind a pooler that gives
    each transaction another session."""

    @property
    def keeps_sessions(self) -> bool:
        """Whether what a session was told is there with the next transaction: see above."""
        return self.prepare_after is not None
