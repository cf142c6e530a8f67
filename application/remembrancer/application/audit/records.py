"""The rules over any events at hand: an export, a simulation, a recording."""

from collections.abc import Iterable

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import AuditScope, Finding, Findings
from remembrancer.application.audit.joined import Share
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.audit.relations import check_relations
from remembrancer.application.audit.walk import Walk
from remembrancer.application.ports.audit_source import RawEvent


def audit_records(
    events: Iterable[RawEvent],
    *,
    scope: AuditScope | None = None,
    reader: StateReader | None = None,
) -> list[Finding]:
    """Return what is wrong with ``events``, given in any order, by the log alone.

    All of them are held in memory; a store is audited by :class:`.audit.Audit` instead.
    """
    findings = Findings(scope or AuditScope())
    rows = sorted(events, key=lambda event: (event[1], event[2]))
    facts, judge = Facts(Share()), reader or StateReader()
    Walk(findings, facts, judge).read(rows)
    check_relations(facts, findings, lambda: rows, judge)
    return findings.kept
