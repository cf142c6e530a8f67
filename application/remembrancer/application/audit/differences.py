"""Naming what differs between log and store: a second reading of the differing parts alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from remembrancer.application.audit.agreement import BUCKETS_NAMED_MAX, Difference, NamedAgreement
from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Finding, Findings, Invariant
from remembrancer.application.audit.natural_key import dashed, entry_stream_key, stream_key
from remembrancer.application.audit.originals import ERASED, ORIGINALS
from remembrancer.application.audit.projections import RECEIPTS, WORDS

ORIGINALS_PART, ERASED_PART = "originals", "erased entries"
RECEIPTS_PART, WORDS_PART = "receipts", "documents"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One list that log and store must agree on."""

    name: str
    """The attribute of :class:`Facts`."""
    part: str
    """The part of the store that is compared with the log."""
    invariant: Invariant
    about: Callable[[tuple[str, ...]], str]
    stream: Callable[[dict[str, str]], bytes | None]
    """Returns which stream says so, from the fields of either side."""


def _receipt(key: tuple[str, ...]) -> str:
    return f"receipt of reservation {dashed(key[2])}"


def _entry(fields: dict[str, str]) -> bytes:
    return entry_stream_key(fields["tenant"], dashed(fields["entry"]))


def _ledger(fields: dict[str, str]) -> bytes:
    return stream_key("reservation_ledger", fields["tenant"], fields["owner"])


COMPARISONS: Final = (
    Comparison(
        "originals",
        ORIGINALS_PART,
        ORIGINALS,
        lambda key: f"original {dashed(key[0])}, version {key[1]}",
        _entry,
    ),
    Comparison("erased", ERASED_PART, ERASED, lambda key: f"entry {dashed(key[0])}", _entry),
    Comparison(
        "places", WORDS_PART, WORDS, lambda key: f"document {dashed(key[0])}", lambda _: None
    ),
    Comparison("admissions", RECEIPTS_PART, RECEIPTS, _receipt, _ledger),
    Comparison("outcomes", RECEIPTS_PART, RECEIPTS, _receipt, _ledger),
    Comparison("reasons", RECEIPTS_PART, RECEIPTS, _receipt, _ledger),
)


def differing(facts: Facts) -> list[Comparison]:
    """Return the lists about which log and store differ."""
    return [one for one in COMPARISONS if getattr(facts, one.name).differing]


def naming(facts: Facts, comparisons: list[Comparison], into: Facts) -> None:
    """Prepare ``into`` for a second reading that collects what differs in ``facts``."""
    for one in comparisons:
        setattr(into, one.name, getattr(facts, one.name).naming())


def report_differences(
    facts: Facts,
    named: Facts,
    comparisons: list[Comparison],
    not_understood: set[bytes],
    findings: Findings,
) -> None:
    """Report what the second reading has collected, but for streams that weren't understood."""
    for one in comparisons:
        agreement = getattr(named, one.name)
        if isinstance(agreement, NamedAgreement):
            for difference in agreement.differences():
                _report(one, difference, not_understood, findings)
        places = getattr(facts, one.name).differing
        if places > BUCKETS_NAMED_MAX:
            findings.add(
                Finding(
                    invariant=one.invariant.name,
                    stream=None,
                    version=None,
                    expected="nothing that differs",
                    found=f"as much again {places // BUCKETS_NAMED_MAX} times, not named here",
                )
            )


def _report(
    comparison: Comparison, difference: Difference, not_understood: set[bytes], findings: Findings
) -> None:
    expected, found = difference.expected, difference.found
    fields = expected or found or {}
    stream = comparison.stream(fields)
    if stream in not_understood:
        return
    findings.add(
        Finding(
            invariant=comparison.invariant.name,
            stream=None if stream is None else UUID(bytes=stream),
            version=None,
            about=comparison.about(difference.key),
            expected=_said(expected, found),
            found=_said(found, expected),
            tenant=fields.get("tenant"),
            owner=fields.get("owner"),
        )
    )


def _said(side: dict[str, str] | None, other: dict[str, str] | None) -> str:
    """Return what one side says differently from the other."""
    if side is None:
        return "none"
    if other is None:
        return "one"
    return ", ".join(_differing_fields(side, other)) or "another"


def _differing_fields(side: dict[str, str], other: dict[str, str]) -> Iterator[str]:
    for name, value in side.items():
        if other.get(name) != value:
            yield f"{name} {value}"
