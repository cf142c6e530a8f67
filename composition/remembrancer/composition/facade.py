"""The facade: what a host holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import UUID

from typing_extensions import override

from remembrancer.application.erase import Erasure
from remembrancer.application.import_documents import KIND, ImportReport, ImportRequest
from remembrancer.application.ports import Embedder
from remembrancer.application.reindex import Reindexed
from remembrancer.application.remember import Progress
from remembrancer.application.status import Status
from remembrancer.composition.arguments import entry_id_of, instance, instances
from remembrancer.composition.auditing import Auditing
from remembrancer.composition.carrying import Carrying
from remembrancer.composition.looking_back import LookingBack
from remembrancer.composition.twin import async_twin
from remembrancer.domain.context_pack import ContextItem, ContextPack
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import NewEntry
from remembrancer.domain.errors import InvalidInputError, StoreClosedError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import Selection
from remembrancer.domain.recall import RecallContext, Recalled, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

if TYPE_CHECKING:
    from remembrancer.composition.container import Container


class Remembrancer(LookingBack, Carrying, Auditing):
    """A memory: entries in, recall and packs out, every choice replayable.

    Safe to share between threads; a context manager, also with ``async with``.  Methods block;
    each that waits has an async twin (``aremember`` ...), which runs in a worker thread.
    Everything raised derives from :class:`~remembrancer.domain.errors.RemembrancerError`.
    """

    def __init__(self, container: "Container", *, close: Callable[[], None]) -> None:
        """Wrap wired parts; hosts call :func:`embedded` or :func:`production` instead."""
        self._container = container
        self._close = close
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the store; closing again does nothing."""
        if not self._closed:
            self._closed = True
            self._close()

    # -- Entries in, and their life ----------------------------------------

    def remember(self, entry: NewEntry) -> EntryId:
        """Remember one entry, durably; return its id.

        Raises:
            IdempotencyConflictError: its key names an entry with other content.
            StoreError: nothing was kept.
        """
        [entry_id] = self._parts().remember()([instance(entry, NewEntry, field="entry")])
        self._left()
        return entry_id

    def remember_many(
        self,
        entries: Iterable[NewEntry],
        *,
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> list[EntryId]:
        """Remember entries; return their ids in order.

        All or nothing per batch; without ``batch_size`` all of them are one batch.  ``progress``
        is called with (done, total).
        """
        remember, given = self._parts().remember(), instances(entries, NewEntry, field="entries")
        size = max(len(given), 1) if batch_size is None else batch_size
        if type(size) is not int or size < 1:
            raise InvalidInputError(
                field="batch_size", problem="must be a whole number, 1 or more"
            )
        ids: list[EntryId] = []
        for start in range(0, len(given), size):
            batch = given[start : start + size]
            ids += remember(batch, progress=_shifted(progress, start, len(given)))
            self._left()
        return ids

    def import_documents(
        self,
        roots: Sequence[str | Path],
        *,
        tenant: str,
        owner: str,
        scope: str,
        sensitivity: Sensitivity,
        kind: str = KIND,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import Markdown and text files, or folders of them, one entry per section.

        Importing again changes nothing, also where an entry was corrected by hand; a section
        whose file was edited becomes a correction, and one that vanished is reported and kept.
        ``progress`` is called with (files done, files found).

        Raises:
            UnreadableDocumentError: none of ``roots`` can be read.
        """
        request = ImportRequest.parse(
            {
                "roots": roots,
                "tenant": tenant,
                "owner": owner,
                "scope": scope,
                "sensitivity": sensitivity,
                "kind": kind,
            }
        )
        report = self._parts().import_documents()(request, progress=progress)
        self._left()
        return report

    def correct(  # noqa: PLR0913  # what may change, each by name
        self,
        entry_id: UUID | str,
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

        ``tenant`` and ``owner`` say whose the entry must be, for hosts that are given ids from
        outside; an entry never moves to another.

        Raises:
            UnknownEntryError: there is no such entry, or it is another's.
            EntryErasedError: it was erased.
            InvalidInputError: a new value breaks its bounds.
        """
        version = self._parts().correct()(
            entry_id_of(entry_id),
            reason=reason,
            tenant=tenant,
            owner=owner,
            text=text,
            scope=scope,
            kind=kind,
            sensitivity=sensitivity,
            subjects=subjects,
            metadata=metadata,
        )
        self._left()
        return version

    def erase(
        self,
        entry_id: UUID | str,
        *,
        reason: str,
        tenant: str | None = None,
        owner: str | None = None,
    ) -> Erasure:
        """Destroy an entry's text in all its versions; erasing again changes nothing.

        ``tenant`` and ``owner`` say whose the entry must be, as with :meth:`correct`.

        ``pending`` in the result means that old pages still lie in the files because a reader
        holds a snapshot: call :meth:`finish_erasure` later.

        Raises:
            UnknownEntryError: there never was such an entry, or it is another's.
        """
        return self._parts().erase()(
            entry_id_of(entry_id), reason=reason, tenant=tenant, owner=owner
        )

    def erase_owner(
        self, *, tenant: str, owner: str, reason: str, progress: Progress | None = None
    ) -> Erasure:
        """Destroy all texts of an owner, and the content of all its sessions."""
        return (
            self._parts()
            .erase()
            .owner(tenant=tenant, owner=owner, reason=reason, progress=progress)
        )

    def erase_session(self, session: str, *, tenant: str) -> Erasure:
        """Destroy a session's query vectors and the host's items of its packs."""
        return self._parts().erase().session(tenant=tenant, session=session)

    def finish_erasure(self) -> bool:
        """Clear what erased texts left in the store's files; say whether nothing is left."""
        return self._parts().erase().finish()

    # -- Recall and packs --------------------------------------------------

    def recall(self, query: RecallQuery, context: RecallContext) -> Recalled:
        """Answer a question from current, permitted originals; records nothing."""
        return self._parts().recall()(*_asked(query, context))

    def select(
        self, session: str, stage: str, query: RecallQuery, context: RecallContext
    ) -> Selection:
        """Commit what a stage gets; a later request returns what was committed."""
        return self._parts().select()(session, stage, *_asked(query, context))

    def build_pack(  # the fixed public face
        self,
        session: str,
        stage: str,
        query: RecallQuery,
        context: RecallContext,
        *,
        items: Iterable[ContextItem] = (),
        token_budget: int,
    ) -> ContextPack:
        """Assemble a stage's pack from its committed selection, and record it.

        Raises:
            BudgetTooSmallError: required items don't fit, with their marks.
            InvalidInputError: two items share an id, or the budget breaks its bounds.
        """
        return self._parts().build_pack()(
            session,
            stage,
            *_asked(query, context),
            items=instances(items, ContextItem, field="items"),
            token_budget=token_budget,
        )

    def replay(  # the fixed public face
        self,
        session: str,
        stage: str,
        *,
        tenant: str,
        principal: str,
        scopes: Sequence[str],
        read_ceiling: Sensitivity,
        pack_number: int | None = None,
    ) -> ContextPack:
        """Return a pack as it was assembled, from log and vault alone; writes nothing.

        Raises:
            UnknownSelectionError: nothing was selected for the stage in this tenant.
            UnknownPackError: no such pack was assembled.
        """
        return self._parts().replay()(
            session,
            stage,
            tenant=tenant,
            principal=principal,
            scopes=scopes,
            read_ceiling=read_ceiling,
            pack_number=pack_number,
        )

    # -- Upkeep ------------------------------------------------------------

    def reindex(
        self,
        *,
        to: EmbeddingTuple | None = None,
        place: str | None = None,
        embedder: Embedder | None = None,
        words: bool = False,
        drop_retired: bool = False,
        allow_gaps: bool = False,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Build a fresh vector index beside the one that answers, then switch.

        ``to`` names the space (by default the configured embedder's); ``place`` says where its
        vectors are kept, ``local`` or ``qdrant`` (by default as configured); ``embedder`` brings a
        further model and its space; ``words`` rebuilds the keyword index too.  Resumes where an
        interrupted run had stopped.  ``allow_gaps`` switches even where vectors can't be bought.

        Raises:
            SettingsError: no embedder of that space is here.
            ReindexStoppedError: vectors can't be bought now; what was bought is kept, the same
                index answers as before, and the next call goes on.
            IndexUnfitError: what was built isn't what it should be; no index was switched.
            StoreUnavailableError: that place doesn't answer; the next call goes on.
        """
        parts = self._parts()
        if embedder is not None:
            parts.embedders().add(embedder)
            to = embedder.embedding_tuple if to is None else to
        if to is not None:
            instance(to, EmbeddingTuple, field="to")
        reindex = parts.reindex()
        if words:
            reindex.words(progress=progress)
        return reindex(
            to=to,
            place=place,
            drop_retired=drop_retired,
            allow_gaps=allow_gaps,
            progress=progress,
        )

    def reindex_missing(self, *, progress: Progress | None = None) -> int:
        """Give vectors to texts that have none in the index that answers; return how many.

        For what was kept while a provider was away or a budget was used up.
        """
        return self._parts().reindex().missing(progress=progress)

    def drop_retired_indexes(self, *, unfinished: bool = False) -> tuple[int, ...]:
        """Destroy the vector indexes that don't answer any more; return their numbers.

        With ``unfinished`` also one whose building broke off.
        """
        return self._parts().reindex().drop_retired(unfinished=unfinished)

    def status(self) -> Status:
        """Return counts of every part, and whether recall goes by vectors."""
        return self._parts().status()()

    def check_up(self, *, deep: bool = False) -> Sequence[tuple[str, bool, str, str]]:
        """Look at the server, or for damage of the file, also of a very long one if ``deep``.

        Returns what was looked at, whether it is in order, what was found, and what to do.
        """
        look = self._parts().store().check_up
        return () if look is None else look(deep)

    aremember = async_twin(remember)
    aremember_many = async_twin(remember_many)
    aimport_documents = async_twin(import_documents)
    acorrect = async_twin(correct)
    aerase = async_twin(erase)
    aerase_owner = async_twin(erase_owner)
    aerase_session = async_twin(erase_session)
    afinish_erasure = async_twin(finish_erasure)
    arecall = async_twin(recall)
    aselect = async_twin(select)
    abuild_pack = async_twin(build_pack)
    areplay = async_twin(replay)
    areindex = async_twin(reindex)
    areindex_missing = async_twin(reindex_missing)
    adrop_retired_indexes = async_twin(drop_retired_indexes)
    astatus = async_twin(status)
    aclose = async_twin(close)

    @override
    def _parts(self) -> "Container":
        if self._closed:
            raise StoreClosedError
        return self._container


def _asked(query: RecallQuery, context: RecallContext) -> tuple[RecallQuery, RecallContext]:
    return (
        instance(query, RecallQuery, field="query"),
        instance(context, RecallContext, field="context"),
    )


def _shifted(progress: Progress | None, done_before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(done_before + done, total)
