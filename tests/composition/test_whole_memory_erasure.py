"""After any life what was erased is in no file, byte for byte, and the rest is there (case 13)."""

import hashlib
import random
import subprocess
import sys
import threading
from array import array
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.application.agreement import assert_agreement
from tests.application.house import House, a_context, a_query, an_entry, open_house, replay_of
from typing_extensions import override

from remembrancer.application.entry_index import index_id
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.contracts.erasure import bytes_under
from remembrancer.domain import ContextItem, NewEntry
from remembrancer.domain.identity import EntryId
from remembrancer.domain.l3_selection import L3Selection
from remembrancer.domain.search_text import prepared
from remembrancer.domain.vector import Vector

OWNERS = ("ana", "ben", "cleo")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD_LETTERS = 20
SHARED_LETTERS = 6
"""FTS5 keeps a word without the beginning that it shares with the word before."""
PIECE = 8
"""Bytes; what is looked for is found by its first so many."""
SNAPSHOT_IN_ANOTHER_PROCESS = (
    "import sys, pathlib\n"
    "from remembrancer.adapters.sqlite.database import Database\n"
    "with Database.open(pathlib.Path(sys.argv[1])) as database, database.read() as connection:\n"
    "    connection.execute('SELECT count(*) FROM original').get\n"
    "    print('reading', flush=True)\n"
    "    sys.stdin.readline()\n"
)


class DenseEmbedder(HashingEmbedder):
    """Has a vector of its own for each text, without a zero in it."""

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> Vector | None:
        seed = hashlib.blake2b(text.encode(), digest_size=8).digest()
        chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        return array("f", (chance.gauss() for _ in range(self.embedding_tuple.dimensions)))


EMBEDDERS = (DenseEmbedder(dimensions=24), DenseEmbedder(dimensions=40, revision="2"))


@pytest.mark.parametrize("seed", range(4))
def test_nothing_erased_is_left_and_nothing_else_is_lost(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_nothing_erased_is_left_after_a_long_life(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed, steps=120)


def test_what_is_looked_for_can_be_found(tmp_path: Path) -> None:
    """Without this, the tests above could be blind."""
    with open_house(tmp_path / "memory.db", embedders=EMBEDDERS) as house:
        life = Life(house, seed=0)
        life.remember_many()
        life.build_pack()
        traces = life.traces_of_all()

        found = found_under(tmp_path, traces)

    kinds = {kind for kind in traces.values() if kind != "prepared"}
    assert {traces[one] for one in found} >= kinds


def test_pending_is_said_while_another_process_reads(tmp_path: Path) -> None:
    with open_house(tmp_path / "memory.db", embedders=EMBEDDERS) as house:
        entry_id = house.memory.remember(an_entry("A canarybird sings."))
        with a_reader_elsewhere(tmp_path / "memory.db"):
            erasure = house.memory.erase(entry_id, reason="asked")
            meanwhile = house.memory.finish_erasure()

        finished = house.memory.finish_erasure()

        assert erasure.pending
        assert not meanwhile
        assert finished
        assert b"canary" not in bytes_under(tmp_path)


def test_idle_threads_are_not_in_the_way(tmp_path: Path) -> None:
    with open_house(tmp_path / "memory.db", embedders=EMBEDDERS) as house:
        entry_id = house.memory.remember(an_entry("A canarybird sings."))
        with eight_idle_threads(house):
            erasure = house.memory.erase(entry_id, reason="asked")

            left = bytes_under(tmp_path)

    assert not erasure.pending
    assert b"canary" not in left


def test_closing_finishes_what_was_pending(tmp_path: Path) -> None:
    with open_house(tmp_path / "memory.db", embedders=EMBEDDERS) as house:
        entry_id = house.memory.remember(an_entry("A canarybird sings."))
        with a_reader_elsewhere(tmp_path / "memory.db"):
            assert house.memory.erase(entry_id, reason="asked").pending

    assert b"canary" not in bytes_under(tmp_path)


# -- A life ----------------------------------------------------------------


@dataclass(slots=True)
class Life:
    """Does at random what hosts do, and knows by which bytes each thing can be told."""

    house: House
    seed: int
    chance: random.Random = field(init=False)
    owners: dict[EntryId, str] = field(default_factory=dict)
    sessions: dict[str, tuple[str, dict[bytes, str]]] = field(default_factory=dict)
    """Owner and traces, by name."""
    erased: dict[bytes, str] = field(default_factory=dict)
    """By which bytes erased things can be told, and what they are."""
    made: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose

    def step(self) -> None:
        """Do one thing."""
        deeds = {
            self.remember_many: 25,
            self.remember: 20,
            self.correct: 15,
            self.erase: 25,
            self.build_pack: 10,
            self.erase_session: 5,
            self.reindex: 5,
            self.erase_owner: 2,
        }
        self.chance.choices(list(deeds), list(deeds.values()))[0]()

    def remember(self) -> None:
        entry = self._entry()
        self.owners[self.house.memory.remember(entry)] = entry.owner

    def remember_many(self) -> None:
        entries = [self._entry() for _ in range(self.chance.choice([3, 20, 60]))]
        ids = self.house.memory.remember_many(entries)
        self.owners.update((id_, one.owner) for id_, one in zip(ids, entries, strict=True))

    def correct(self) -> None:
        for id_ in self._some(10):
            self.house.memory.correct(
                id_, text=self._text(), subjects=(self._word(),), reason=f"because {self._word()}"
            )

    def erase(self) -> None:
        for id_ in self._some(self.chance.choice([1, 5, 60])):
            self.erased.update(self.traces_of(id_))
            del self.owners[id_]
            self.house.memory.erase(id_, reason="asked for")

    def erase_owner(self) -> None:
        owner = self.chance.choice(OWNERS)
        for id_ in [one for one, whose in self.owners.items() if whose == owner]:
            self.erased.update(self.traces_of(id_))
            del self.owners[id_]
        for session in [one for one, (whose, _) in self.sessions.items() if whose == owner]:
            self.erased.update(self.sessions.pop(session)[1])
        self.house.memory.erase_owner(tenant="acme", owner=owner, reason="asked for")

    def build_pack(self) -> None:
        self.made += 1
        session, owner, text = f"s{self.made}", self.chance.choice(OWNERS), self._text()
        query = a_query(f"{self._word()} invoice", owner=owner)
        items = [ContextItem(layer=0, id="rules", text=text, required=True)]
        self.house.memory.build_pack(
            session, "plan", query, a_context(), items=items, token_budget=50_000
        )
        key = self.house.store.sessions.key(L3Selection.create_id("acme", session, "plan"))
        assert key is not None
        self.sessions[session] = owner, traces_of_text(text) | {key: "key"}

    def erase_session(self) -> None:
        if self.sessions:
            session = self.chance.choice(sorted(self.sessions))
            self.erased.update(self.sessions.pop(session)[1])
            self.house.memory.erase_session(session, tenant="acme")

    def reindex(self) -> None:
        self.house.memory.reindex(
            to=self.chance.choice(EMBEDDERS).embedding_tuple,
            drop_retired=self.chance.random() < 0.5,
            words=self.chance.random() < 0.3,
        )

    def traces_of(self, id_: EntryId) -> dict[bytes, str]:
        """Return by which bytes all that is kept of an entry can be told."""
        traces: dict[bytes, str] = {}
        versions = self.house.store.vault.history(id_)
        for one in versions:
            traces |= traces_of_text(one.text) | {one.salt: "salt"}
            told = [*one.subjects, *one.metadata.values(), *(one.reason or "").split()[1:]]
            traces.update((word.encode(), "label") for word in told)
        for index in self.house.store.indexes.all():
            store = self.house.store.indexes.store(index)
            for vector in store.vectors([index_id(one) for one in versions]).values():
                spelt = bytes(array("f", vector))
                traces.update((spelt[at : at + 16], "vector") for at in range(0, len(spelt), 16))
        return traces

    def traces_of_all(self) -> dict[bytes, str]:
        """Return by which bytes all that is here can be told."""
        traces: dict[bytes, str] = {}
        for id_ in self.owners:
            traces |= self.traces_of(id_)
        for _, of_session in self.sessions.values():
            traces |= of_session
        return traces

    def _some(self, most: int) -> list[EntryId]:
        return self.chance.sample(sorted(self.owners), min(most, len(self.owners)))

    def _entry(self) -> NewEntry:
        return an_entry(
            self._text(),
            owner=self.chance.choice(OWNERS),
            subjects=tuple(self._word() for _ in range(self.chance.choice([0, 1, 3]))),
            metadata={"path": self._word()},
        )

    def _text(self) -> str:
        count = self.chance.choice([1, 3, 10, 60, 60])
        if self.chance.random() < 0.01:
            count = 4_000  # About 100 kB.
        return " ".join(["invoice", *(self._any_word() for _ in range(count))])

    def _any_word(self) -> str:
        kind = self.chance.random()
        if kind < 0.1:  # They differ in their last letters only, which are no part of a hash.
            self.made += 1
            return f"number{self.made:08d}x"
        if kind < 0.2:
            return "".join(chr(self.chance.randrange(0x4E00, 0x9F00)) for _ in range(8))
        return self._word()

    def _word(self) -> str:
        return "".join(self.chance.choices(LETTERS, k=WORD_LETTERS))


def traces_of_text(text: str) -> dict[bytes, str]:
    """Return by which bytes a text can be told, also where only its words are kept."""
    traces: dict[bytes, str] = {}
    for word in text.split()[1:]:
        if word.startswith("number"):
            traces[word.removeprefix("number").encode()] = "number"
        elif word.isascii():
            traces[word[SHARED_LETTERS:].encode()] = "word"
        else:
            traces[word.encode()] = "sign"
            traces[prepared(word).strip().encode()] = "prepared"
    return traces


def check(folder: Path, seed: int, *, steps: int) -> None:
    """Live, finish all erasures, and look."""
    with open_house(folder / "memory.db", embedders=EMBEDDERS) as house:
        life = Life(house, seed)
        life.remember_many()
        for _ in range(steps):
            life.step()
        life.erase()

        assert house.memory.finish_erasure()

        here = life.traces_of_all()
        erased = {one: kind for one, kind in life.erased.items() if one not in here}
        assert erased
        assert [(erased[one], one) for one in found_under(folder, erased)] == []
        assert life.owners.keys() == {
            id_ for id_, told in assert_agreement(house.store).items() if not told.erased
        }
        for session in life.sessions:
            house.memory.replay(session, "plan", **replay_of())


def found_under(folder: Path, traces: dict[bytes, str]) -> set[bytes]:
    """Return which of these bytes are in any file."""
    by_beginning: dict[bytes, list[bytes]] = {}
    for trace in traces:
        by_beginning.setdefault(trace[:PIECE], []).append(trace)
    data = bytes_under(folder)
    found: set[bytes] = set()
    for at in range(len(data) - PIECE + 1):
        for trace in by_beginning.get(data[at : at + PIECE], ()):
            if data.startswith(trace, at):
                found.add(trace)
    return found


# -- Readers and idlers ----------------------------------------------------


@contextmanager
def a_reader_elsewhere(path: Path) -> Generator[None]:
    """Let another process hold a snapshot meanwhile."""
    command = [sys.executable, "-c", SNAPSHOT_IN_ANOTHER_PROCESS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reading\n"
        try:
            yield
        finally:
            reader.communicate(b"\n")


@contextmanager
def eight_idle_threads(house: House) -> Generator[None]:
    """Let eight threads that have read keep their connections open meanwhile."""
    ready, go = threading.Barrier(9), threading.Event()

    def idle() -> None:
        house.memory.recall(a_query("canarybird"), a_context())
        ready.wait()
        go.wait()

    threads = [threading.Thread(target=idle) for _ in range(8)]
    for thread in threads:
        thread.start()
    ready.wait()
    try:
        yield
    finally:
        go.set()
        for thread in threads:
            thread.join()
