"""All guards over one text: classification, credentials, injection, residency (adr/0012)."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from typing_extensions import override

from remembrancer.adapters.guards.classification import CLASSIFICATION, RAISES_TO
from remembrancer.adapters.guards.credentials import CREDENTIALS
from remembrancer.adapters.guards.injection import INJECTION
from remembrancer.adapters.guards.residency import RESIDENCY_VERSION, ResidencyRules
from remembrancer.adapters.guards.views import (
    VIEWS_VERSION,
    UnfoldsTooFarError,
    View,
    views,
    views_digest,
)
from remembrancer.application.ports.guards import (
    GUARDED_BYTES_MAX,
    GuardFinding,
    GuardReason,
    Guards,
    GuardVerdict,
)
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.sensitivity import Sensitivity

_RULE_SETS = (CLASSIFICATION, CREDENTIALS, INJECTION)
_TOO_LONG = GuardFinding(
    reason=GuardReason.TOO_LONG, rule="too-long", rule_set=VIEWS_VERSION, view="raw"
)


class SecondEngine(Protocol):
    """Another detector of credentials; a finding of either withholds."""

    @property
    def name(self) -> str:
        """Name and version, such as ``kingfisher@1.5.0``."""
        ...

    def rules_in(self, text: str) -> tuple[str, ...]:
        """Return the ids of the rules that ``text`` shows."""
        ...


class LocalGuards(Guards):
    """Own rule tables over normalised views, and second engines where there are any."""

    def __init__(self, *, residency: ResidencyRules, engines: Sequence[SecondEngine] = ()) -> None:
        self._residency = residency
        self._engines = tuple(engines)

    @property
    @override
    def rule_sets(self) -> tuple[str, ...]:
        own = (rule_set.name for rule_set in _RULE_SETS)
        engines = (engine.name for engine in self._engines)
        return tuple(sorted((*own, RESIDENCY_VERSION, VIEWS_VERSION, *engines)))

    @property
    @override
    def digest(self) -> str:
        content = [
            list(self.rule_sets),
            [rule_set.digest for rule_set in _RULE_SETS],
            views_digest(),
            self._residency.digest,
            GUARDED_BYTES_MAX,
        ]
        return hashlib.sha256(canonical_json(content)).hexdigest()

    @override
    def check(self, text: str, *, declared: Sensitivity | None, destination: str) -> GuardVerdict:
        label = Sensitivity.RESTRICTED if declared is None else declared
        findings = (*self._text_findings(text), *self._residency.findings(destination))
        raised = (
            RAISES_TO[finding.rule]
            for finding in findings
            if finding.reason is GuardReason.CLASSIFICATION
        )
        return GuardVerdict(sensitivity=max(label, *raised, label), findings=findings)

    def _text_findings(self, text: str) -> tuple[GuardFinding, ...]:
        if len(text) > GUARDED_BYTES_MAX or len(text.encode()) > GUARDED_BYTES_MAX:
            return (_TOO_LONG,)
        # One finding a rule says enough: the view that shows it first is the plainest.
        first: dict[tuple[str, str], GuardFinding] = {}
        try:
            for view in views(text):
                for finding in self._view_findings(view):
                    first.setdefault((finding.rule_set, finding.rule), finding)
        except UnfoldsTooFarError:
            return (*first.values(), _TOO_LONG)
        return tuple(first.values())

    def _view_findings(self, view: View) -> Iterator[GuardFinding]:
        lowered = view.text.lower()
        for rule_set in _RULE_SETS:
            yield from rule_set.findings(view, lowered)
        for engine in self._engines:
            for rule in engine.rules_in(view.text):
                yield GuardFinding(
                    reason=GuardReason.CREDENTIAL, rule=rule, rule_set=engine.name, view=view.name
                )
