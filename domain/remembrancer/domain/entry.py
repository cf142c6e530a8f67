"""One memory item: what a host gives, and what the log says of its life.

The events carry digest, length and labels; never text, subjects or metadata values, which are in
the vault (design section 4).  Topics and field names are stored format: never rename one.
"""

import re
import unicodedata
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Self, cast
from uuid import UUID

from eventsourcing.domain import Aggregate, event
from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from remembrancer.domain.errors import EntryErasedError
from remembrancer.domain.identity import EntryId, stream_id
from remembrancer.domain.parsed import FilledText, Name, Parsed, Text
from remembrancer.domain.scope import Scope
from remembrancer.domain.sensitivity import Sensitivity

SUBJECTS_MAX = 64
METADATA_KEYS_MAX = 64
KIND_CORE = "core"
"""Entries of this kind are what :attr:`RecallKind.CORE` returns."""

REASON_STATED = "stated"
"""Stands in the log for a reason that was given in words rather than as a code."""

_REASON_CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}")

_Lenient = Field(strict=False)  # A list is welcome where a tuple is kept.


def _distinct_keys(given: Any, handler: ValidatorFunctionWrapHandler) -> dict[str, str]:
    found: dict[str, str] = handler(given)
    if len(found) != len(given):
        raise ValueError("two keys are one and the same name once normalised")
    return found


class NewEntry(Parsed):
    """An entry to remember.

    ``idempotency_key`` makes a retry safe: the same key of the same owner names one entry.
    """

    tenant: Name
    owner: Name
    scope: Scope
    text: Annotated[FilledText, Field(repr=False)]
    kind: Name = "note"
    sensitivity: Annotated[Sensitivity, _Lenient]
    subjects: Annotated[
        tuple[Name, ...], Field(strict=False, repr=False, max_length=SUBJECTS_MAX)
    ] = ()
    metadata: Annotated[
        dict[Name, Text],
        Field(strict=False, repr=False, max_length=METADATA_KEYS_MAX),
        WrapValidator(_distinct_keys),
    ] = Field(default_factory=dict)
    idempotency_key: Annotated[Name | None, Field(repr=False)] = None


class Reason(Parsed):
    """Why an entry was corrected or erased: a code such as ``outdated``, or words."""

    reason: Annotated[FilledText, Field(repr=False)]


class EntryHeader(NamedTuple):
    """The labels of one version of an entry: all that permission is decided by."""

    tenant: str
    owner: str
    entry_id: EntryId
    version: int
    scope: str
    kind: str
    sensitivity: Sensitivity


def reason_code(reason: str) -> str:
    """Return ``reason`` if it is a code, else :data:`REASON_STATED`.

    The log is never rewritten, so words that may be private don't enter it.
    """
    return reason if _REASON_CODE.fullmatch(reason) else REASON_STATED


def subject_key(subject: str) -> str:
    """Return the form in which subjects are compared: NFKC, case folded."""
    return unicodedata.normalize("NFKC", subject).casefold()


class MemoryEntry(Aggregate):
    """The life of one entry: remembered, corrected any number of times, erased at most once."""

    TOPIC = "remembrancer.memory_entry"

    # -- Facts, in the order they may first appear -------------------------

    class Event(Aggregate.Event):
        """Base of the facts below; never stored itself."""

        TOPIC = "remembrancer.memory_entry.event"

    class EntryRemembered(Event, Aggregate.Created):
        """Version 1 of the entry came into being."""

        TOPIC = "remembrancer.memory_entry.entry_remembered"
        tenant: str
        owner: str
        entry_id: UUID
        digest: str
        length: int
        scope: str
        kind: str
        sensitivity: str

    class EntryCorrected(Event):
        """The next version replaced the one before."""

        TOPIC = "remembrancer.memory_entry.entry_corrected"
        entry_id: UUID
        digest: str
        length: int
        scope: str
        kind: str
        sensitivity: str
        reason: str

    class EntryErased(Event):
        """Text and salts of all versions were destroyed."""

        TOPIC = "remembrancer.memory_entry.entry_erased"
        entry_id: UUID
        reason: str

    # -- Questions ---------------------------------------------------------

    @staticmethod
    def create_id(tenant: str, entry_id: UUID) -> UUID:
        """Return the stream of an entry."""
        return stream_id("memory_entry", tenant, str(entry_id))

    @property
    def header(self) -> EntryHeader:
        """Labels of the current version."""
        return EntryHeader(
            tenant=self.tenant,
            owner=self.owner,
            entry_id=self.entry_id,
            version=self.text_version,
            scope=self.scope,
            kind=self.kind,
            sensitivity=Sensitivity(self.sensitivity),
        )

    # -- Decisions: check every rule, then record at most one fact ---------

    @classmethod
    def begun(
        cls, header: EntryHeader, *, digest: str, length: int, at: datetime
    ) -> EntryRemembered:
        """Return the fact that begins an entry; ``length`` is its text's in UTF-8 bytes.

        Where nothing more is decided about the entry at once, the fact alone will do: an
        aggregate to take it in costs three times as much.
        """
        fact: dict[str, Any] = {  # Of fields that the library adds type checkers know nothing.
            "originator_topic": cls.TOPIC,
            "originator_id": cls.create_id(header.tenant, header.entry_id),
            "originator_version": cls.INITIAL_VERSION,
            "timestamp": at,
            "tenant": header.tenant,
            "owner": header.owner,
            "entry_id": header.entry_id,
            "digest": digest,
            "length": length,
            "scope": header.scope,
            "kind": header.kind,
            "sensitivity": header.sensitivity.word,
        }
        return cls.EntryRemembered(**fact)

    @classmethod
    def remember(cls, header: EntryHeader, *, digest: str, length: int, at: datetime) -> Self:
        """Begin an entry that more is decided about; as :meth:`begun`."""
        fact = cls.begun(header, digest=digest, length=length, at=at)
        entry = cast("Self", fact.mutate(None))
        entry.pending_events.append(fact)
        return entry

    def correct(
        self, header: EntryHeader, *, digest: str, length: int, reason: str, at: datetime
    ) -> None:
        """Put a new version in the place of the current one.

        Raises:
            EntryErasedError: the entry was erased.
        """
        if self.erased:
            raise EntryErasedError(self.entry_id)
        self._corrected(
            entry_id=self.entry_id,
            digest=digest,
            length=length,
            scope=header.scope,
            kind=header.kind,
            sensitivity=header.sensitivity.word,
            reason=reason_code(reason),
            timestamp=at,
        )

    def erase(self, *, reason: str, at: datetime) -> None:
        """End the entry.  Erasing an erased entry records nothing."""
        if not self.erased:
            self._erased(entry_id=self.entry_id, reason=reason_code(reason), timestamp=at)

    # -- Evolution: no rules here, replay must never refuse ----------------

    @event(EntryRemembered)
    def __init__(
        self,
        tenant: str,
        owner: str,
        entry_id: UUID,
        digest: str,
        length: int,
        scope: str,
        kind: str,
        sensitivity: str,
        timestamp: datetime,
    ) -> None:
        self.tenant = tenant
        self.owner = owner
        self.entry_id = EntryId(entry_id)
        self.text_version = 1
        self.digests = [digest]
        self.scope = scope
        self.kind = kind
        self.sensitivity = sensitivity
        self.erased = False

    @event(EntryCorrected)
    def _corrected(
        self,
        entry_id: UUID,
        digest: str,
        length: int,
        scope: str,
        kind: str,
        sensitivity: str,
        reason: str,
        timestamp: datetime,
    ) -> None:
        self.text_version += 1
        self.digests.append(digest)
        self.scope = scope
        self.kind = kind
        self.sensitivity = sensitivity

    @event(EntryErased)
    def _erased(self, entry_id: UUID, reason: str, timestamp: datetime) -> None:
        self.erased = True
