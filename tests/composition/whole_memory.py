"""A small life of a memory, step by step, and what must be true after each step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from tests.application.agreement import assert_agreement
from tests.application.house import House, a_context, a_query, an_entry, replay_of

from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain import ContextItem
from remembrancer.domain.identity import EntryId

EMBEDDERS = (HashingEmbedder(dimensions=16), HashingEmbedder(dimensions=24, revision="2"))
COMMON_WORD = "invoice"
ERASED_WORD = "canarybird"
"""In everything that the life erases, and in nothing else."""
DOCUMENTS = {
    "costs.md": "# Costs\n\nAn invoice a month.\n\n## Limits\n\nNo invoice above ten.\n",
    "notes.md": "# Notes\n\nEvery invoice is kept for ten years.\n",
}


@dataclass(slots=True)
class Facts:
    """What a memory holds, as its host can tell."""

    entries: dict[EntryId, tuple[int, str] | None] = field(default_factory=dict)
    """Version and text; None once erased."""
    packs: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """By session: digest of the replay, and what it says differs."""


def facts_of(house: House, ids: list[EntryId], sessions: list[str]) -> Facts:
    """Ask a memory for what it holds of these."""
    current = house.store.vault.current(ids)
    return Facts(
        entries={
            id_: (current[id_].version, current[id_].text) if id_ in current else None
            for id_ in ids
        },
        packs={session: _replayed(house, session) for session in sessions},
    )


def _replayed(house: House, session: str) -> tuple[str, tuple[str, ...]]:
    again = house.memory.replay(session, "plan", **replay_of())
    return again.digest, tuple(f"{one.id} {one.reason}" for one in again.differences)


class Life:
    """Runs the steps one by one and knows which entries and sessions it made."""

    def __init__(self, house: House, documents: Path) -> None:
        self._house = house
        self._memory = house.memory
        self._documents = documents
        self.ids: list[EntryId] = []
        self.sessions: list[str] = []
        self._canary_sessions: set[str] = set()

    def steps(self) -> Iterator[Callable[[], None]]:
        """Yield what to do next; each is acknowledged when it returns."""
        yield self._import
        yield self._remember
        yield self._remember_many
        yield self._correct
        yield lambda: self._select("s1")
        yield lambda: self._build("s1", item="Rules of an invoice.")
        yield lambda: self._build("s2", item=f"A {ERASED_WORD} among the rules.")
        yield self._erase
        yield self._erase
        yield self._reindex
        yield lambda: self._build("s3", item="More rules.")
        yield lambda: self._erase_session("s2")
        yield lambda: self._build("s4", item="Yet other rules.")
        yield self._remember
        yield self._correct
        yield self._erase
        yield self._remember_many

    def _import(self) -> None:
        self._memory.import_documents(
            [self._documents],
            tenant="acme",
            owner="ana",
            scope="project/alpha",
            sensitivity=a_query().read_ceiling,
        )
        self.ids += self._house.store.vault.entries_of(tenant="acme", owner="ana")

    def _remember(self) -> None:
        self.ids.append(self._memory.remember(an_entry(f"An invoice and a {ERASED_WORD}.")))

    def _remember_many(self) -> None:
        texts = [
            f"Many an invoice, number{number} " + "word " * 40 * number for number in range(9)
        ]
        self.ids += self._memory.remember_many([an_entry(text) for text in texts])

    def _correct(self) -> None:
        self._memory.correct(
            self.ids[-1], text=f"Another invoice, another {ERASED_WORD}.", reason="it was wrong"
        )

    def _select(self, session: str) -> None:
        self._memory.select(session, "plan", a_query(), a_context())

    def _build(self, session: str, *, item: str) -> None:
        items = [ContextItem(layer=0, id="rules", text=item, required=True)]
        self._memory.build_pack(
            session, "plan", a_query(), a_context(), items=items, token_budget=400
        )
        if session not in self.sessions:
            self.sessions.append(session)
        if ERASED_WORD in item:
            self._canary_sessions.add(session)

    @property
    def to_be_erased(self) -> list[EntryId]:
        """Return the entries that hold the word, in any version."""
        vault = self._house.store.vault
        return [
            id_ for id_ in self.ids if any(ERASED_WORD in one.text for one in vault.history(id_))
        ]

    @property
    def is_clean(self) -> bool:
        """Say whether all that held the word was erased."""
        return not self.to_be_erased and not self._canary_sessions

    def _erase(self) -> None:
        for id_ in self.to_be_erased[:1]:  # None, where the last attempt failed after it.
            self._memory.erase(id_, reason="asked")
        assert self._memory.finish_erasure()

    def _reindex(self) -> None:
        self._memory.reindex(to=EMBEDDERS[1].embedding_tuple, words=True)

    def _erase_session(self, session: str) -> None:
        self._memory.erase_session(session, tenant="acme")
        assert self._memory.finish_erasure()
        self._canary_sessions.discard(session)


def write_documents(folder: Path) -> None:
    """Put what is imported into ``folder``."""
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")


def assert_sound(house: House) -> set[UUID]:
    """Log, vault, words and vectors agree; return the ids of all entries there ever were."""
    return set(assert_agreement(house.store, common_word=COMMON_WORD))
