"""Rules and rule sets: versioned tables whose digest says which rules were in force."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from remembrancer.adapters.guards.views import View
from remembrancer.application.ports.guards import GuardFinding, GuardReason
from remembrancer.domain.canonical_json import canonical_json

if TYPE_CHECKING:
    import re


class Rule(Protocol):
    """Something that a text either shows or doesn't."""

    @property
    def id(self) -> str:
        """The rule's name within its set."""
        ...

    @property
    def source(self) -> tuple[str, ...]:
        """All that decides what it matches; part of the set's digest."""
        ...

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether ``text`` shows it; ``lowered`` is ``text.lower()``."""
        ...


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression of bounded effort, tried only where one of its words occurs.

    ``accepts`` judges a match where the pattern alone would be too eager.
    """

    id: str
    words: tuple[str, ...]
    """In lower case; without any, the pattern is always tried."""
    pattern: "re.Pattern[str]"
    accepts: "Callable[[re.Match[str]], bool] | None" = field(default=None)

    @property
    def source(self) -> tuple[str, ...]:
        """Words, pattern, flags and the judge's name."""
        judge = "" if self.accepts is None else self.accepts.__name__
        return (self.id, *self.words, self.pattern.pattern, str(self.pattern.flags), judge)

    def found_in(self, text: str, lowered: str) -> bool:
        """Return whether a match is accepted."""
        if self.words and not any(word in lowered for word in self.words):
            return False
        if self.accepts is None:
            return self.pattern.search(text) is not None
        return any(map(self.accepts, self.pattern.finditer(text)))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules that give the same reason, under one version."""

    name: str
    """Name and version, such as ``credentials@1``; raised with every change of meaning."""
    reason: GuardReason
    rules: tuple[Rule, ...]
    judged_by: tuple[str, ...] = ()
    """Bounds and tables that judges go by, and that no rule's source shows."""

    @property
    def digest(self) -> str:
        """SHA-256 of all rules' sources and of what their judges go by."""
        sources = [list(rule.source) for rule in self.rules]
        content = [self.name, self.reason.value, *sources, list(self.judged_by)]
        return hashlib.sha256(canonical_json(content)).hexdigest()

    def findings(self, view: View, lowered: str) -> Iterator[GuardFinding]:
        """Yield a finding for each rule that the view shows."""
        for rule in self.rules:
            if rule.found_in(view.text, lowered):
                yield GuardFinding(
                    reason=self.reason, rule=rule.id, rule_set=self.name, view=view.name
                )
