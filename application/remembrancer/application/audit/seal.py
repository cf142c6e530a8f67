"""Seals: a signed statement of all heads of a log, and whether a later state extends it.

A seal is JSON Lines (adr/0022): a line that says what it is, a line for each stream in the order
of their ids, and the statement with its signature.  The statement holds the root of a Merkle tree
over the streams' lines, so the signature is over all of them; they are in the file so that a
verifier can name the stream that doesn't extend it.  Both sides are read one line at a time.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from remembrancer.application.audit.chain import CHAIN, Link, chained
from remembrancer.application.audit.finding import AuditReport, Findings, Place, Progress
from remembrancer.application.audit.merkle import MerkleRoot
from remembrancer.application.ports.audit_source import AuditSource
from remembrancer.application.ports.signer import Signer
from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import as_utc

FORMAT: Final = "remembrancer-seal"
FORMAT_VERSION: Final = 1
SIGNED_FOR: Final = b"remembrancer seal 1\n"
"""Stands before the statement in what is signed, so that no other signature passes for one."""

LINE_BYTES_MAX: Final = 1_024
"""A stream's line has about 150, the statement about 450; a longer one is no seal's."""

PROGRESS_EVERY: Final = 8_192
_NUMBER_BYTES = 8
_KEY_BYTES = 16
_HASH_BYTES = 32
_NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Head:
    """How far a stream goes."""

    stream: bytes
    version: int
    """Of its last event."""
    hash: bytes
    """Of its last event, computed anew."""
    count: int
    """Of its events."""

    def leaf(self) -> bytes:
        """Return what stands for the stream in the tree."""
        version, count = (one.to_bytes(_NUMBER_BYTES) for one in (self.version, self.count))
        return b"".join((self.stream, version, self.hash, count))

    def line(self) -> bytes:
        """Return the stream's line in the file."""
        return canonical_json([self.stream.hex(), self.version, self.hash.hex(), self.count])

    @classmethod
    def parse(cls, line: bytes) -> "Head":
        """Read a stream's line.

        Raises:
            ValueError: it isn't one.
        """
        stream, version, own, count = parse_canonical_json(line)
        head = cls(bytes.fromhex(stream), version, bytes.fromhex(own), count)
        if (
            head.line() != line
            or (len(head.stream), len(head.hash)) != (_KEY_BYTES, _HASH_BYTES)
            or not all(type(one) is int and 1 <= one <= _NUMBER_MAX for one in (version, count))
        ):
            raise ValueError("not the head of a stream")
        return head


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is signed."""

    events: int
    position: int
    """The last position of the log; 0 for an empty one."""
    root: bytes
    sealed_at: datetime
    streams: int

    def as_json(self) -> dict[str, Any]:
        """Return the statement as it stands in the file."""
        return {
            "events": self.events,
            "format_version": FORMAT_VERSION,
            "position": self.position,
            "root": self.root.hex(),
            "sealed_at": as_utc(self.sealed_at).isoformat(),
            "streams": self.streams,
        }

    def message(self) -> bytes:
        """Return the bytes that are signed."""
        return SIGNED_FOR + canonical_json(self.as_json())

    @classmethod
    def parse(cls, given: dict[str, Any]) -> "Statement":
        """Read a statement.

        Raises:
            ValueError, TypeError, KeyError, OverflowError: it isn't one.
        """
        sealed_at = datetime.fromisoformat(given["sealed_at"])
        if sealed_at.tzinfo is None:  # Nobody can say when that is.
            raise ValueError("not a time")
        statement = cls(
            events=given["events"],
            position=given["position"],
            root=bytes.fromhex(given["root"]),
            sealed_at=sealed_at,
            streams=given["streams"],
        )
        if statement.as_json() != given:
            raise ValueError("not a statement")
        return statement


def write_seal(
    source: AuditSource,
    signer: Signer,
    write: Callable[[bytes], object],
    *,
    at: datetime,
    progress: Progress | None = None,
) -> tuple[Statement, AuditReport]:
    """Write the seal of a log; the statement comes last, and only if no chain is broken.

    Returns the statement, and a report with what is wrong with the chains, if anything.

    Raises:
        StoreError: the log can't be read to its end; what was written is no seal.
    """
    findings, tree = Findings(), MerkleRoot()
    extent = source.extent()
    streams = events = position = 0
    write(_line({"format": FORMAT, "format_version": FORMAT_VERSION}))
    for head, last in heads(chained(source.streams(), Place(findings))):
        streams += 1
        events += head.count
        position = max(position, last)
        if progress is not None and not streams % PROGRESS_EVERY:
            progress(events, extent.events)
        if findings.count == 0:  # Else a version may be anything.
            tree.add(head.leaf())
            write(head.line() + b"\n")
    statement = Statement(
        events=events, position=position, root=tree.root(), sealed_at=at, streams=streams
    )
    if findings.count == 0:
        signature = signer.sign(statement.message())
        write(
            _line(
                {
                    "public_key": b64encode(signer.public_key()).decode(),
                    "signature": b64encode(signature).decode(),
                    "statement": statement.as_json(),
                }
            )
        )
    if progress is not None:
        progress(extent.events, extent.events)
    if source.changed_meanwhile():
        Place(findings).report(CHAIN, "one state", "somebody wrote meanwhile; seal again")
    return statement, AuditReport(
        store=source.name,
        findings=tuple(findings.kept),
        findings_count=findings.count,
        notes=(),
        counts={"events": events, "streams": streams},
        position=position,
    )


def heads(links: Iterable[Link]) -> Iterator[tuple[Head, int]]:
    """Return each stream's head, and the position of its last event."""
    last: Link | None = None
    count = 0
    for link in links:
        if last is not None and link.stream != last.stream:
            yield Head(last.stream, last.version, last.hash, count), last.position
            count = 0
        last = link
        count += 1
    if last is not None:
        yield Head(last.stream, last.version, last.hash, count), last.position


class SealFile(NamedTuple):
    """A seal that was read through: what it states, and who signed it."""

    statement: Statement
    root: bytes
    """Computed from the streams' lines."""
    streams: int
    events: int
    in_order: bool
    """Whether the streams stand in the order of their ids, each once."""
    signature: bytes
    public_key: bytes
    """As the file names it; a verifier brings its own."""


def read_seal(lines: Iterable[bytes]) -> SealFile:
    """Read a seal through, without believing it.

    Raises:
        InvalidInputError: it isn't a seal, or has no end.
    """
    tree = MerkleRoot()
    streams = events = 0
    in_order, before = True, b""
    end: bytes | None = None
    for line in _content(lines):
        if end is not None:
            raise _not_a_seal("goes on after its statement")
        if line.startswith(b"{"):
            end = line
            continue
        head = _head(line)
        in_order, before = in_order and head.stream > before, head.stream
        streams += 1
        events += head.count
        tree.add(head.leaf())
    if end is None:
        raise _not_a_seal("has no statement at its end")
    try:
        said: dict[str, Any] = parse_canonical_json(end)
        return SealFile(
            Statement.parse(said["statement"]),
            tree.root(),
            streams,
            events,
            in_order,
            b64decode(said["signature"], validate=True),
            b64decode(said["public_key"], validate=True),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise _not_a_seal("ends with something else than a statement") from None


def sealed_heads(lines: Iterable[bytes]) -> Iterator[Head]:
    """Iterate over the streams' lines of a seal that was read through before."""
    for line in _content(lines):
        if not line.startswith(b"{"):
            yield _head(line)


def _content(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield all lines after the first, which must say that this is a seal."""
    first = True
    for line in lines:
        if len(line) > LINE_BYTES_MAX:
            raise _not_a_seal("has a line that is longer than any of a seal's")
        bare = line.removesuffix(b"\n")
        if first:
            first = False
            if bare != canonical_json({"format": FORMAT, "format_version": FORMAT_VERSION}):
                raise _not_a_seal("isn't one, or of another release's format")
            continue
        yield bare
    if first:
        raise _not_a_seal("is empty")


def _head(line: bytes) -> Head:
    try:
        return Head.parse(line)
    except (TypeError, ValueError, OverflowError):
        raise _not_a_seal("has a line that is no stream's") from None


def _line(value: dict[str, Any]) -> bytes:
    return canonical_json(value) + b"\n"


def _not_a_seal(problem: str) -> InvalidInputError:
    return InvalidInputError(field="seal", problem=problem)
