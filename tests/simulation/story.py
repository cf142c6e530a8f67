"""What happens in a simulated world, in order: steps that are data, drawn from a seed.

A step holds the seed of everything that it will draw, so that cutting others away leaves it as it
was; that is how a failing story is made short.
"""

from dataclasses import dataclass
from enum import StrEnum

from tests.simulation.virtual_time import chance_of

HOSTS = 3


class Deed(StrEnum):
    """What a step does."""

    PREPARE = "prepare"
    REMEMBER = "remember"
    CORRECT = "correct"
    ERASE = "erase"
    ERASE_SESSION = "erase_session"
    ERASE_OWNER = "erase_owner"
    RECALL = "recall"
    SELECT = "select"
    BUILD = "build"
    REPLAY = "replay"
    REINDEX = "reindex"
    RECONCILE = "reconcile"
    RECONFIGURE = "reconfigure"
    WITHDRAW = "withdraw"
    KILL = "kill"
    FREEZE = "freeze"
    SET_CLOCK = "set_clock"
    DISK = "disk"


WEIGHTS = {
    Deed.PREPARE: 36,
    Deed.REMEMBER: 13,
    Deed.CORRECT: 7,
    Deed.ERASE: 3,
    Deed.ERASE_SESSION: 1,
    Deed.ERASE_OWNER: 0.5,
    Deed.RECALL: 10,
    Deed.SELECT: 3,
    Deed.BUILD: 8,
    Deed.REPLAY: 4,
    Deed.REINDEX: 1,
    Deed.RECONCILE: 3,
    Deed.RECONFIGURE: 2,
    Deed.WITHDRAW: 3,
    Deed.KILL: 2,
    Deed.FREEZE: 2,
    Deed.SET_CLOCK: 3,
    Deed.DISK: 3,
}

GAPS_S = (
    (30, 0.0, 0.0),
    (25, 0.0, 1.0),
    (22, 1.0, 5.0),
    (14, 5.0, 17.0),
    (6, 60.0, 400.0),
    (1, 20_000.0, 60_000.0),
)
"""Weight, least and most of the time that passes before a step."""

TO_MIDNIGHT = 0.03
"""The part of the steps that come some seconds before midnight, by the store's clock."""
TROUBLED = 0.45
"""The part of the steps in which something goes wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens."""

    number: int
    gap_s: float
    to_midnight: bool
    """Whether to wait until a gap before midnight, instead of for the gap."""
    host: int
    deed: Deed
    troubled: bool
    seed: str

    def __str__(self) -> str:
        trouble = ", with trouble" if self.troubled else ""
        when = f"{self.gap_s:.3f} s" + (" to midnight" if self.to_midnight else "")
        return f"{self.number}: +{when}, host {self.host}: {self.deed}{trouble}"


def story(seed: int, length: int) -> list[Step]:
    """Return the steps of a seed; a longer story begins as a shorter one does."""
    return [_step(seed, number) for number in range(length)]


def _step(seed: int, number: int) -> Step:
    name = f"{seed}.{number}"
    chance = chance_of("step", name)
    [(_, least, most)] = chance.choices(GAPS_S, [weight for weight, _, _ in GAPS_S])
    deeds = tuple(WEIGHTS)
    [deed] = chance.choices(deeds, [WEIGHTS[one] for one in deeds])
    return Step(
        number=number,
        gap_s=round(chance.uniform(least, most), 3),
        to_midnight=most <= 17.0 and chance.random() < TO_MIDNIGHT,
        host=chance.randrange(HOSTS),
        deed=deed,
        troubled=chance.random() < TROUBLED,
        seed=name,
    )
