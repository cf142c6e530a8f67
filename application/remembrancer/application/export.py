"""Use case: write a store, or a part of it, as lines that another store can be restored from."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import Field

from remembrancer.application.export_format import (
    Header,
    LineWriter,
    event_line,
    original_line,
    session_line,
)
from remembrancer.application.ports import EntryVault, EventLog, Original, Transactions
from remembrancer.application.ports.archive import Archive, ArchivedSession, Counts, Part
from remembrancer.application.remember import Progress
from remembrancer.application.whose import acting_for_part
from remembrancer.domain.entry import MemoryEntry
from remembrancer.domain.errors import InvalidInputError, MalformedRecordError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.parsed import Name, Parsed

STEP = 1_000
"""Lines between two reports of progress."""


class ExportRequest(Parsed):
    """Which part: everything, a tenant, an owner, or one stream."""

    tenant: Name | None = None
    owner: Name | None = None
    stream: Annotated[UUID | None, Field(strict=False)] = None
    originals: bool | None = None
    """With texts, salts, the host's items and keys; None: only where everything is exported."""

    def model_post_init(self, _: object, /) -> None:
        """Check the rules that span fields."""
        if self.owner is not None and self.tenant is None:
            raise InvalidInputError(field="tenant", problem="must be named with an owner")
        if self.stream is not None and self.tenant is not None:
            raise InvalidInputError(
                field="stream", problem="is one part, a tenant another: name one of them"
            )

    @property
    def is_whole(self) -> bool:
        """Whether everything is asked for."""
        return self.tenant is None and self.stream is None

    @property
    def holds_originals(self) -> bool:
        """Whether content goes with the events."""
        return self.is_whole if self.originals is None else self.originals


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    events: int
    originals: int
    sessions: int
    holds_originals: bool
    sha256: str
    """Over all lines but the last, which has it too."""


class Export:
    """Reads one state of the store, a piece at a time; writes nothing to it."""

    def __init__(
        self,
        *,
        archive: Archive,
        log: EventLog,
        vault: EntryVault,
        transactions: Transactions,
    ) -> None:
        self._archive = archive
        self._log = log
        self._vault = vault
        self._transactions = transactions

    def __call__(
        self,
        request: ExportRequest,
        write: Callable[[bytes], object],
        *,
        progress: Progress | None = None,
    ) -> Exported:
        """Give the lines of an export to ``write``, in order.

        Raises:
            InvalidInputError: nothing was ever recorded of the part that is asked for.
            MalformedRecordError: an event isn't what was recorded, or doesn't follow its
                predecessor; audit the store.
        """
        part = Part(tenant=request.tenant, owner=request.owner, stream_id=request.stream)
        with acting_for_part(self._transactions, part), self._transactions.snapshot():
            counts = self._counts(part, request)
            if not request.is_whole and not counts.events:
                asked = "stream" if request.stream else "owner" if request.owner else "tenant"
                raise InvalidInputError(field=asked, problem="nothing was ever recorded of it")
            return self._written(part, request, counts, LineWriter(write), progress)

    def _written(
        self,
        part: Part,
        request: ExportRequest,
        counts: Counts,
        lines: LineWriter,
        progress: Progress | None,
    ) -> Exported:
        lines.put(
            Header(
                tenant=request.tenant,
                owner=request.owner,
                stream=request.stream,
                holds_originals=request.holds_originals,
                events=counts.events,
                originals=counts.originals,
                sessions=counts.sessions,
            )
        )
        total = counts.events + counts.originals + counts.sessions
        for done, _ in enumerate(self._put(part, request, lines), start=1):
            if progress is not None and (done % STEP == 0 or done == total):
                progress(done, total)
        digest = lines.end(
            events=counts.events, originals=counts.originals, sessions=counts.sessions
        )
        return Exported(
            events=counts.events,
            originals=counts.originals,
            sessions=counts.sessions,
            holds_originals=request.holds_originals,
            sha256=digest,
        )

    def _put(self, part: Part, request: ExportRequest, lines: LineWriter) -> Iterator[None]:
        """Write events, originals and sessions; stop after each."""
        for event in self._archive.events(part):
            with _ours(event.stream_id, event.version):
                line = event_line(event, lines.number_of(event.tenant, event.owner))
            lines.put(line)
            yield
        if not request.holds_originals:
            return
        for original in self._originals(part):
            stream = MemoryEntry.create_id(original.tenant, original.entry_id)
            with _ours(stream, original.version):
                kept = original_line(original, lines.number_of(original.tenant, original.owner))
            lines.put(kept)
            yield
        for session in self._sessions(part):
            with _ours(session.selection_id, 1):
                secret = session_line(session, lines.number_of(session.tenant, session.owner))
            lines.put(secret)
            yield

    def _counts(self, part: Part, request: ExportRequest) -> Counts:
        counts = self._archive.counts(part)
        if not request.holds_originals:
            return Counts(events=counts.events, originals=0, sessions=0)
        if part.stream_id is None:
            return counts
        return Counts(
            events=counts.events,
            originals=sum(1 for _ in self._originals(part)),
            sessions=sum(1 for _ in self._sessions(part)),
        )

    def _originals(self, part: Part) -> Iterator[Original]:
        if part.stream_id is None:
            yield from self._archive.originals(part)
            return
        for event in self._log.read(part.stream_id):
            if isinstance(event, MemoryEntry.EntryRemembered):
                yield from self._vault.history(EntryId(event.entry_id))

    def _sessions(self, part: Part) -> Iterator[ArchivedSession]:
        for session in self._archive.sessions(Part(tenant=part.tenant, owner=part.owner)):
            if part.stream_id in {None, session.selection_id}:
                yield session


@contextmanager
def _ours(stream_id: UUID, version: int) -> Generator[None]:
    """See that what is written could be read again."""
    foreign = True
    with suppress(ValueError):  # Of pydantic, or of a decoder: it may hold what it is about.
        yield
        foreign = False
    if foreign:
        problem = "isn't what this release records or keeps"
        raise MalformedRecordError(stream_id=stream_id, version=version, problem=problem)
