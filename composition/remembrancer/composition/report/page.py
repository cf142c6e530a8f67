"""Writes a picture and an audit's findings as one HTML page that needs no network.

Whatever a host named (tenants, owners, sessions, scopes, ...) enters the page in two ways only:
escaped into text, or as JSON from which no markup can grow.  Scripts and styles run by their
hashes: a policy in the page lets nothing else run, and nothing be loaded (adr/0025).
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any

from remembrancer.application.audit.finding import AuditReport, Finding
from remembrancer.composition.report.charts import ChartLibrary, alone
from remembrancer.composition.report.picture import (
    ErasureShown,
    OwnerDay,
    PackShown,
    Picture,
    ReservationLife,
    SelectionShown,
)
from remembrancer.composition.report.writing import MARK
from remembrancer.domain.counted import counted
from remembrancer.domain.fences import escaped

FINDINGS_MAX = 1_000
"""Findings that the page holds; it says how many there were."""
FINDINGS_STATIC_MAX = 100
"""Of these, what a reader without scripts sees."""

_SCRIPTS = ("page.js", "sections.js", "charts.js", "start.js")
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_MARKUP = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """What the page says of itself."""

    made_at: datetime
    version: str
    scope: str
    """Which part was asked for, in words; empty for everything."""


def page_of(
    picture: Picture,
    report: AuditReport,
    *,
    cover: Cover,
    library: ChartLibrary,
    sentences: Mapping[str, str],
) -> str:
    """Return the page; ``sentences`` says in words what each invariant demands."""
    css = _part("page.css")
    script = alone("\n".join(map(_part, _SCRIPTS)))
    owners = _Owners()
    holes = {
        "title": html.escape(f"Audit of {escaped(report.store)}"),
        "css": css,
        "verdict": _verdict(report),
        "facts": _facts(picture, report, cover),
        "findings": _static_findings(report),
        "notes": _notes(picture, report),
        "made": html.escape(f"{cover.made_at:%Y-%m-%d %H:%M:%S} UTC"),
        "version": html.escape(cover.version),
        "vega": html.escape(library.versions),
        "data": _json(_data(picture, report, owners, sentences)),
        "library": library.script,
        "script": script,
        "csp": _policy(styles=[css], scripts=[library.script, script]),
    }
    # In one pass: what is put in isn't looked at for holes again.
    return MARK + _HOLE.sub(lambda hole: holes[hole[1]], _part("page.html"))


class _Owners:
    """Owners by number: their names stand in the page once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, tenant: str | None, owner: str | None) -> int | None:
        if tenant is None or owner is None:
            return None
        return self._numbers.setdefault((tenant, owner), len(self._numbers))

    @property
    def names(self) -> list[tuple[str, str]]:
        return list(self._numbers)


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON in which nothing ends a script element or begins a comment."""
    spelt = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return spelt.translate(_MARKUP)


def _policy(*, styles: Sequence[str], scripts: Sequence[str]) -> str:
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src-elem {' '.join(map(_hash, styles))}",
            # The charts place their parts by style attributes; these can't load or run anything.
            "style-src-attr 'unsafe-inline'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _verdict(report: AuditReport) -> str:
    if report.is_green:
        return '<p class="verdict green">Nothing was found: every rule holds.</p>'
    what = "finding" if report.findings_count == 1 else "findings"
    return (
        f'<p class="verdict red">{report.findings_count:,} {what}: '
        "something isn't as the rules say.</p>"
    )


def _facts(picture: Picture, report: AuditReport, cover: Cover) -> str:
    known = [
        ("Asked for", cover.scope or "everything"),
        ("Log read up to position", f"{report.position:,}"),
        *((name, f"{count:,}") for name, count in report.counts.items()),
        ("Reservations", f"{picture.reservations.count:,}"),
        ("Selections", f"{picture.selections.count:,}"),
        ("Packs", f"{picture.packs:,}"),
        ("Entries remembered", f"{picture.entries:,}"),
        ("Corrections", f"{picture.corrections:,}"),
        ("Erasures", f"{picture.erasures.count:,}"),
        ("Admissions withdrawn", f"{picture.withdrawals:,}"),
    ]
    return "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
        for name, value in known
    )


def _notes(picture: Picture, report: AuditReport) -> str:
    said = list(report.notes)
    if picture.unreadable:
        events = counted(picture.unreadable, "event")
        said.append(f"{events} couldn't be read; nothing of it is below.")
    if picture.stopped:
        said.append(f"Reading ended early, so what follows isn't all: {picture.stopped}.")
    if not said:
        return ""
    items = "".join(f"<li>{html.escape(escaped(one))}</li>" for one in said)
    return f"<h3>What couldn't be checked</h3><ul>{items}</ul>"


def _static_findings(report: AuditReport) -> str:
    if not report.findings:
        return "<p>Nothing was found.</p>"
    shown = report.findings[:FINDINGS_STATIC_MAX]
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(escaped(cell))}</td>"
            for cell in (one.invariant, _where(one), one.expected, one.found)
        )
        + "</tr>"
        for one in shown
    )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Rule", "Where", "Expected", "Found")
    )
    caption = f"The first {len(shown):,} of {report.findings_count:,} findings"
    return (
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _where(finding: Finding) -> str:
    parts = [
        finding.about,
        f"stream {finding.stream}" if finding.stream is not None else "",
        f"version {finding.version}" if finding.version is not None else "",
        f"position {finding.position}" if finding.position is not None else "",
    ]
    return ", ".join(filter(None, parts)) or "the store"


def _data(
    picture: Picture, report: AuditReport, owners: _Owners, sentences: Mapping[str, str]
) -> dict[str, Any]:
    shown = report.findings[:FINDINGS_MAX]
    findings = [_finding(one, owners, sentences.get(one.invariant, "")) for one in shown]
    data: dict[str, Any] = {
        "findings": {"count": report.findings_count, "rows": findings},
        "days": _rows(picture.owner_days.count, (_day(one, owners) for one in picture.owner_days)),
        "reservations": _rows(
            picture.reservations.count,
            (_reservation(one, owners) for one in picture.reservations),
        ),
        "selections": _rows(
            picture.selections.count, (_selection(one, owners) for one in picture.selections)
        ),
        "erasures": _rows(
            picture.erasures.count, (_erasure(one, owners) for one in picture.erasures)
        ),
    }
    return {"owners": owners.names, **data}


def _rows(count: int, rows: Iterable[object]) -> dict[str, Any]:
    return {"count": count, "rows": list(rows)}


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _finding(one: Finding, owners: _Owners, sentence: str) -> dict[str, Any]:
    tenant = None if one.tenant is None else escaped(one.tenant)
    owner = None if one.owner is None else escaped(one.owner)
    return {
        "invariant": one.invariant,
        "sentence": sentence,
        "where": escaped(_where(one)),
        "stream": "" if one.stream is None else str(one.stream),
        "about": escaped(one.about),
        "expected": escaped(one.expected),
        "found": escaped(one.found),
        "at": _time(one.at),
        "owner": owners.number(tenant, owner),
    }


def _day(one: OwnerDay, owners: _Owners) -> tuple[Any, ...]:
    # There are up to 20,000 of them, so their fields go without names.
    return (
        owners.number(one.tenant, one.owner),
        one.day,
        one.ceiling_quanta,
        one.ceiling_requests,
        [
            (kind, outcome, cell.count, cell.charged_quanta)
            for (kind, outcome), cell in sorted(one.cells.items())
        ],
    )


def _reservation(one: ReservationLife, owners: _Owners) -> dict[str, Any]:
    return {
        "id": one.reservation_id,
        "owner": owners.number(one.tenant, one.owner),
        "kind": one.kind,
        "outcome": one.outcome,
        "day": one.day,
        "at": _time(one.admitted_at),
        "end": _time(one.ended_at),
        "reserved": one.reserved_quanta,
        "charged": one.charged_quanta,
        "tokens": one.usage_tokens,
        "reason": one.reason,
    }


def _selection(one: SelectionShown, owners: _Owners) -> dict[str, Any]:
    return {
        "owner": owners.number(one.tenant, one.owner),
        "principal": one.principal,
        "session": one.session,
        "stage": one.stage,
        "kind": one.kind,
        "mode": one.mode,
        "modeReason": one.mode_reason,
        "at": _time(one.at),
        "limit": one.limit,
        "filter": one.filter,
        "tuple": one.embedding_tuple,
        "entries": [
            (
                entry.entry_id,
                entry.version,
                entry.score,
                entry.dense_rank,
                entry.dense_score,
                entry.sparse_rank,
                entry.sparse_score,
            )
            for entry in one.entries
        ],
        "entriesCount": one.entries_count,
        "leftOut": one.left_out,
        "leftOutCount": one.left_out_count,
        "packs": list(map(_pack, one.packs)),
        "packsCount": one.packs_count,
    }


def _pack(one: PackShown) -> dict[str, Any]:
    return {
        "number": one.number,
        "at": _time(one.at),
        "digest": one.digest,
        "tokens": one.tokens,
        "budget": one.token_budget,
        "counter": one.token_counter,
        "included": one.included,
        "includedCount": one.included_count,
        "omitted": one.omitted,
        "omittedCount": one.omitted_count,
    }


def _erasure(one: ErasureShown, owners: _Owners) -> dict[str, Any]:
    return {
        "owner": owners.number(one.tenant, one.owner),
        "id": one.entry_id,
        "kind": one.kind,
        "scope": one.scope,
        "sensitivity": one.sensitivity,
        "versions": one.versions,
        "since": _time(one.remembered_at),
        "at": _time(one.erased_at),
        "reason": one.reason,
    }
