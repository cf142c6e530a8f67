"""The lines of an export: what they hold, how they are written, and how they are read (adr/0024).

One JSON object a line, canonical (:mod:`remembrancer.domain.canonical_json`), so that the same
store always gives the same bytes.  The last line has the digest over all lines before it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from remembrancer.application.export_bounds import bytes_max, is_within_bounds
from remembrancer.application.ports import Original
from remembrancer.application.ports.archive import ArchivedEvent, ArchivedSession
from remembrancer.application.utc_time import UtcTime
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.entry import METADATA_KEYS_MAX, SUBJECTS_MAX
from remembrancer.domain.export_errors import DamagedExportError, UnreadableExportError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.original_digest import SALT_BYTES
from remembrancer.domain.parsed import Name, Text
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

FORMAT: Final = "remembrancer-export"
VERSION: Final = 1
"""Raised when a line changes; a release reads all versions up to its own."""

_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Number = Annotated[int, Field(ge=1, lt=2**63)]
_Salt = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{2 * SALT_BYTES}}}$", repr=False)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    def data(self) -> bytes:
        """Return the line with its end."""
        return canonical_json(self.model_dump(mode="json")) + b"\n"


class Header(_Line):
    """Which part of a store this is, what it holds, and how much of each."""

    line: Literal["header"] = "header"
    format: Literal["remembrancer-export"] = FORMAT
    version: Literal[1] = VERSION
    tenant: Name | None
    owner: Name | None
    stream: UUID | None
    holds_originals: bool
    """Also salts, the host's items and sessions' keys: content."""
    events: _Count
    originals: _Count
    sessions: _Count


class OwnerLine(_Line):
    """Whose the lines are that name this number; before the first of them."""

    line: Literal["owner"] = "owner"
    number: _Number
    """From 1, rising by 1."""
    tenant: Name
    owner: Name


class EventLine(_Line):
    """An event as it is recorded."""

    line: Literal["event"] = "event"
    of: _Number
    position: _Number
    stream: UUID
    version: _Number
    topic: Annotated[str, Field(max_length=256)]
    state: Annotated[str, Field(repr=False)]
    """The stored bytes, which are UTF-8."""
    predecessor: _Hash
    hash: _Hash

    def event(self, whose: OwnerLine) -> ArchivedEvent:
        """Return what is taken into a store."""
        return ArchivedEvent(
            position=self.position,
            tenant=whose.tenant,
            owner=whose.owner,
            stream_id=self.stream,
            version=self.version,
            topic=self.topic,
            state=self.state.encode(),
            predecessor=bytes.fromhex(self.predecessor),
            own=bytes.fromhex(self.hash),
        )


class OriginalLine(_Line):
    """One kept version of an entry; those of one entry by rising version."""

    line: Literal["original"] = "original"
    of: _Number
    entry: UUID
    version: _Number
    scope: Scope
    kind: Name
    sensitivity: Sensitivity
    recorded_at: UtcTime
    digest: _Hash
    salt: _Salt
    tokens: _Count
    token_counter: Name
    subjects: Annotated[list[Name], Field(max_length=SUBJECTS_MAX, repr=False)]
    metadata: Annotated[dict[Name, Text], Field(max_length=METADATA_KEYS_MAX, repr=False)]
    reason: Annotated[Text, Field(repr=False)]
    text: Annotated[Text, Field(repr=False)]

    def original(self, whose: OwnerLine) -> Original:
        """Return what is kept in a vault."""
        return Original(
            tenant=whose.tenant,
            owner=whose.owner,
            entry_id=EntryId(self.entry),
            version=self.version,
            scope=self.scope,
            kind=self.kind,
            sensitivity=self.sensitivity,
            text=self.text,
            salt=bytes.fromhex(self.salt),
            digest=self.digest,
            tokens=self.tokens,
            token_counter=self.token_counter,
            subjects=tuple(self.subjects),
            metadata=self.metadata,
            reason=self.reason,
            recorded_at=self.recorded_at.astimezone(UTC),
        )


class SessionLine(_Line):
    """What the session vault keeps of one selection."""

    line: Literal["session"] = "session"
    of: _Number
    selection: UUID
    session: Name
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]
    items: Annotated[list[tuple[_Number, str]], Field(strict=False, repr=False)]
    """By number of the pack: the host's items as canonical JSON."""


class EndLine(_Line):
    """The last line."""

    line: Literal["end"] = "end"
    lines: _Count
    """Before this one."""
    events: _Count
    originals: _Count
    sessions: _Count
    sha256: _Hash
    """Over all bytes before this line."""


Line = Header | OwnerLine | EventLine | OriginalLine | SessionLine | EndLine

_PACK_TOPIC: Final = L3Selection.ContextPackAssembled.TOPIC
_READ: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="line")])


class LineWriter:
    """Writes lines, numbers owners as they appear, and keeps count and digest."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._sha256 = hashlib.sha256()
        self._owners: dict[tuple[str, str], int] = {}
        self._packs = 0
        self.lines = 0

    def put(self, line: _Line) -> None:
        """Write one line.

        Raises:
            UnreadableExportError: it would be too much to be read again.
        """
        data = line.data()
        if isinstance(line, EventLine) and line.topic == _PACK_TOPIC:
            self._packs += 1
        if not is_within_bounds(data, packs=self._packs):
            kind = line.line  # type: ignore[attr-defined]  # All have it.
            raise UnreadableExportError(f"a line of kind {kind} is too much to be read again")
        self._sha256.update(data)
        self._write(data)
        self.lines += 1

    def number_of(self, tenant: str, owner: str) -> int:
        """Return an owner's number, written before its first use."""
        key = (tenant, owner)
        if key not in self._owners:
            number = self._owners[key] = len(self._owners) + 1
            self.put(OwnerLine(number=number, tenant=tenant, owner=owner))
        return self._owners[key]

    def end(self, *, events: int, originals: int, sessions: int) -> str:
        """Write the last line; return the digest."""
        digest = self._sha256.hexdigest()
        self.put(
            EndLine(
                lines=self.lines,
                events=events,
                originals=originals,
                sessions=sessions,
                sha256=digest,
            )
        )
        return digest


def event_line(one: ArchivedEvent, of: int) -> EventLine:
    """Return an event as a line.

    Raises:
        UnicodeDecodeError: its state isn't UTF-8: nobody of ours recorded it.
    """
    return EventLine(
        of=of,
        position=one.position,
        stream=one.stream_id,
        version=one.version,
        topic=one.topic,
        state=one.state.decode(),
        predecessor=one.predecessor.hex(),
        hash=one.own.hex(),
    )


def original_line(one: Original, of: int) -> OriginalLine:
    """Return a version of an entry as a line."""
    return OriginalLine(
        of=of,
        entry=one.entry_id,
        version=one.version,
        scope=one.scope,
        kind=one.kind,
        sensitivity=one.sensitivity,
        recorded_at=one.recorded_at,
        digest=one.digest,
        salt=one.salt.hex(),
        tokens=one.tokens,
        token_counter=one.token_counter,
        subjects=list(one.subjects),
        metadata=dict(one.metadata),
        reason=one.reason,
        text=one.text,
    )


def session_line(one: ArchivedSession, of: int) -> SessionLine:
    """Return what is kept of a selection as a line."""
    return SessionLine(
        of=of,
        selection=one.selection_id,
        session=one.session,
        key=one.key.hex(),
        items=[(number, items.decode()) for number, items in one.items],
    )


def read_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, Line]]:
    """Iterate over an export's lines with their numbers, from 1; the last is its end.

    What was given out before the end counts only once the end was reached without an error.

    Raises:
        UnreadableExportError: it doesn't begin as an export of ours, or its format is newer.
        DamagedExportError: a line is none of ours, or count or digest don't agree.
    """
    sha256 = hashlib.sha256()
    ended = False
    number = packs = 0
    for number, data in enumerate(lines, start=1):
        if ended:
            raise DamagedExportError(line=number, problem="something follows the end")
        line = _first(data) if number == 1 else _read(number, data, packs=packs)
        if isinstance(line, EventLine) and line.topic == _PACK_TOPIC:
            packs += 1
        elif isinstance(line, EndLine):
            ended = True
            if line.lines != number - 1 or line.sha256 != sha256.hexdigest():
                problem = "the lines before it aren't those that were written"
                raise DamagedExportError(line=number, problem=problem)
        sha256.update(data)
        yield number, line
    if not ended:
        if not number:
            raise UnreadableExportError("the file is empty")
        raise DamagedExportError(line=number, problem="the rest is missing")


def _first(data: bytes) -> Line:
    known = None
    if len(data) <= bytes_max(b""):
        with suppress(ValidationError):  # What it says is nothing for an error.
            known = _Opening.model_validate_json(data)
    if known is None or known.format != FORMAT:
        raise UnreadableExportError("the file is no export of remembrancer")
    if known.version > VERSION:
        raise UnreadableExportError(
            f"the export is of format {known.version}, this release reads up to {VERSION}: "
            "upgrade remembrancer"
        )
    return _read(1, data, packs=0)


class _Opening(BaseModel):
    """All that any version's first line says."""

    model_config = ConfigDict(strict=True, hide_input_in_errors=True)

    line: Literal["header"]
    format: str
    version: int


def _read(number: int, data: bytes, *, packs: int) -> Line:
    if len(data) > bytes_max(data) or not is_within_bounds(data, packs=packs):
        raise DamagedExportError(line=number, problem="is more than any that is written")
    line: Any = None
    if data.endswith(b"\n"):
        with suppress(ValidationError):  # As above.
            line = _READ.validate_json(data)
    if line is None or isinstance(line, Header) != (number == 1):
        cut = "" if data.endswith(b"\n") else " (cut off)"
        raise DamagedExportError(line=number, problem=f"is none that was written{cut}")
    read: Line = line
    return read
