"""Every invariant that an audit proves, in the order in which it does."""

from typing import Final

from remembrancer.application.audit import (
    audit,
    chain,
    entries,
    generations,
    originals,
    packs,
    permitted,
    projections,
    relations,
    selections,
    snapshots,
    spending,
    verify_seal,
    walk,
)
from remembrancer.application.audit.finding import Invariant

INVARIANTS: Final[tuple[Invariant, ...]] = (
    *audit.INVARIANTS,
    *chain.INVARIANTS,
    *walk.INVARIANTS,
    *entries.INVARIANTS,
    *selections.INVARIANTS,
    *permitted.INVARIANTS,
    *spending.INVARIANTS,
    *generations.INVARIANTS,
    *relations.INVARIANTS,
    *originals.INVARIANTS,
    *packs.INVARIANTS,
    *projections.INVARIANTS,
    *snapshots.INVARIANTS,
)
"""By log and vault alone."""

OF_SEALS: Final[tuple[Invariant, ...]] = verify_seal.INVARIANTS
"""By a log and an earlier seal of it."""
