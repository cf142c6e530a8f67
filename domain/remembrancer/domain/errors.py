"""Errors a caller of remembrancer may see.

::

    RemembrancerError
    ├── RefusedError                  a rule said no; nothing was recorded
    │   ├── InvalidInputError         a value from outside breaks its bounds
    │   ├── ImpossibleVectorError     zero, not finite, or of the wrong dimension
    │   ├── UnknownEntryError
    │   ├── EntryErasedError
    │   ├── IdempotencyConflictError  the key names an entry with other content
    │   ├── UnknownSelectionError     nothing was selected for session and stage
    │   ├── UnknownPackError          selected, but no pack was assembled
    │   ├── BudgetTooSmallError       required items don't fit the token budget
    │   ├── SealBrokenError           sealed bytes can't be opened with this key and identity
    │   ├── UnreadableDocumentError   a file or folder to import can't be read as text
    │   ├── NotAdmittedError          a configuration isn't admitted
    │   ├── MigrationRefusedError     the schema can't be changed as the data is
    │   ├── UnreadableExportError     no export, or one of a newer release, see
    │   ├── StoreNotEmptyError        remembrancer.domain.export_errors
    │   ├── StaleGenerationError      the cache context changed meanwhile, see
    │   ├── NoSuchReservationError    remembrancer.domain.spend_errors
    │   └── SpendRefusedError
    │       ├── OverMoneyCeilingError
    │       ├── OverRequestCeilingError
    │       ├── QueryPendingError
    │       ├── ReservationReusedError
    │       ├── ReservationNotPendingError
    │       ├── ReservationUnknownError
    │       ├── ChargeNotLoweredError
    │       └── ReservationNotUnknownError
    ├── RecordError                   a stored event can't be read as one of ours
    │   ├── UnknownTopicError
    │   ├── DamagedExportError        an export isn't (any more) what was written
    │   └── MalformedRecordError
    ├── SettingsError                 settings are missing, wrong or unknown
    ├── ReindexStoppedError           vectors couldn't be bought; it can go on later
    ├── IndexUnfitError               what was built isn't what it should be
    └── StoreError                    a port could not do its work
        ├── StaleStreamError
        ├── StoreUnavailableError
        │   ├── OutcomeUnknownError   the commit was not confirmed; it may stand
        │   ├── StoreForbiddenError   the system's permissions are against it
        │   ├── IndexElsewhereError   its vectors are kept where nothing is set up
        │   └── StoreMovedError       the file isn't where it was opened any more
        ├── StoreFullError
        ├── StoreReadOnlyError
        ├── StoreCorruptError
        ├── StoreNewerError
        └── StoreClosedError

Every error carries typed fields and words its own message, so callers never parse text.  No
message holds an original, a question, a subject or a vector (design section 10).  Names end in
``Error``: bare past participles are events.
"""

from enum import StrEnum
from typing import Any, ClassVar, Self
from uuid import UUID

_ITEMS_NAMED_MAX = 20


class Retry(StrEnum):
    """What must happen before the same call can work."""

    NEVER = "never"
    RELOAD = "reload"
    LATER = "later"


class RemembrancerError(Exception):
    """Base of all remembrancer errors; catch this at the host's boundary."""

    retry: ClassVar[Retry] = Retry.NEVER

    def __reduce__(self) -> tuple[Any, ...]:
        # Plain exceptions unpickle by calling __init__ with their message,
        # which keyword fields do not survive; hosts do cross processes.
        return self._revived, (str(self), dict(vars(self)))

    @classmethod
    def _revived(cls, message: str, fields: dict[str, Any]) -> Self:
        error = cls.__new__(cls, message)
        vars(error).update(fields)
        return error


class RefusedError(RemembrancerError):
    """A rule said no.  No event was recorded."""


class InvalidInputError(RefusedError):
    """A value from outside breaks its bounds; ``field`` says which, never with what."""

    def __init__(self, *, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class ImpossibleVectorError(RefusedError):
    """A vector that has no direction can't be stored, compared or asked with."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"impossible vector: {problem}")
        self.problem = problem


class UnknownEntryError(RefusedError):
    """No such entry was ever remembered here."""

    def __init__(self, entry_id: UUID) -> None:
        super().__init__(f"entry {entry_id} is unknown here; check the id and the tenant")
        self.entry_id = entry_id


class EntryErasedError(RefusedError):
    """The entry was erased; an erased entry takes no further events."""

    def __init__(self, entry_id: UUID) -> None:
        super().__init__(f"entry {entry_id} was erased; remember it anew under a new id")
        self.entry_id = entry_id


class IdempotencyConflictError(RefusedError):
    """An idempotency key was used again, for an entry with other content."""

    def __init__(self, entry_id: UUID) -> None:
        super().__init__(
            f"the idempotency key already names entry {entry_id} with other content; "
            "use correct() to change it, or another key"
        )
        self.entry_id = entry_id


class UnknownSelectionError(RefusedError):
    """Nothing was selected for this session and stage."""

    def __init__(self, *, session: str, stage: str) -> None:
        super().__init__(f"nothing was selected for session {session!r}, stage {stage!r}")
        self.session = session
        self.stage = stage


class UnknownPackError(RefusedError):
    """A selection was committed, but no (such) pack was assembled from it."""

    def __init__(self, *, session: str, stage: str, number: int, packs: int) -> None:
        place = f"session {session!r}, stage {stage!r}"
        if packs:
            there = "1" if packs == 1 else f"1 to {packs}"
            message = f"there is no pack {number} of {place}; there is {there}"
        else:
            message = f"no pack was assembled for {place}; build one first"
        super().__init__(message)
        self.session = session
        self.stage = stage
        self.number = number
        """The one that was asked for."""
        self.packs = packs
        """How many there are; their numbers begin with 1."""


class BudgetTooSmallError(RefusedError):
    """Required items don't fit the token budget; nothing was cut."""

    def __init__(
        self, *, item_ids: tuple[str, ...], needed_tokens: int, budget_tokens: int
    ) -> None:
        named = ", ".join(item_ids[:_ITEMS_NAMED_MAX]) or "(none)"
        if len(item_ids) > _ITEMS_NAMED_MAX:
            named += f" and {len(item_ids) - _ITEMS_NAMED_MAX} more"
        super().__init__(
            f"required items {named} need {needed_tokens} tokens with "
            f"their marks, the budget is {budget_tokens}; raise it or require less"
        )
        self.item_ids = item_ids
        self.needed_tokens = needed_tokens
        self.budget_tokens = budget_tokens


class SealBrokenError(RefusedError):
    """Sealed bytes belong to another key or record, or were altered."""

    def __init__(self) -> None:
        super().__init__("sealed bytes can't be opened: another key or record, or altered")


class UnreadableDocumentError(RefusedError):
    """A file or folder to import can't be read as text; nothing of what it names was taken."""

    def __init__(self, *, path: str, fault: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.root: str | None = None
        """The folder that ``path`` is relative to, where an import knows it."""
        self.fault = fault
        """A word for machines, see ``remembrancer.application.ports.document_reader``."""
        self.problem = problem


class NotAdmittedError(RefusedError):
    """The configuration may not send anything: gates are pending (design 4.5)."""

    def __init__(self, missing_gates: tuple[str, ...]) -> None:
        super().__init__(
            "nothing may leave: no configuration is admitted; missing gates: "
            + (", ".join(missing_gates) or "all")
        )
        self.missing_gates = missing_gates


class MigrationRefusedError(RefusedError):
    """A migration can't be made with the data or the rights there are; nothing was changed."""

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"the schema stays as it is: {problem}")
        self.problem = problem


class RecordError(RemembrancerError):
    """A stored event can't be read as one of ours."""


class UnknownTopicError(RecordError):
    """The record's topic isn't on the allow-list; nothing was imported for it."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"topic {topic[:200]!r} is unknown to this release; read it with a newer release, "
            "or audit the store"
        )
        self.topic = topic


class MalformedRecordError(RecordError):
    """The record's bytes aren't the canonical JSON of an event."""

    def __init__(self, *, stream_id: UUID, version: int, problem: str) -> None:
        super().__init__(f"stream {stream_id}, version {version}: {problem}")
        self.stream_id = stream_id
        self.version = version
        self.problem = problem


class SettingsError(RemembrancerError):
    """Settings are missing, wrong or unknown."""

    def __init__(self, *, setting: str, problem: str) -> None:
        super().__init__(f"setting {setting}: {problem}")
        self.setting = setting
        self.problem = problem


class ReindexStoppedError(RemembrancerError):
    """Vectors couldn't be bought any more; what was bought is kept, and no index was switched."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, *, reason: str, position: int, end: int) -> None:
        super().__init__(
            f"reindexing stopped at position {position} of {end}: {reason}; the same index "
            "answers as before; reindex again to go on from here, or allow gaps"
        )
        self.reason = reason
        """A code such as ``over_money_ceiling`` or ``timeout``."""
        self.position = position
        self.end = end


class IndexUnfitError(RemembrancerError):
    """An index was built and looked at, and isn't what it should be; no index was switched."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, *, number: int, problem: str) -> None:
        super().__init__(
            f"vector index {number} isn't fit to answer: {problem}; the same index answers as "
            "before; reindex again to build it anew"
        )
        self.number = number
        self.problem = problem


class StoreError(RemembrancerError):
    """A port could not do its work; what stands afterwards is stated by the port's method."""


class StaleStreamError(StoreError):
    """Another writer appended to the stream since it was loaded."""

    retry: ClassVar[Retry] = Retry.RELOAD

    def __init__(self, stream_id: UUID) -> None:
        super().__init__(f"stream {stream_id} has grown since it was loaded")
        self.stream_id = stream_id


class StoreUnavailableError(StoreError):
    """The store did not answer in time (locked, away); nothing was changed."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, *, store: str, problem: str) -> None:
        super().__init__(f"{store} is unavailable: {problem}; try again later")
        self.store = store
        self.problem = problem


class OutcomeUnknownError(StoreUnavailableError):
    """The commit was sent and not confirmed: everything in it stands, or nothing does."""

    retry: ClassVar[Retry] = Retry.RELOAD

    def __init__(self, *, store: str) -> None:
        super().__init__(
            store=store,
            problem="it didn't confirm the commit, which may stand; look for its id first",
        )


class StoreForbiddenError(StoreUnavailableError):
    """The system's permissions are against it: waiting doesn't help."""

    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, *, store: str, problem: str, see_to: str = "the permissions") -> None:
        super().__init__(store=store, problem=problem)
        self.args = (f"{store} {problem}; see to {see_to}",)
        self.see_to = see_to


class IndexElsewhereError(StoreUnavailableError):
    """An index is kept in a place that isn't set up here: waiting doesn't help."""

    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, *, number: int, place: str) -> None:
        problem, what_to_do = f"is kept by {place}, which isn't set up here", "set it up as it was"
        super().__init__(store=f"vector index {number}", problem=problem)
        self.args = (f'{self.store} {problem}; {what_to_do} (vector_store.backend = "{place}")',)
        self.number, self.place = number, place


class StoreMovedError(StoreUnavailableError):
    """The file was moved, deleted or replaced while it was open: what is written would be lost."""

    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, *, store: str) -> None:
        super().__init__(store=store, problem="was moved, deleted or replaced while it was open")
        what_to_do = "close it, and see what lies there before you open it again"
        self.args = (f"{store} {self.problem}, or its log was; {what_to_do}",)


class StoreFullError(StoreError):
    """There is no room left; the transaction was rolled back."""

    retry: ClassVar[Retry] = Retry.LATER

    def __init__(self, *, store: str) -> None:
        super().__init__(f"{store} has no room left; free some space and do it again")
        self.store = store


class StoreReadOnlyError(StoreError):
    """The store can be read, not written."""

    def __init__(self, *, store: str) -> None:
        super().__init__(f"{store} is read-only; open it where it may be written")
        self.store = store


class StoreCorruptError(StoreError):
    """What lies there isn't (any more) a store of ours."""

    def __init__(self, *, store: str, problem: str) -> None:
        super().__init__(f"{store}: {problem}; restore it from a backup, or choose another path")
        self.store = store
        self.problem = problem


class StoreNewerError(StoreError):
    """The store was written by a newer release; this one won't touch it."""

    def __init__(self, *, store: str, found: int, known: int) -> None:
        super().__init__(
            f"{store} has schema {found}, this release knows up to {known}; upgrade remembrancer"
        )
        self.store = store
        self.found = found
        self.known = known


class StoreClosedError(StoreError):
    """The memory was closed."""

    def __init__(self) -> None:
        super().__init__("this memory is closed; open it again")
