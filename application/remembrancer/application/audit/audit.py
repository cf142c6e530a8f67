"""Use case: audit a whole store.  Reads only, in constant memory, and never fails on damage."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from remembrancer.application.audit.differences import (
    ERASED_PART,
    ORIGINALS_PART,
    RECEIPTS_PART,
    WORDS_PART,
    differing,
    naming,
    report_differences,
)
from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import (
    AuditReport,
    AuditScope,
    Finding,
    Findings,
    Invariant,
    Progress,
    uuid_of,
)
from remembrancer.application.audit.joined import Share
from remembrancer.application.audit.originals import (
    SESSIONS,
    read_erased,
    read_originals,
    read_sessions,
    session_fact,
)
from remembrancer.application.audit.packs import PackCheck, PackCounts
from remembrancer.application.audit.projections import (
    read_receipts,
    read_vectors,
    read_words,
    report_unbought,
)
from remembrancer.application.audit.reading import StateReader
from remembrancer.application.audit.relations import check_relations
from remembrancer.application.audit.snapshots import SNAPSHOT, SnapshotCheck, stray_snapshots
from remembrancer.application.audit.walk import IMPOSSIBLE, Walk
from remembrancer.application.ports.audit_source import AuditSource, LogExtent
from remembrancer.domain.counted import counted
from remembrancer.domain.errors import StoreError, StoreForbiddenError

WHOLE = Invariant(
    name="store-is-whole",
    sentence="Every part of the store can be read, is of a known schema, and is as the database "
    "left it.",
    source="design 7",
)
POSITIONS = Invariant(
    name="positions-without-holes",
    sentence="Where the store gives positions without holes, there is none; the last that was "
    "given out is there.",
    source="adr/0006",
)
INVARIANTS: Final = (WHOLE, POSITIONS)

HOLES_NAMED_MAX: Final = 100
PACKS_PART: Final = "packs put together again"

_Read = TypeVar("_Read")


@dataclass(slots=True)
class _Run:
    """One audit under way."""

    findings: Findings
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    asked: int | None = None


class Audit:
    """Proves every invariant over one store, or names what breaks it."""

    def __init__(self, *, source: AuditSource, reader: StateReader | None = None) -> None:
        """``reader`` may be a faster one of the same states."""
        self._source = source
        self._reader = reader or StateReader()

    def __call__(
        self, scope: AuditScope | None = None, *, progress: Progress | None = None
    ) -> AuditReport:
        """Audit everything; report what is within ``scope``.  Never raises for what lies there.

        Raises:
            StoreClosedError: the source was closed.
        """
        run = _Run(Findings(scope or AuditScope()))
        self._part(run, "its structure", lambda: self._structure(run))
        extent = self._part(run, "the extent of its log", self._source.extent)
        if extent is not None:
            self._positions(run, extent)
            for share in Share.all_of(extent.events):
                self._share(run, extent, share, progress)
        if self._source.changed_meanwhile():
            _whole(run, "one state of the store", "somebody wrote meanwhile; audit again")
        return AuditReport(
            store=self._source.name,
            findings=tuple(run.findings.kept),
            findings_count=run.findings.count,
            notes=tuple(run.notes),
            counts=run.counts,
            position=0 if extent is None else extent.last,
            asked=run.asked,
        )

    # -- The store itself --------------------------------------------------

    def _structure(self, run: _Run) -> None:
        for fault in self._source.faults():
            _whole(run, fault.expected, fault.found)

    def _positions(self, run: _Run, extent: LogExtent) -> None:
        if not extent.gapless or not run.findings.scope.is_whole:
            return
        if extent.given is not None and extent.given > extent.last:
            _position(run, f"position {extent.given}, which was given out", f"{extent.last}")
        if extent.events != extent.last:
            self._part(run, "the positions of its log", lambda: self._holes(run))

    def _holes(self, run: _Run) -> None:
        before, holes = 0, 0
        for position, *_ in self._source.events():
            if position > before + 1:
                holes += 1
                if holes <= HOLES_NAMED_MAX:
                    _position(run, f"position {before + 1}", f"position {position}")
            before = position

    # -- One reading -------------------------------------------------------

    def _share(
        self, run: _Run, extent: LogExtent, share: Share, progress: Progress | None
    ) -> None:
        """Read log and vault once; after the first share, only for what concerns two streams."""
        is_first = share.number == 0
        findings = run.findings if is_first else Findings(run.findings.scope, is_mute=True)
        judge = self._reader
        packs = PackCheck(self._source, judge.spell, judge.parse) if is_first else None
        snapshots = SnapshotCheck(self._source) if is_first else None
        facts = Facts(share, packs=packs, snapshots=snapshots)
        walk = Walk(findings, facts, judge)
        if progress is not None:
            walk.on_progress = lambda done: progress(done, extent.events)
        events = self._part(run, "its log", lambda: walk.read(self._source.streams()))
        if packs is not None:
            self._counted(run, PACKS_PART, packs.finish)
        if events is None:
            run.notes.append(
                "the log couldn't be read to its end: vault and projections weren't compared"
            )
            return
        if is_first:
            run.counts |= {"events": walk.events, "streams": walk.streams}
            run.asked = None if run.findings.scope.is_whole else walk.asked
            if walk.events != extent.events:
                _whole(run, f"{counted(extent.events, 'event')} in streams", f"{walk.events}")
            _note_packs(run, packs.counts if packs is not None else PackCounts())
            self._compare(run, facts, walk)
            self._check_strays(run, snapshots)
            if facts.labels.are_too_many:
                run.notes.append("too many labels: not all selections were compared with theirs")
        self._relations(run, facts, findings)

    def _compare(self, run: _Run, facts: Facts, walk: Walk) -> None:
        """Compare what the log says with vault and projections."""
        unread = {
            part
            for part, read in self._parts(facts, run.findings).items()
            if not self._counted(run, part, read)
        }
        comparisons = [one for one in differing(facts) if one.part not in unread]
        if not comparisons:
            return
        named = Facts(Share.nothing())
        naming(facts, comparisons, named)
        mute = Findings(run.findings.scope, is_mute=True)
        Walk(mute, named, self._reader).read(self._source.streams())
        for part, read in self._parts(named, mute).items():
            if part not in unread:
                read()
        report_differences(facts, named, comparisons, walk.not_understood, run.findings)

    def _parts(self, facts: Facts, findings: Findings) -> dict[str, Callable[[], int]]:
        """Return how each part that must agree with the log is read."""
        source = self._source
        return {
            ORIGINALS_PART: lambda: read_originals(source.originals(), facts, findings),
            ERASED_PART: lambda: read_erased(source.erased(), facts),
            RECEIPTS_PART: lambda: read_receipts(source.receipts(), facts),
            WORDS_PART: lambda: read_words(source.words(), facts),
        }

    def _relations(self, run: _Run, facts: Facts, strays: Findings) -> None:
        source = self._source
        self._counted(run, "vectors", lambda: read_vectors(source, facts, strays))
        self._counted(run, "sessions", lambda: read_sessions(source.sessions(), facts))
        self._part(run, "its log", lambda: self._name_unmet(facts, run.findings))

    def _name_unmet(self, facts: Facts, findings: Findings) -> None:
        check_relations(facts, findings, self._source.streams, self._reader)
        report_unbought(self._source, facts, findings)
        unmet = facts.selections.unmet()
        for row in self._source.sessions() if unmet else ():
            if hash(session_fact(row)) in unmet:
                findings.add(
                    Finding(
                        invariant=SESSIONS.name,
                        stream=uuid_of(row[0]),
                        version=None,
                        about="a key in the session vault",
                        expected="a committed selection",
                        found="none",
                        tenant=row[1],
                        owner=row[2],
                    )
                )

    def _check_strays(self, run: _Run, snapshots: SnapshotCheck | None) -> None:
        def check() -> int:
            count = sum(1 for _ in self._source.snapshots())
            if snapshots is not None and count != snapshots.checked:
                for stream, tenant, owner, version in stray_snapshots(self._source):
                    run.findings.add(
                        Finding(
                            invariant=SNAPSHOT.name,
                            stream=stream,
                            version=version,
                            about="the copy of a ledger",
                            expected="the events up to it",
                            found="none",
                            tenant=tenant,
                            owner=owner,
                        )
                    )
            return count

        self._counted(run, "ledger copies", check)

    # -- Parts that may not be readable ------------------------------------

    def _counted(self, run: _Run, part: str, read: Callable[[], int]) -> bool:
        """Read a part and count it; say whether it could be read."""
        count = self._part(run, part, read)
        if count is not None:
            run.counts[part] = count
        return count is not None

    def _part(self, run: _Run, part: str, read: Callable[[], _Read]) -> _Read | None:
        """Read a part; None if it can't be, which is a finding, or not permitted: a note."""
        try:
            return read()
        except StoreForbiddenError:
            run.notes.append(f"not permitted to read: {part}")
        except StoreError as error:
            _whole(run, f"{part}, readable", str(error))
        except IMPOSSIBLE as error:
            # A damaged store may give anything where something was.
            _whole(run, f"{part}, of values that we write", f"others ({type(error).__name__})")
        return None


def unopened(store: str, error: StoreError) -> AuditReport:
    """Return the report of a store that couldn't even be opened."""
    run = _Run(Findings())
    _whole(run, "a store that can be opened", str(error))
    return AuditReport(
        store=store,
        findings=tuple(run.findings.kept),
        findings_count=run.findings.count,
        notes=(),
        counts={},
        position=0,
    )


def _whole(run: _Run, expected: str, found: str) -> None:
    run.findings.add(
        Finding(invariant=WHOLE.name, stream=None, version=None, expected=expected, found=found)
    )


def _position(run: _Run, expected: str, found: str) -> None:
    run.findings.add(
        Finding(
            invariant=POSITIONS.name, stream=None, version=None, expected=expected, found=found
        )
    )


def _note_packs(run: _Run, counts: PackCounts) -> None:
    for count, why in (
        (counts.erased, "parts were erased"),
        (counts.forbidden, "reading texts isn't permitted"),
        (counts.unknown_format, "another release's format"),
    ):
        if count:
            run.notes.append(f"{counted(count, 'pack')} couldn't be put together again: {why}")
