"""Use case: why a stage got what it got, and what has changed since.

Everything is told as it was recorded: ranks and scores are read from the event, never computed
again.  No index is asked, no text is read but to see that it is still the one that was committed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from remembrancer.application.entry_life import EntryLife, VersionFacts, entry_life
from remembrancer.application.history import TextState, text_state
from remembrancer.application.load import load
from remembrancer.application.ports import (
    AccessPolicy,
    EntryVault,
    EventLog,
    SessionVault,
    Transactions,
)
from remembrancer.application.ports.access_policy import Access
from remembrancer.domain.errors import MalformedRecordError, UnknownSelectionError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import (
    AssembledPack,
    L3Selection,
    SelectedEntry,
    Selection,
    StageKey,
)
from remembrancer.domain.recall import LeftOut, LeftOutReason, RecallKind
from remembrancer.domain.sensitivity import Sensitivity


class ChangeKind(StrEnum):
    """What may have happened to an entry since it was selected."""

    CORRECTED = "corrected"
    RELABELLED = "relabelled"
    """Its scope, kind or sensitivity is another now."""
    ERASED = "erased"
    OUT_OF_REACH = "out of reach"
    """Who asked then couldn't read it now."""
    MISSING = "missing"
    """The log doesn't have it, or the vault not its text, and no erasure says why."""
    ALTERED = "altered"
    """The text isn't the one that was committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is otherwise now."""

    kind: ChangeKind
    at: datetime | None
    """When that was recorded; None where nothing was."""
    detail: str
    """In words; holds labels, reason codes and version numbers, never a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedExplained:
    """An entry that was selected."""

    selected: SelectedEntry
    facts: VersionFacts | None
    """The committed version, as the entry's own stream has it."""
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutExplained:
    """A candidate that wasn't selected."""

    entry_id: EntryId
    reason: LeftOutReason
    facts: VersionFacts | None
    """The version that was current then."""
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackExplained:
    """A pack that was assembled from the selection."""

    pack: AssembledPack
    at: datetime
    host_items: tuple[str, ...]
    """Of what is included: the host's own items."""
    entries: tuple[str, ...]
    """Of what is included: selected entries."""
    items_kept: bool
    """Whether the host's items are still there; False once the session was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What was known when a stage was selected, and what is left of it."""

    selection: Selection
    selected_at: datetime
    candidates: int
    """Selected and left out, also those that are only counted."""
    query_vector: str
    """``none``, ``sealed``, or ``erased``."""
    entries: tuple[SelectedExplained, ...]
    """In rank order."""
    left_out: tuple[LeftOutExplained, ...]
    """The best of them, in order; ``selection.left_out_count`` counts all."""
    packs: tuple[PackExplained, ...]


class Explain:
    """Reads, and reads only; what it costs depends on the stage, not on the log's size."""

    def __init__(
        self,
        *,
        log: EventLog,
        vault: EntryVault,
        sessions: SessionVault,
        policy: AccessPolicy,
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._vault = vault
        self._sessions = sessions
        self._policy = policy
        self._transactions = transactions

    def __call__(self, session: str, stage: str, *, tenant: str) -> Explanation:
        """Explain the selection of a stage and the packs made from it.

        Whether an entry is out of reach is judged for who asked then, within the scopes and the
        ceiling that were recorded with the question.

        Raises:
            UnknownSelectionError: nothing was selected for the stage in this tenant.
            InvalidInputError: a name breaks its bounds.
            RecordError: a stream that belongs to it can't be read.
        """
        key = StageKey(tenant=tenant, session=session, stage=stage)
        stream = L3Selection.create_id(key.tenant, key.session, key.stage)
        with self._transactions.acting_for(key.tenant), self._transactions.snapshot():
            committed = load(self._log, L3Selection, stream)
            if committed is None:
                raise UnknownSelectionError(session=session, stage=stage)
            times = [event.timestamp for event in self._log.read(stream)]
            selection = committed.selection
            return Explanation(
                selection=selection,
                selected_at=times[0],
                candidates=len(selection.entries) + selection.left_out_count,
                query_vector=self._query_vector(committed),
                entries=self._entries(selection, times[0]),
                left_out=tuple(
                    self._left_out(one, selection, times[0]) for one in selection.left_out
                ),
                packs=tuple(self._packs(committed, times[1:])),
            )

    def _entries(self, selection: Selection, at: datetime) -> tuple[SelectedExplained, ...]:
        kept = self._vault.versions([(one.entry_id, one.version) for one in selection.entries])
        found = []
        for one in selection.entries:
            life = entry_life(self._log, selection.tenant, one.entry_id)
            facts = None if life is None else _version(life, one.version)
            changes: list[Change] = []
            if life is None or facts is None:
                changes.append(_gone("the log doesn't have this version"))
            else:
                since = _corrections(life, selection, at, behind=one.version)
                changes += self._changes(life, facts, since, selection)
                state = text_state(life, facts, kept.get((one.entry_id, one.version)))
                if state is TextState.MISSING:
                    changes.append(_gone("the vault doesn't have its text"))
                elif state is TextState.ALTERED or facts.digest != one.digest:
                    detail = "the text isn't the one that was committed"
                    changes.append(Change(kind=ChangeKind.ALTERED, at=None, detail=detail))
            found.append(SelectedExplained(selected=one, facts=facts, changes=tuple(changes)))
        return tuple(found)

    def _left_out(self, one: LeftOut, selection: Selection, at: datetime) -> LeftOutExplained:
        life = entry_life(self._log, selection.tenant, one.entry_id)
        facts = None
        changes: list[Change] = []
        if life is None:
            changes.append(_gone("the log doesn't have it"))
        else:
            facts = next((it for it in reversed(life.versions) if it.at <= at), life.versions[0])
            since = [it for it in life.versions if it.version > facts.version]
            changes += self._changes(life, facts, since, selection)
        return LeftOutExplained(
            entry_id=one.entry_id, reason=one.reason, facts=facts, changes=tuple(changes)
        )

    def _changes(
        self,
        life: EntryLife,
        then: VersionFacts,
        since: Sequence[VersionFacts],
        selection: Selection,
    ) -> Iterable[Change]:
        """Iterate over what the entry's own stream says has changed since ``then``."""
        for one in since:
            detail = f"version {one.version} ({one.reason})"
            yield Change(kind=ChangeKind.CORRECTED, at=one.at, detail=detail)
        labels = _relabelled(then, life.head) if since else ""
        if labels:
            yield Change(kind=ChangeKind.RELABELLED, at=life.head.at, detail=labels)
        if life.erased_at is not None:
            detail = f"reason {life.erased_reason}"
            yield Change(kind=ChangeKind.ERASED, at=life.erased_at, detail=detail)
        elif self._was_in_reach(life, then, selection):
            detail = f"{selection.principal} could not read it now"
            yield Change(kind=ChangeKind.OUT_OF_REACH, at=life.head.at, detail=detail)

    def _was_in_reach(self, life: EntryLife, then: VersionFacts, selection: Selection) -> bool:
        """Say whether who asked could read ``then``, and can't read what is current now."""
        access = _access(selection)
        return (
            access is not None
            and self._policy.permits(access, life.header(then))
            and not self._policy.permits(access, life.header(life.head))
        )

    def _query_vector(self, committed: L3Selection) -> str:
        if committed.selection.sealed_query_vector is None:
            return "none"
        return "erased" if self._sessions.key(committed.id) is None else "sealed"

    def _packs(self, committed: L3Selection, times: Sequence[datetime]) -> Iterable[PackExplained]:
        selected = {str(one.entry_id) for one in committed.selection.entries}
        for pack, at in zip(committed.packs, times, strict=True):
            kept = self._sessions.items(committed.id, number=pack.number)
            yield PackExplained(
                pack=pack,
                at=at,
                host_items=tuple(one for one in pack.included if one not in selected),
                entries=tuple(one for one in pack.included if one in selected),
                items_kept=kept is not None,
            )


def _version(life: EntryLife, version: int) -> VersionFacts | None:
    return next((one for one in life.versions if one.version == version), None)


def _corrections(
    life: EntryLife, selection: Selection, at: datetime, *, behind: int
) -> list[VersionFacts]:
    """Return the versions that came after the selection.

    Only historical recall selects what has a later version already.
    """
    later = [one for one in life.versions if one.version > behind]
    if selection.kind is RecallKind.HISTORICAL:
        return [one for one in later if one.at > at]
    return later


def _relabelled(then: VersionFacts, now: VersionFacts) -> str:
    pairs = (
        ("scope", then.scope, now.scope),
        ("kind", then.kind, now.kind),
        ("sensitivity", then.sensitivity.value, now.sensitivity.value),
    )
    return ", ".join(f"{name} {was} is {now} now" for name, was, now in pairs if was != now)


def _access(selection: Selection) -> Access | None:
    """Return how far the question reached, as recorded with it."""
    scopes = selection.filter.get("scopes")
    levels = selection.filter.get("sensitivity")
    if not scopes or not levels:
        return None
    try:
        ceiling = max(Sensitivity(one) for one in levels)
    except ValueError as error:
        raise MalformedRecordError(
            stream_id=L3Selection.create_id(selection.tenant, selection.session, selection.stage),
            version=1,
            problem="no decision recorded this",
        ) from error
    return Access(
        tenant=selection.tenant,
        owner=selection.owner,
        principal=selection.principal,
        scopes=scopes,
        read_ceiling=ceiling,
    )


def _gone(detail: str) -> Change:
    return Change(kind=ChangeKind.MISSING, at=None, detail=detail)
