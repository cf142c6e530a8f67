"""Use case: prove that a log extends what was sealed, or name the first stream that doesn't."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from remembrancer.application.audit.chain import Link, chained
from remembrancer.application.audit.finding import (
    AuditReport,
    Finding,
    Findings,
    Invariant,
    Place,
    Progress,
    uuid_of,
)
from remembrancer.application.audit.seal import (
    PROGRESS_EVERY,
    Head,
    SealFile,
    read_seal,
    sealed_heads,
)
from remembrancer.application.ports.audit_source import AuditSource
from remembrancer.application.ports.signer import SignatureCheck
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import StoreError

GENUINE = Invariant(
    name="seal-is-genuine",
    sentence="A seal is signed by the key that the verifier trusts, over exactly the streams that "
    "it names.",
    source="adr/0022",
)
EXTENDS = Invariant(
    name="extends-the-seal",
    sentence="Every event that was sealed is there still, unaltered, in its stream; a log only "
    "grows.",
    source="design 4; adr/0022",
)
INVARIANTS: Final = (GENUINE, EXTENDS)

Lines = Callable[[], AbstractContextManager[Iterable[bytes]]]
"""Opens the seal; called twice."""


class VerifySeal:
    """Reads the seal twice and the log once, side by side."""

    def __init__(self, *, source: AuditSource, signatures: SignatureCheck) -> None:
        self._source = source
        self._signatures = signatures

    def __call__(
        self, lines: Lines, *, public_key: bytes, progress: Progress | None = None
    ) -> AuditReport:
        """Verify; findings are in the order of streams.

        Raises:
            InvalidInputError: it isn't a seal.
        """
        findings = Findings()
        with lines() as opened:
            seal = read_seal(opened)
        position = events = 0
        if self._is_genuine(seal, public_key, findings):
            try:
                with lines() as opened:
                    position, events = self._compared(sealed_heads(opened), findings, progress)
            except StoreError as error:
                _add(findings, None, None, "a log that can be read to its end", str(error))
            else:
                sealed = seal.statement.events
                if events < sealed:
                    _add(
                        findings,
                        None,
                        None,
                        f"{counted(sealed, 'event')} or more",
                        counted(events, "event"),
                    )
            if self._source.changed_meanwhile():
                _add(findings, None, None, "one state", "somebody wrote meanwhile; verify again")
        statement = seal.statement
        return AuditReport(
            store=self._source.name,
            findings=tuple(findings.kept),
            findings_count=findings.count,
            notes=(f"sealed at {statement.sealed_at.isoformat()}",),
            counts={"sealed events": statement.events, "sealed streams": statement.streams},
            position=position,
        )

    def _is_genuine(self, seal: SealFile, public_key: bytes, findings: Findings) -> bool:
        statement = seal.statement
        wrong = [
            problem
            for problem, is_right in (
                ("its signature is not that of this key", self._is_signed(seal, public_key)),
                ("its streams aren't the ones that were signed", seal.root == statement.root),
                (
                    "its streams and events aren't as many as it says",
                    (seal.streams, seal.events) == (statement.streams, statement.events),
                ),
                ("its streams aren't in order", seal.in_order),
            )
            if not is_right
        ]
        for problem in wrong:
            findings.add(
                Finding(
                    invariant=GENUINE.name,
                    stream=None,
                    version=None,
                    about="the seal",
                    expected="a genuine seal",
                    found=problem,
                )
            )
        return not wrong

    def _is_signed(self, seal: SealFile, public_key: bytes) -> bool:
        return self._signatures.is_genuine(
            seal.statement.message(), signature=seal.signature, public_key=public_key
        )

    def _compared(
        self, sealed: Iterator[Head], findings: Findings, progress: Progress | None
    ) -> tuple[int, int]:
        """Compare heads with the log; return the log's last position and its count of events.

        Positions are no part of what is compared: a restored log has new ones, without holes.
        """
        place = Place(findings)
        extent = self._source.extent()
        comparison = _Comparison(sealed, findings)
        position = done = 0
        for done, link in enumerate(chained(self._source.streams(), place), start=1):
            if progress is not None and not done % PROGRESS_EVERY:
                progress(done, extent.events)
            position = max(position, link.position)
            comparison.take(link)
        comparison.finish()
        if progress is not None:
            progress(extent.events, extent.events)
        return position, done


class _Comparison:
    """Follows the log's streams and the sealed heads, which are both in the order of their ids."""

    def __init__(self, sealed: Iterator[Head], findings: Findings) -> None:
        self._sealed = sealed
        self._findings = findings
        self._wanted = next(sealed, None)
        self._last: Link | None = None

    def take(self, link: Link) -> None:
        """Take in the log's next event."""
        if self._last is not None and link.stream != self._last.stream:
            self._end_stream(self._last)
        self._last = link
        while self._wanted is not None and self._wanted.stream < link.stream:
            self._lost(self._wanted, 0)
        wanted = self._wanted
        if wanted is not None and wanted.stream == link.stream and wanted.version == link.version:
            if wanted.hash != link.hash:
                _add(
                    self._findings,
                    link.stream,
                    link.version,
                    f"hash {wanted.hash.hex()}, as sealed",
                    f"{link.hash.hex()}: this version or one before it is another",
                )
            self._wanted = next(self._sealed, None)

    def finish(self) -> None:
        """The log has ended."""
        if self._last is not None:
            self._end_stream(self._last)
        while self._wanted is not None:
            self._lost(self._wanted, 0)

    def _end_stream(self, last: Link) -> None:
        if self._wanted is not None and self._wanted.stream == last.stream:
            self._lost(self._wanted, last.version)

    def _lost(self, wanted: Head, ends_at: int) -> None:
        _add(
            self._findings,
            wanted.stream,
            ends_at + 1,
            f"{counted(wanted.version, 'event')}, as sealed",
            f"the stream ends at version {ends_at}" if ends_at else "no such stream",
        )
        self._wanted = next(self._sealed, None)


def _add(
    findings: Findings, stream: bytes | None, version: int | None, expected: str, found: str
) -> None:
    findings.add(
        Finding(
            invariant=EXTENDS.name,
            stream=None if stream is None else uuid_of(stream),
            version=version,
            expected=expected,
            found=found,
        )
    )
