"""Relations between streams: a second reading names what the first found to be unmet."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from typing_extensions import override

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Findings, Invariant, Place
from remembrancer.application.audit.joined import (
    ABSENT,
    EARLIER,
    LATER,
    TWICE,
    Fact,
    Joined,
    Offer,
    Share,
    problem_of,
)
from remembrancer.application.audit.permitted import OUTSIDE, PERMITTED, permission_problem
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.audit.selections import SELECTED_VERSIONS
from remembrancer.application.audit.walk import Walk
from remembrancer.application.ports.audit_source import RawEvent

AFTER_SETTLEMENT = Invariant(
    name="cached-after-settlement",
    sentence="Vectors enter the cache only after the settlement of a query reservation of the "
    "same owner and configuration, made in the same generation; those of each reservation once.",
    source="seed BSQ; design 6, steps 4, 7 and 8",
)
INVARIANTS: Final = (AFTER_SETTLEMENT,)

_Said = tuple[Invariant, str, str]
"""An invariant, what it expects, and what was found."""

_SETTLED = "a settlement before it"
_PREPARED: Final[dict[str, _Said]] = {
    ABSENT: (
        AFTER_SETTLEMENT,
        _SETTLED,
        "no settled query reservation of this id, owner and configuration",
    ),
    LATER: (AFTER_SETTLEMENT, _SETTLED, "settled after it"),
    EARLIER: (AFTER_SETTLEMENT, _SETTLED, "reserved before the generation began"),
    TWICE: (AFTER_SETTLEMENT, _SETTLED, "prepared before"),
}
_REMEMBERED = "versions remembered before"
_SELECTED: Final[dict[str, _Said]] = {
    ABSENT: (SELECTED_VERSIONS, _REMEMBERED, "no such version"),
    LATER: (SELECTED_VERSIONS, _REMEMBERED, "remembered after it"),
    OUTSIDE: (
        PERMITTED,
        "versions within the selection's bounds",
        "one of a scope or sensitivity that they don't let through",
    ),
}


def check_relations(
    facts: Facts,
    findings: Findings,
    again: Callable[[], Iterable[RawEvent]],
    reader: StateReader,
) -> None:
    """Compare what one reading collected; name what is unmet by reading ``again``."""
    versions, preparations = facts.versions.unmet(), facts.preparations.unmet()
    if not versions and not preparations:
        return
    mute = Findings(findings.scope, is_mute=True)
    naming = Facts(Share.nothing())
    naming.labels = facts.labels  # Numbers mean the same in both readings.
    walk = Walk(mute, naming, reader)
    permission = partial(permission_problem, facts.labels)
    naming.versions = _Naming(versions, _SELECTED, findings, walk.place, permission)
    naming.preparations = _Naming(preparations, _PREPARED, findings, walk.place, problem_of)
    walk.read(again())


class _Naming(Joined):
    """Reports each wish that is known to be unmet."""

    def __init__(  # what a finding is made of
        self,
        unmet: dict[int, Offer | None],
        said: dict[str, _Said],
        findings: Findings,
        place: Place,
        problem: Callable[[Offer | None, int, int], str],
    ) -> None:
        super().__init__(Share.nothing(), once=TWICE in said)
        self._unmet = unmet
        self._said = said
        self._findings = findings
        self._place = place
        self._problem = problem
        self._seen: set[int] = set()

    @override
    def offer(self, fact: Fact, began: int, done: int) -> None:
        pass

    @override
    def want_all(self, facts: Sequence[Fact], began: int, at: int) -> None:
        for fact in facts:
            self.want(fact, began, at)

    @override
    def want(self, fact: Fact, began: int, at: int) -> None:
        number = hash(fact)
        if number not in self._unmet:
            return
        problem = self._problem(self._unmet[number], began, at)
        if not problem and number in self._seen:
            problem = TWICE
        self._seen.add(number)
        if problem in self._said:
            muted, self._place.findings = self._place.findings, self._findings
            self._place.report(*self._said[problem])
            self._place.findings = muted
