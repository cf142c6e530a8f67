"""The vault against the log: every version that no event erased, and no other."""

from collections.abc import Iterable
from typing import Final

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Finding, Findings, Invariant, uuid_of
from remembrancer.application.audit.joined import Fact
from remembrancer.application.ports.audit_source import RawErased, RawOriginal, RawSession
from remembrancer.domain.keyed_digest import keyed_digest

ORIGINALS = Invariant(
    name="originals-match",
    sentence="Every version that no event erased is in the vault under its committed labels, with "
    "the text of its committed digest and length; there is no other.",
    source="design 4; adr/0003",
)
ERASED = Invariant(
    name="erased-by-an-event",
    sentence="What the vault knows as erased was erased by an event, and the other way round.",
    source="design 4; adr/0003",
)
SESSIONS = Invariant(
    name="session-has-selection",
    sentence="Every key in the session vault belongs to a committed selection.",
    source="design 4.1",
)
INVARIANTS: Final = (ORIGINALS, ERASED, SESSIONS)

END_OF_LOG: Final = (1 << 63) - 1
"""After every position."""


def read_originals(rows: Iterable[RawOriginal], facts: Facts, findings: Findings) -> int:
    """Take in what the vault keeps; return how many versions that is."""
    count = 0
    find = facts.originals.find
    for row in rows:
        count += 1
        entry_id, version, tenant, owner, scope, kind, sensitivity, recorded_at = row[:8]
        superseded_at, digest, salt, text = row[8:]
        try:
            spelt, told = text.encode(), digest.hex()
            if keyed_digest(salt, spelt) != told:
                _report_text(row, findings)
            find(
                f"{entry_id.hex()}\x1f{version}\x1f{tenant}\x1f{owner}\x1f{scope}\x1f{kind}"
                f"\x1f{sensitivity}\x1f{told}\x1f{len(spelt)}\x1f{recorded_at}"
                f"\x1f{superseded_at}"
            )
        except (AttributeError, TypeError, ValueError):
            _report_text(row, findings)
    return count


def read_erased(rows: Iterable[RawErased], facts: Facts) -> int:
    """Take in what the vault knows as erased; return how many entries that is."""
    count = 0
    for entry_id, tenant in rows:
        count += 1
        facts.erased.find(f"{entry_id.hex()}\x1f{tenant}")
    return count


def read_sessions(rows: Iterable[RawSession], facts: Facts) -> int:
    """Take in whose keys the session vault keeps; return how many."""
    count = 0
    for row in rows:
        count += 1
        facts.selections.want(session_fact(row), 0, END_OF_LOG)
    return count


def session_fact(row: RawSession) -> Fact:
    """Return what the log's side offers for a selection."""
    selection_id, tenant, owner, session = row
    return selection_id.hex(), tenant, owner, session


def _report_text(row: RawOriginal, findings: Findings) -> None:
    entry_id, version, tenant, owner = row[:4]
    findings.add(
        Finding(
            invariant=ORIGINALS.name,
            stream=None,
            version=None,
            about=f"original {uuid_of(entry_id)}, version {version}",
            expected="the text of its digest",
            found="another, or none",
            tenant=tenant,
            owner=owner,
        )
    )
