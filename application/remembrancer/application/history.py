"""Use case: the history of one entry, from log and vault alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from remembrancer.application.entry_life import EntryLife, VersionFacts, entry_life
from remembrancer.application.ports import (
    AccessPolicy,
    EntryVault,
    EventLog,
    Original,
    Transactions,
)
from remembrancer.application.ports.access_policy import Access
from remembrancer.application.replay import Reader
from remembrancer.domain.errors import UnknownEntryError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.original_digest import original_digest
from remembrancer.domain.parsed import parsed_name


class TextState(StrEnum):
    """Whether a version's text is what the log says."""

    KEPT = "kept"
    ERASED = "erased"
    MISSING = "missing"
    """It isn't in the vault, and no erasure says why."""
    ALTERED = "altered"
    """It isn't the text whose digest the log has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOfEntry:
    """One version, and what became of its text."""

    facts: VersionFacts
    text_state: TextState
    permitted: bool
    """Whether the reader may see the text; False where none was named."""
    text: str | None = field(repr=False)
    """Only where it is kept and permitted."""
    stated_reason: str = field(repr=False)
    """Why the version was written, in words; ``""`` where the text can't be shown either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHistory:
    """All that happened to an entry."""

    tenant: str
    owner: str
    entry_id: EntryId
    versions: tuple[VersionOfEntry, ...]
    """Oldest first."""
    erased_at: datetime | None
    erased_reason: str


class ReadHistory:
    """Reads, and reads only."""

    def __init__(
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        policy: AccessPolicy,
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._vault = vault
        self._policy = policy
        self._transactions = transactions

    def __call__(
        self,
        entry_id: EntryId,
        *,
        tenant: str,
        owner: str | None = None,
        reader: Reader | None = None,
    ) -> EntryHistory:
        """Return the history of an entry, with its texts as far as ``reader`` may see them.

        A text is shown where the labels of its own version and those of the last permit it.

        Raises:
            UnknownEntryError: there never was such an entry, or it is another's.
            InvalidInputError: a name breaks its bounds.
            RecordError: the entry's stream can't be read.
        """
        tenant = parsed_name(tenant, field="tenant")
        owner = None if owner is None else parsed_name(owner, field="owner")
        with self._transactions.acting_for(tenant, owner), self._transactions.snapshot():
            life = entry_life(self._log, tenant, entry_id)
            if life is None or owner not in {None, life.owner}:
                raise UnknownEntryError(entry_id)
            kept = {one.version: one for one in self._vault.history(entry_id)}
        return EntryHistory(
            tenant=life.tenant,
            owner=life.owner,
            entry_id=entry_id,
            versions=tuple(
                self._version(life, facts, kept.get(facts.version), reader)
                for facts in life.versions
            ),
            erased_at=life.erased_at,
            erased_reason=life.erased_reason,
        )

    def _version(
        self,
        life: EntryLife,
        facts: VersionFacts,
        original: Original | None,
        reader: Reader | None,
    ) -> VersionOfEntry:
        state = text_state(life, facts, original)
        permitted = reader is not None and self._permits(reader, life, (facts, life.head))
        shown = original if permitted and state is TextState.KEPT else None
        return VersionOfEntry(
            facts=facts,
            text_state=state,
            permitted=permitted,
            text=None if shown is None else shown.text,
            stated_reason="" if shown is None else shown.reason,
        )

    def _permits(self, reader: Reader, life: EntryLife, versions: Sequence[VersionFacts]) -> bool:
        access = Access(
            tenant=reader.tenant,
            owner=life.owner,
            principal=reader.principal,
            scopes=reader.scopes,
            read_ceiling=reader.read_ceiling,
        )
        return reader.tenant == life.tenant and all(
            self._policy.permits(access, life.header(one)) for one in versions
        )


def text_state(life: EntryLife, facts: VersionFacts, original: Original | None) -> TextState:
    """Return what became of a version's text; ``original`` is what the vault has of it."""
    if original is None:
        return TextState.MISSING if life.erased_at is None else TextState.ERASED
    same = original.digest == original_digest(original.salt, original.text) == facts.digest
    return TextState.KEPT if same else TextState.ALTERED
