"""Projections against the log: receipts, rows of the sparse index, ids in vector indexes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Finding, Findings, Invariant, uuid_of
from remembrancer.application.audit.joined import Fact
from remembrancer.application.audit.originals import END_OF_LOG
from remembrancer.application.ports.audit_source import (
    AuditSource,
    RawPlace,
    RawReceipt,
    RawSpace,
    RawVector,
)

RECEIPTS = Invariant(
    name="receipts-are-the-fold",
    sentence="There is a receipt for each reservation, and it says what the ledger's events say.",
    source="seed BSQ; design 4.2 and 7",
)
WORDS = Invariant(
    name="words-are-the-fold",
    sentence="The sparse index has each kept version, under its place and whose it is, and "
    "nothing else.",
    source="design 7; adr/0008",
)
VECTORS = Invariant(
    name="vectors-of-kept-versions",
    sentence="Every vector in an index belongs to a version that is kept.",
    source="design 7; adr/0007",
)
BATCHES = Invariant(
    name="bought-after-settlement",
    sentence="An owner has vectors in a space that is bought only after the settlement of an "
    "indexing reservation of that owner for that space.",
    source="seed BSQ; design 4.2 and 4.5",
)
INVARIANTS: Final = (RECEIPTS, WORDS, VECTORS, BATCHES)

VECTORS_AT_ONCE: Final = 1_024


def read_receipts(rows: Iterable[RawReceipt], facts: Facts) -> int:
    """Take in the receipts; return how many there are."""
    count = 0
    for row in rows:
        count += 1
        tenant, owner, reservation, kind, request_digest, state, day, admitted_at, *rest = row
        expires_at, reserved, charged, usage, reason, version, quanta, requests = rest
        who = f"{tenant}\x1f{owner}\x1f{reservation.hex()}"
        facts.admissions.find(
            f"{who}\x1f{kind}\x1f{request_digest}\x1f{day}\x1f{admitted_at}\x1f{expires_at}"
            f"\x1f{reserved}\x1f{version}\x1f{quanta}\x1f{requests}"
        )
        facts.outcomes.find(f"{who}\x1f{state}\x1f{charged}\x1f{usage}")
        if reason is not None:
            facts.reasons.find(f"{who}\x1f{reason}")
    return count


def read_words(rows: Iterable[RawPlace], facts: Facts) -> int:
    """Take in what stands in the sparse index; return how many documents that is."""
    count, find = 0, facts.places.find
    for place, tenant, owner in rows:
        count += 1
        find(f"{place.hex()}\x1f{tenant}\x1f{owner}")
    return count


def read_vectors(source: AuditSource, facts: Facts, findings: Findings) -> int:
    """Check ids in vector indexes; return how many vectors there are."""
    count = 0
    bought = {
        space.number: space.tuple_digest
        for space in source.spaces()
        if _is_readable(space, findings) and space.tuple_digest in facts.bought
    }
    for vectors in _batches(source.vectors()):
        count += len(vectors)
        kept = source.kept([key for _, key, _, _ in vectors if isinstance(key, bytes)])
        for number, key, tenant, owner in vectors:
            if key not in kept:
                _report_stray(number, key, tenant, owner, findings)
            elif number in bought:
                facts.batches.want(_batch(tenant, owner, bought[number]), 0, END_OF_LOG)
    return count


def report_unbought(source: AuditSource, facts: Facts, findings: Findings) -> None:
    """Name the owners that have vectors of a space that they never bought one of."""
    unmet = facts.batches.unmet()
    if not unmet:
        return
    digests = {space.number: space.tuple_digest for space in source.spaces()}
    named = set[int]()
    for number, _, tenant, owner in source.vectors():
        record = hash(_batch(tenant, owner, digests.get(number)))
        if record in unmet and record not in named:
            named.add(record)
            findings.add(
                Finding(
                    invariant=BATCHES.name,
                    stream=None,
                    version=None,
                    about=f"vector index {number}",
                    expected="a settled indexing reservation of the owner for this space",
                    found="none",
                    tenant=tenant,
                    owner=owner,
                )
            )


def _batch(tenant: str | None, owner: str | None, digest: str | None) -> Fact:
    return tenant or "", owner or "", digest or ""


def _batches(vectors: Iterator[RawVector]) -> Iterator[list[RawVector]]:
    while some := list(islice(vectors, VECTORS_AT_ONCE)):
        yield some


def _is_readable(space: RawSpace, findings: Findings) -> bool:
    if space.tuple_digest is None:
        findings.add(
            Finding(
                invariant=VECTORS.name,
                stream=None,
                version=None,
                about=f"vector index {space.number}",
                expected="an embedding tuple",
                found="something else",
            )
        )
    return space.tuple_digest is not None


def _report_stray(
    number: int, key: bytes, tenant: str | None, owner: str | None, findings: Findings
) -> None:
    findings.add(
        Finding(
            invariant=VECTORS.name,
            stream=None,
            version=None,
            about=f"vector {uuid_of(key)} in index {number}",
            expected="a kept version",
            found="none",
            tenant=tenant,
            owner=owner,
        )
    )
