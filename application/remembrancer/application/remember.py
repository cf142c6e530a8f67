"""Use case: remember entries."""

from collections.abc import Callable, Sequence
from datetime import datetime

from remembrancer.application.document_vectors import DocumentVectors
from remembrancer.application.entry_index import EntryIndex
from remembrancer.application.ports import (
    Clock,
    EntryVault,
    EventLog,
    Original,
    Randomness,
    TokenCounter,
    Transactions,
    VectorIndex,
    VectorIndexes,
)
from remembrancer.application.whose import places_by_owner
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.entry import MemoryEntry, NewEntry
from remembrancer.domain.errors import EntryErasedError, IdempotencyConflictError
from remembrancer.domain.identity import EntryId, entry_id_for_key
from remembrancer.domain.original_digest import SALT_BYTES, original_digest
from remembrancer.domain.vector import Vector

Progress = Callable[[int, int], None]
"""Called with (done, total) as long work goes on."""

EMBEDDED_AT_ONCE = 512


class EntryWriter:
    """Token counts and vectors of texts, before they are written; shared by remember and correct.

    Called outside transactions: a model works, or a provider is asked.
    """

    def __init__(
        self, *, vectors: DocumentVectors, indexes: VectorIndexes, tokens: TokenCounter
    ) -> None:
        self._vectors = vectors
        self._indexes = indexes
        self._tokens = tokens
        self._last_seen: EmbeddingTuple | None = None

    @property
    def token_counter(self) -> str:
        """Name and version of the counter."""
        return self._tokens.name

    def space(self) -> EmbeddingTuple | None:
        """Return the space to embed into: the active index's, else the preferred one.

        The one that was last written in is good enough, as long as embedding costs no money:
        :meth:`index` tells if another serves meanwhile.
        """
        seen = self._last_seen
        if seen is not None and self._vectors.can_embed_here(seen):
            return seen
        active = self._indexes.active()
        return self._vectors.preferred_space if active is None else active.embedding_tuple

    def measure(
        self,
        entries: Sequence[NewEntry],
        space: EmbeddingTuple | None,
        progress: Progress | None = None,
    ) -> tuple[list[int], list[Vector | None]]:
        """Return the token count and the vector (or None) of each entry's text."""
        counts: list[int] = []
        vectors: list[Vector | None] = []
        asked = True
        for start in range(0, len(entries), EMBEDDED_AT_ONCE):
            some = entries[start : start + EMBEDDED_AT_ONCE]
            # Vectors first: the model remembers the words' tokens, and counting them is cheap.
            found = self._vectors.embedded(some, space if asked else None)
            vectors += found.vectors
            # A provider that is away, or a budget used up, isn't tried with each batch again.
            asked = asked and not found.nobody_answered
            counts += self._tokens.count_many([one.text for one in some])
            if progress is not None:
                progress(len(counts), len(entries))
        return counts, vectors

    def index(self, space: EmbeddingTuple | None) -> VectorIndex | None:
        """Return the index that serves; one of ``space`` is made where there is none.

        Called inside the writing transaction, before anything is written: another process may
        have switched to another space since, and then all has to be measured again.
        """
        active = self._indexes.active()
        if active is None and space is not None:
            active = self._indexes.activate(self._indexes.begin(space))
        self._last_seen = None if active is None else active.embedding_tuple
        return active


class Remember:
    """Event, text, sparse row and vector of new entries, in one transaction."""

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
        self._token_counter = writer.token_counter

    def __call__(
        self, entries: Sequence[NewEntry], *, progress: Progress | None = None
    ) -> list[EntryId]:
        """Remember ``entries``, all or none; return their ids in order.

        An entry whose idempotency key already names one with the same content is that one.

        Raises:
            IdempotencyConflictError: a key names an entry with other content.
            EntryErasedError: a key names an entry that was erased.
        """
        ids = [self._id_of(entry) for entry in entries]
        self._remembered(entries, ids, progress)
        return ids

    def new_of(self, entries: Sequence[NewEntry]) -> list[EntryId]:
        """Remember ``entries`` as above; return the ids of those that weren't here before.

        Of several that remember the same at once, one is told that it was the first.
        """
        ids = [self._id_of(entry) for entry in entries]
        return [ids[i] for i in self._remembered(entries, ids, None)]

    def _remembered(
        self, entries: Sequence[NewEntry], ids: Sequence[EntryId], progress: Progress | None
    ) -> list[int]:
        """Return the places of those that weren't here."""
        while (written := self._written(entries, ids, progress)) is None:
            pass  # Another index took over meanwhile: all needs vectors of its space.
        return written

    def _written(
        self, entries: Sequence[NewEntry], ids: Sequence[EntryId], progress: Progress | None
    ) -> list[int] | None:
        """Write what isn't here yet; None, and nothing written, if the space has changed.

        Returns the places of what was written.
        """
        space = self._writer.space()
        # What is here already isn't embedded again: a retry must not cost anything.
        keyed = any(entry.idempotency_key is not None for entry in entries)
        wanted = self._fresh(entries, ids) if keyed else list(range(len(entries)))
        counts, vectors = self._writer.measure([entries[i] for i in wanted], space, progress)
        measured = dict(zip(wanted, zip(counts, vectors, strict=True), strict=True))
        with self._transactions.begin():
            fresh = wanted
            if keyed:
                fresh = [i for i in self._fresh(entries, ids) if i in measured]
            if not fresh:
                return []
            index = self._writer.index(space)
            if index is not None and index.embedding_tuple != space:
                return None
            at = self._clock.now()
            for (tenant, owner), places in places_by_owner([entries[i] for i in fresh]):
                some = [fresh[place] for place in places]
                originals = [self._original(entries[i], ids[i], measured[i][0], at) for i in some]
                with self._transactions.acting_for(tenant, owner):
                    self._log.append([_begun(original) for original in originals])
                    self._vault.keep(originals)
                    self._index.add(originals, [measured[i][1] for i in some], index)
        return fresh

    def _id_of(self, entry: NewEntry) -> EntryId:
        if entry.idempotency_key is None:
            return EntryId(self._randomness.uuid())
        return entry_id_for_key(entry.tenant, entry.owner, entry.idempotency_key)

    def _fresh(self, entries: Sequence[NewEntry], ids: Sequence[EntryId]) -> list[int]:
        """Return the places of entries that aren't here yet."""
        fresh: list[int] = []
        for (tenant, owner), places in places_by_owner(entries):
            with self._transactions.acting_for(tenant, owner):
                fresh += self._fresh_of(places, entries, ids)
        return sorted(fresh)

    def _fresh_of(
        self, places: Sequence[int], entries: Sequence[NewEntry], ids: Sequence[EntryId]
    ) -> list[int]:
        """Return those of one owner's ``places``."""
        keyed = [ids[i] for i in places if entries[i].idempotency_key is not None]
        first = self._vault.versions([(entry_id, 1) for entry_id in keyed])
        fresh, seen = [], dict[EntryId, NewEntry]()
        for i in places:
            entry, entry_id = entries[i], ids[i]
            known = first.get((entry_id, 1))
            if known is not None:
                if not _same_content(entry, known):
                    raise IdempotencyConflictError(entry_id)
            elif entry_id in seen:
                if entry != seen[entry_id]:
                    raise IdempotencyConflictError(entry_id)
            else:
                if entry.idempotency_key is not None:
                    self._refuse_erased(entry.tenant, entry_id)
                    seen[entry_id] = entry
                fresh.append(i)
        return fresh

    def _refuse_erased(self, tenant: str, entry_id: EntryId) -> None:
        stream = MemoryEntry.create_id(tenant, entry_id)
        # Any event would do, but for the one that another thread is committing just now.
        if any(isinstance(event, MemoryEntry.EntryErased) for event in self._log.read(stream)):
            raise EntryErasedError(entry_id)

    def _original(self, entry: NewEntry, entry_id: EntryId, tokens: int, at: datetime) -> Original:
        salt = self._randomness.bytes(SALT_BYTES)
        return Original(
            tenant=entry.tenant,
            owner=entry.owner,
            entry_id=entry_id,
            version=1,
            scope=entry.scope,
            kind=entry.kind,
            sensitivity=entry.sensitivity,
            text=entry.text,
            salt=salt,
            digest=original_digest(salt, entry.text),
            tokens=tokens,
            token_counter=self._token_counter,
            subjects=entry.subjects,
            metadata=entry.metadata,
            recorded_at=at,
        )


def _begun(original: Original) -> MemoryEntry.EntryRemembered:
    return MemoryEntry.begun(
        original.header,
        digest=original.digest,
        length=len(original.text.encode()),
        at=original.recorded_at,
    )


def _same_content(entry: NewEntry, known: Original) -> bool:
    return (
        entry.text == known.text
        and entry.scope == known.scope
        and entry.kind == known.kind
        and entry.sensitivity is known.sensitivity
        and entry.subjects == known.subjects
        and entry.metadata == dict(known.metadata)
    )
