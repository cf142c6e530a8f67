"""What a check gives: figures that were measured, or the reason why it measured nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from remembrancer.composition.gate_checks.rehearsal import Rehearsal
from remembrancer.domain.errors import RemembrancerError
from remembrancer.domain.gate import Gate


class CheckFailedError(RemembrancerError):
    """A check couldn't be carried out, so its gate gets no evidence."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A gate's figures, and the raw results that they were counted from."""

    figures: dict[str, int]
    raw: Any = field(repr=False)
    """Plain JSON; becomes the artefact."""


Check = Callable[[Rehearsal], dict[Gate, Measured]]
"""Runs and measures.

Raises:
    CheckFailedError: it couldn't be carried out.
"""


def require(holds: object, problem: str) -> None:
    """Let a check go on only where it would prove something.

    Raises:
        CheckFailedError: it wouldn't.
    """
    if not holds:
        raise CheckFailedError(problem)
