"""Use case: correct an entry."""

from collections.abc import Mapping, Sequence

from remembrancer.application.entry_index import EntryIndex
from remembrancer.application.load import append, load
from remembrancer.application.ports import (
    Clock,
    EntryVault,
    EventLog,
    Original,
    Randomness,
    Transactions,
)
from remembrancer.application.remember import EntryWriter
from remembrancer.application.whose import acting_for_named, require_whose
from remembrancer.domain.entry import MemoryEntry, NewEntry, Reason
from remembrancer.domain.errors import EntryErasedError, UnknownEntryError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import SALT_BYTES, original_digest
from remembrancer.domain.sensitivity import Sensitivity


class Correct:
    """A new version in the place of the current one, in one transaction."""

    def __init__(  # one port each
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        index: EntryIndex,
        writer: EntryWriter,
        transactions: Transactions,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._log = log
        self._vault = vault
        self._index = index
        self._writer = writer
        self._transactions = transactions
        self._clock = clock
        self._randomness = randomness

    def __call__(  # noqa: PLR0913  # what may change, each by name
        self,
        entry_id: EntryId,
        *,
        reason: str,
        tenant: str | None = None,
        owner: str | None = None,
        text: str | None = None,
        scope: str | None = None,
        kind: str | None = None,
        sensitivity: Sensitivity | None = None,
        subjects: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Change what is given, keep the rest; return the version that is current now.

        Where nothing differs nothing is recorded, so a retry is safe.  A reason in words is
        kept in the vault with the version; the log gets it only where it is a code.
        ``tenant`` and ``owner`` say whose the entry must be; nothing can move it to another.

        Raises:
            UnknownEntryError: there is no such entry, or it is another's.
            EntryErasedError: it was erased.
            InvalidInputError: a new value, or the reason, breaks its bounds.
        """
        Reason(reason=reason)
        given = {
            "text": text,
            "scope": scope,
            "kind": kind,
            "sensitivity": sensitivity,
            "subjects": subjects,
            "metadata": metadata,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        with acting_for_named(self._transactions, tenant, owner):
            require_whose(entry_id, vault=self._vault, log=self._log, tenant=tenant, owner=owner)
            while True:
                before = current_or_refuse(self._vault, entry_id)
                wanted = _changed(before, changes)
                if _as_new_entry(before) == wanted:
                    return before.version
                version = self._replace(before, wanted, reason)
                if version is not None:
                    return version

    def _replace(self, before: Original, wanted: NewEntry, reason: str) -> int | None:
        """Put ``wanted`` after ``before``; None if another correction came in between.

        None, too, if another vector index took over: its vectors are of another space.
        """
        space = self._writer.space()
        [tokens], [vector] = self._writer.measure([wanted], space)
        with (
            self._transactions.acting_for(before.tenant, before.owner),
            self._transactions.begin(),
        ):
            old = current_or_refuse(self._vault, before.entry_id)
            if old.version != before.version:
                # What was measured may not be what would be kept: begin again from there.
                return None
            index = self._writer.index(space)
            if index is not None and index.embedding_tuple != space:
                return None
            new = self._next_version(old, wanted, tokens, reason)
            self._record(new, reason)
            self._vault.keep([new])
            superseded = old._replace(superseded_at=new.recorded_at)
            self._index.supersede(superseded, new, vector, index)
            return new.version

    def _next_version(self, old: Original, wanted: NewEntry, tokens: int, reason: str) -> Original:
        salt = self._randomness.bytes(SALT_BYTES)
        return old._replace(
            version=old.version + 1,
            scope=wanted.scope,
            kind=wanted.kind,
            sensitivity=wanted.sensitivity,
            text=wanted.text,
            salt=salt,
            digest=original_digest(salt, wanted.text),
            tokens=tokens,
            token_counter=self._writer.token_counter,
            subjects=wanted.subjects,
            metadata=wanted.metadata,
            reason=reason,
            # Never before the version it follows, also when the clock steps back.
            recorded_at=max(self._clock.now(), old.recorded_at),
        )

    def _record(self, new: Original, reason: str) -> None:
        stream = MemoryEntry.create_id(new.tenant, new.entry_id)
        entry = load(self._log, MemoryEntry, stream)
        if entry is None:
            raise UnknownEntryError(new.entry_id)
        entry.correct(
            new.header,
            digest=new.digest,
            length=len(new.text.encode()),
            reason=reason,
            at=new.recorded_at,
        )
        append(self._log, entry)


def current_or_refuse(vault: EntryVault, entry_id: EntryId) -> Original:
    """Return an entry's current version.

    Raises:
        UnknownEntryError: there is no such entry.
        EntryErasedError: it was erased.
    """
    current = vault.current([entry_id]).get(entry_id)
    if current is not None:
        return current
    if vault.tenant_of_erased(entry_id) is not None:
        raise EntryErasedError(entry_id)
    raise UnknownEntryError(entry_id)


def _as_new_entry(original: Original) -> NewEntry:
    return NewEntry(
        tenant=original.tenant,
        owner=original.owner,
        scope=original.scope,
        text=original.text,
        kind=original.kind,
        sensitivity=original.sensitivity,
        subjects=original.subjects,
        metadata=dict(original.metadata),
    )


def _changed(original: Original, changes: Mapping[str, object]) -> NewEntry:
    # Made anew rather than copied, so that every changed value passes the same bounds.
    return NewEntry.parse({**dict(_as_new_entry(original)), **changes})
