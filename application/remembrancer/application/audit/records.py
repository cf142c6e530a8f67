"""The rules over any events at hand: an export, a simulation, a recording."""

from collections.abc import Iterable

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import AuditScope, Finding, Findings
from remembrancer.application.audit.joined import Share
from remembrancer.application.audit.reading import Decode, StateReader
from remembrancer.application.audit.relations import check_relations
from remembrancer.application.audit.walk import Walk
from remembrancer.application.ports.audit_source import RawEvent
from remembrancer.domain.canonical_json import parse_canonical_json


def audit_records(
    events: Iterable[RawEvent],
    *,
    scope: AuditScope | None = None,
    decode: Decode = parse_canonical_json,
) -> list[Finding]:
    """Return what is wrong with ``events``, given in any order, by the log alone.

    All of them are held in memory; a store is audited by :class:`.audit.Audit` instead.
    """
    findings = Findings(scope or AuditScope())
    rows = sorted(events, key=lambda event: (event[1], event[2]))
    facts = Facts(Share())
    Walk(findings, facts, StateReader(decode)).read(rows)
    check_relations(facts, findings, lambda: rows, decode)
    return findings.kept
