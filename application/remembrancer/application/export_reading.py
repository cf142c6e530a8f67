"""How far an export has been read, and whether each line may stand where it does (adr/0024)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from remembrancer.application.export_format import (
    EndLine,
    EventLine,
    Header,
    Line,
    OriginalLine,
    OwnerLine,
    SessionLine,
)
from remembrancer.application.ports.archive import Counts
from remembrancer.application.remember import Progress
from remembrancer.domain.export_errors import DamagedExportError

AT_ONCE = 500
"""Lines written, or versions indexed, in one go."""

_ORDER: dict[type, int] = {Header: 0, EventLine: 1, OriginalLine: 2, SessionLine: 3, EndLine: 4}
"""In which order lines stand; those of owners stand anywhere between."""


@dataclass(slots=True, kw_only=True)
class Reading:
    """How far an export has been read, and what its lines so far say of the others."""

    done: int = 0
    """Of an earlier reading."""
    header: Header | None = None
    owners: list[OwnerLine] = field(default_factory=list)
    is_owner_awaited: bool = False
    """The line before named an owner: the next is the first of theirs."""
    line: int = 0
    place: int = 0
    position: int = 0
    seen: dict[type, int] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """What was there so far."""
        return Counts(
            events=self.seen.get(EventLine, 0),
            originals=self.seen.get(OriginalLine, 0),
            sessions=self.seen.get(SessionLine, 0),
        )

    @property
    def holds_originals(self) -> bool:
        """Whether texts come with it."""
        return self.header is not None and self.header.holds_originals

    def take(self, number: int, line: Line) -> None:
        """Take a line in.

        Raises:
            DamagedExportError: it can't stand where it does.
        """
        self.line = number
        self.seen[type(line)] = self.seen.get(type(line), 0) + 1
        if isinstance(line, OwnerLine):
            if line.number != len(self.owners) + 1:
                raise DamagedExportError(line=number, problem="an owner is missing before it")
            # So that there are no more owners than lines that are checked for whose they are.
            if self.is_owner_awaited:
                raise DamagedExportError(line=number, problem="an owner without a line before it")
            self.owners.append(line)
            self.is_owner_awaited = True
            return
        if self.is_owner_awaited and getattr(line, "of", None) != len(self.owners):
            raise DamagedExportError(line=number, problem="an owner without a line before it")
        self.is_owner_awaited = False
        if _ORDER[type(line)] < self.place:
            raise DamagedExportError(line=number, problem="doesn't stand in its place")
        self.place = _ORDER[type(line)]
        if isinstance(line, Header):
            self.header = line
        elif isinstance(line, EventLine):
            if line.position <= self.position:
                raise DamagedExportError(line=number, problem="positions don't rise")
            self.position = line.position
        elif isinstance(line, EndLine):
            self._end(number, line)

    def whose(self, number: int, of: int) -> OwnerLine:
        """Return an owner by number.

        Raises:
            DamagedExportError: no line has said who that is.
        """
        if of > len(self.owners):
            raise DamagedExportError(line=number, problem="nothing says whose it is")
        return self.owners[of - 1]

    def tell(self, progress: Progress | None, *, of_passes: int) -> None:
        """Report how far it is, now and then."""
        due = self.line % AT_ONCE == 0 or self.place == _ORDER[EndLine]
        if progress is not None and self.header is not None and due:
            one = self.header.events + self.header.originals + self.header.sessions
            progress(min(self.done + sum(_length(self.counts)), of_passes * one), of_passes * one)

    def _end(self, number: int, line: EndLine) -> None:
        said = Counts(events=line.events, originals=line.originals, sessions=line.sessions)
        header = self.header
        announced = header and Counts(
            events=header.events, originals=header.originals, sessions=header.sessions
        )
        if not said == announced == self.counts:
            raise DamagedExportError(line=number, problem="the counts don't agree")


def _length(counts: Counts) -> Iterable[int]:
    return (counts.events, counts.originals, counts.sessions)
