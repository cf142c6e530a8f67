"""Every invariant that an audit proves, in the order in which it does."""

from typing import Final

from remembrancer.application.audit import (
    entries,
    generations,
    relations,
    reservations,
    selections,
    walk,
)
from remembrancer.application.audit.finding import Invariant

INVARIANTS: Final[tuple[Invariant, ...]] = (
    *walk.INVARIANTS,
    *entries.INVARIANTS,
    *selections.INVARIANTS,
    *reservations.INVARIANTS,
    *generations.INVARIANTS,
    *relations.INVARIANTS,
)
"""By log and vault alone."""
