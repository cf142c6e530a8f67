"""Use cases: erase an entry, a session's content, or all of an owner's."""

from dataclasses import dataclass
from typing import Protocol

from remembrancer.application.entry_index import EntryIndex
from remembrancer.application.load import append, load
from remembrancer.application.ports import (
    Clock,
    EntryVault,
    EventLog,
    Original,
    SessionVault,
    Transactions,
)
from remembrancer.application.remember import Progress
from remembrancer.application.whose import acting_for_named, require_whose
from remembrancer.domain.entry import MemoryEntry, Reason
from remembrancer.domain.errors import StoreFullError, StoreUnavailableError, UnknownEntryError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.parsed import parsed_name

AT_ONCE = 100
"""Entries of an owner in one transaction: a commit for each would cost more than erasing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What an erasure has come to."""

    erased: int
    """Entries (or, for a session, selections) whose content was destroyed by this call."""
    pending: bool
    """True while old pages still lie in the store's files because a reader holds a snapshot
    or the disk is full, or a vector in an index that is kept elsewhere, which didn't answer;
    :meth:`Erase.finish` completes it."""


class CarriesErasures(Protocol):
    """Takes erasures to the indexes that are kept elsewhere."""

    def erasures(self) -> bool:
        """Take over what is noted; say whether nothing is left to be taken."""
        ...


class Erase:
    """Destroys text, salt, sparse row and vectors, and leaves the log as it is."""

    def __init__(  # one port each
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        sessions: SessionVault,
        index: EntryIndex,
        transactions: Transactions,
        clock: Clock,
        elsewhere: CarriesErasures,
    ) -> None:
        self._log = log
        self._vault = vault
        self._sessions = sessions
        self._index = index
        self._transactions = transactions
        self._clock = clock
        self._elsewhere = elsewhere

    def __call__(
        self,
        entry_id: EntryId,
        *,
        reason: str,
        tenant: str | None = None,
        owner: str | None = None,
    ) -> Erasure:
        """Erase an entry, all versions; erasing it again changes nothing.

        The log keeps ``reason`` only where it is a code; words aren't kept at all.  ``tenant``
        and ``owner`` say whose the entry must be.

        Raises:
            UnknownEntryError: there never was such an entry, or it is another's.
            InvalidInputError: the reason breaks its bounds.
        """
        Reason(reason=reason)
        with acting_for_named(self._transactions, tenant, owner):
            require_whose(entry_id, vault=self._vault, log=self._log, tenant=tenant, owner=owner)
            erased = self._erase(entry_id, reason)
        return Erasure(erased=int(erased), pending=not self._finished())

    def owner(
        self, *, tenant: str, owner: str, reason: str, progress: Progress | None = None
    ) -> Erasure:
        """Erase all entries and all sessions' content of an owner.

        Raises:
            InvalidInputError: a name or the reason breaks its bounds.
        """
        Reason(reason=reason)
        # As they were when they came in, or nothing would be found and nothing erased.
        tenant = parsed_name(tenant, field="tenant")
        owner = parsed_name(owner, field="owner")
        with self._transactions.acting_for(tenant, owner):
            entry_ids = self._vault.entries_of(tenant=tenant, owner=owner)
            erased = 0
            for start in range(0, len(entry_ids), AT_ONCE):
                some = entry_ids[start : start + AT_ONCE]
                with self._transactions.begin():
                    erased += sum(self._erase(one, reason) for one in some)
                if progress is not None:  # Of what is committed.
                    for done in range(start + 1, start + len(some) + 1):
                        progress(done, len(entry_ids))
            with self._transactions.begin():
                self._sessions.erase_owner(tenant=tenant, owner=owner)
        return Erasure(erased=erased, pending=not self._finished())

    def session(self, *, tenant: str, session: str) -> Erasure:
        """Destroy the keys of a session's sealed vectors and the host's items of its packs.

        Raises:
            InvalidInputError: a name breaks its bounds.
        """
        tenant = parsed_name(tenant, field="tenant")
        session = parsed_name(session, field="session")
        with self._transactions.acting_for(tenant), self._transactions.begin():
            erased = self._sessions.erase_session(tenant=tenant, session=session)
        return Erasure(erased=erased, pending=not self._finished())

    def finish(self) -> bool:
        """Clear what is left of erased entries; say whether nothing is.

        That is what lies in the store's files, and vectors in indexes kept elsewhere.
        """
        gone_elsewhere = self._elsewhere.erasures()
        return self._transactions.scrub() and gone_elsewhere

    def _finished(self) -> bool:
        try:
            return self.finish()
        except (StoreFullError, StoreUnavailableError):
            return False  # The erasure itself is committed, and must not be reported as failed.

    def _erase(self, entry_id: EntryId, reason: str) -> bool:
        known = self._kept(entry_id)
        if known is None:
            return False
        with (
            self._transactions.acting_for(known.tenant, known.owner),
            self._transactions.begin(),
        ):
            current = self._kept(entry_id)  # Nobody else writes for the owner from here on.
            if current is None:
                return False
            entry = load(self._log, MemoryEntry, MemoryEntry.create_id(current.tenant, entry_id))
            if entry is None:
                raise UnknownEntryError(entry_id)
            entry.erase(reason=reason, at=max(self._clock.now(), current.recorded_at))
            append(self._log, entry)
            self._index.drop(current, self._vault.erase(entry_id))
        return True

    def _kept(self, entry_id: EntryId) -> Original | None:
        """Return the current version; None if the entry was erased."""
        current = self._vault.current([entry_id]).get(entry_id)
        if current is None and self._vault.tenant_of_erased(entry_id) is None:
            raise UnknownEntryError(entry_id)
        return current
