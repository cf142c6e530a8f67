"""Relations between streams: a second reading names what the first found to be unmet."""

from collections.abc import Callable, Iterable, Sequence
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

_PREPARED = {
    ABSENT: "no settled query reservation of this id, owner and configuration",
    LATER: "settled after it",
    EARLIER: "reserved before the generation began",
    TWICE: "prepared before",
}
_SELECTED = {ABSENT: "no such version", LATER: "remembered after it"}


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
    walk = Walk(mute, naming, reader)
    naming.versions = _Naming(
        versions, _SELECTED, findings, walk.place, SELECTED_VERSIONS, "versions remembered before"
    )
    naming.preparations = _Naming(
        preparations, _PREPARED, findings, walk.place, AFTER_SETTLEMENT, "a settlement before it"
    )
    walk.read(again())


class _Naming(Joined):
    """Reports each wish that is known to be unmet."""

    def __init__(  # what a finding is made of
        self,
        unmet: dict[int, Offer | None],
        said: dict[str, str],
        findings: Findings,
        place: Place,
        invariant: Invariant,
        expected: str,
    ) -> None:
        super().__init__(Share.nothing(), once=TWICE in said)
        self._unmet = unmet
        self._said = said
        self._findings = findings
        self._place = place
        self._invariant = invariant
        self._expected = expected
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
        problem = problem_of(self._unmet[number], began, at)
        if not problem and number in self._seen:
            problem = TWICE
        self._seen.add(number)
        if problem in self._said:
            muted, self._place.findings = self._place.findings, self._findings
            self._place.report(self._invariant, self._expected, self._said[problem])
            self._place.findings = muted
