"""A whole scenario on one file, the same to the byte each time, and what must be true of the file.

A file of an older release is opened (and so migrated); documents are imported, entries come, are
corrected and erased; stages are selected and packed; charges are reserved, settled, lost and
reconciled; the index moves to another space.  Clock and chance are fixed, so that two runs write
the same, and what was found in one state of the file holds for it wherever it is met again.
"""

import hashlib
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw
from dependency_injector import providers
from tests.application.house import House
from tests.composition.whole_memory import (
    EMBEDDERS,
    ERASED_WORD,
    Facts,
    Life,
    assert_sound,
    facts_of,
    write_documents,
)

from remembrancer.adapters.sqlite.audit_source import SqliteAuditSource
from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.audit.audit import Audit
from remembrancer.application.embedders import Embedders
from remembrancer.composition.assembly import wired
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import Settings, StoreSettings
from remembrancer.composition.store import open_store
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.randomness import SeededRandomness
from remembrancer.contracts.spending import QUERY, Spender
from remembrancer.contracts.token_counter import WordCounter
from remembrancer.domain.identity import EntryId

FILE = "memory.db"
WAL_PAGES = 40
"""So that copying back from the write-ahead log is met, too."""
LATER_TABLES = ("spend_receipts", "ledger_snapshots")
"""What the release with reservations added: an older file doesn't have it."""
SCENARIO_SEED = 7


@dataclass(slots=True)
class Told:
    """What is true after a step, as a host can tell."""

    facts: Facts = field(default_factory=Facts)
    charges: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    """State and charge of each reservation."""
    is_clean: bool = False
    """Whether nothing is kept any more that holds the erased word."""


@contextmanager
def opened(folder: Path) -> Generator[House]:
    """Open the scenario's file, with nothing in it left to chance."""
    place = StoreSettings(path=folder / FILE)
    clock, randomness = FixedClock(), SeededRandomness(SCENARIO_SEED)
    container = wired(Settings(store=place))
    with open_store(place, clock=clock, randomness=randomness) as store:
        for name, part in {
            "embedders": Embedders(EMBEDDERS),
            "tokens": WordCounter(),
            "clock": clock,
            "randomness": randomness,
            "store": store,
        }.items():
            getattr(container, name).override(providers.Object(part))
        memory = Remembrancer(container, close=lambda: None)
        yield House(memory=memory, container=container, store=store, clock=clock)


def prepared(folder: Path) -> Path:
    """Make the documents, and a file as an older release left it; return the file."""
    documents = folder / "documents"
    documents.mkdir()
    write_documents(documents)
    older = folder / "older"
    older.mkdir()
    with opened(older):
        pass
    connection = apsw.Connection(str(older / FILE))
    for table in LATER_TABLES:
        connection.execute(f"DROP TABLE {table}")
    connection.execute("UPDATE schema_info SET scripts_sha256 = 'older'")
    connection.pragma("journal_mode", "delete")
    connection.close()
    return older / FILE


class Scenario:
    """The steps, one by one."""

    def __init__(self, house: House, documents: Path) -> None:
        self._house = house
        self._life = Life(house, documents)
        self._spender = Spender(house.store.ledger)
        self._reserved: list[UUID] = []

    def steps(self) -> Iterator[Callable[[], object]]:
        """Yield what to do next; each is acknowledged when it returns."""
        spending = self._spending()
        for step in self._life.steps():
            yield step
            yield from islice(spending, 2)

    def _spending(self) -> Iterator[Callable[[], object]]:
        for number in range(1, 12):
            id_ = UUID(int=number)
            yield partial(self._reserve, id_)
            if number % 3 == 0:
                yield partial(self._spender.lose, id_)
                yield partial(self._spender.reconcile, id_, charge=2)
            elif number % 5 == 0:
                yield lambda: self._house.clock.advance(timedelta(seconds=20))
            else:
                yield partial(self._spender.settle, id_)

    def _reserve(self, id_: UUID) -> None:
        self._reserved.append(id_)
        self._spender.admit(id_, kind=QUERY)

    def told(self) -> Told:
        """Say what is true now."""
        return Told(
            facts=facts_of(self._house, self._life.ids, self._life.sessions),
            charges=_charges(self._house, self._reserved),
            is_clean=self._life.is_clean,
        )


def _charges(house: House, ids: list[UUID]) -> dict[UUID, tuple[str, int]]:
    found = {id_: house.store.ledger.receipt("acme", "ana", id_) for id_ in ids}
    return {
        id_: (one.state.value, one.charged_quanta) for id_, one in found.items() if one is not None
    }


def lived(
    folder: Path,
    older: Path,
    acknowledge: Callable[[], object],
    *,
    synchronous: int | None = None,
    looks: bool = True,
) -> list[Told]:
    """Live through the scenario in an empty folder; return what was true after each step.

    The first is of the file as it was; opening (and migrating) it is the first step.  A life that
    nobody ``looks`` at takes a third of the time.
    """
    shutil.copy(older, folder / FILE)
    told = [Told()]
    with opened(folder) as house:
        connection = database_of(house).connection()
        connection.pragma("wal_autocheckpoint", WAL_PAGES)
        if synchronous is not None:
            connection.pragma("synchronous", synchronous)
        acknowledge()
        told.append(Told())
        scenario = Scenario(house, older.parent.parent / "documents")
        for step in scenario.steps():
            step()
            acknowledge()
            if looks:
                told.append(scenario.told())
    return told


def database_of(house: House) -> Database:
    """Return the file behind a house."""
    database: Any = house.store.transactions
    assert isinstance(database._database, Database)
    return database._database


class Examiner:
    """Says what a file holds, and whether it is sound; each state of it is examined once.

    Every file is opened by SQLite itself, recovered and checked for structure; what it then holds
    is hashed.  The costly part (every port, every invariant) is done once for each content.
    """

    def __init__(self, folder: Path, told: list[Told]) -> None:
        self._folder = folder
        self._told = told
        self._known: dict[str, tuple[str, Told]] = {}
        self.points = 0

    @property
    def contents(self) -> int:
        """How many different contents there were."""
        return len(self._known)

    def lost(self, acknowledged: int) -> str:
        """Return what the file lacks that was acknowledged, or holds and mustn't; or nothing."""
        self.points += 1
        content = self._content()
        if content is None:
            return "the file's structure is damaged"
        if content not in self._known:
            self._known[content] = self._examined()
        unsound, found = self._known[content]
        return unsound or self._missing(found, acknowledged)

    def _content(self) -> str | None:
        connection = apsw.Connection(str(self._folder / FILE))
        try:
            if connection.pragma("quick_check") != "ok":
                return None
            hashed = hashlib.sha256()
            tables = "SELECT name FROM sqlite_schema WHERE rootpage > 0 AND type = 'table'"
            for (table,) in list(connection.execute(f"{tables} ORDER BY name")):
                for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608  # its own
                    hashed.update(repr(row).encode())
            return hashed.hexdigest()
        finally:
            connection.close()

    def _examined(self) -> tuple[str, Told]:
        last = self._told[-1]
        ids = sorted({id_ for one in self._told for id_ in one.facts.entries})
        found = Told()
        with ExitStack() as stack:
            house = stack.enter_context(opened(self._folder))
            if database_of(house).connection().pragma("integrity_check") != "ok":
                return "its indexes are damaged", found
            try:
                there = assert_sound(house)
            except AssertionError as disagreement:
                return f"its parts disagree: {disagreement}", found
            known = [EntryId(id_) for id_ in ids if id_ in there]
            found.facts = facts_of(house, known, [])
            for session in last.facts.packs:
                try:
                    found.facts.packs |= facts_of(house, [], [session]).packs
                except Exception:  # noqa: BLE001, S112  # there is no such pack (yet)
                    continue
            found.charges = _charges(house, list(last.charges))
            stranger = there - set(ids)
        with SqliteAuditSource.open(self._folder / FILE, is_ours=True) as source:
            findings = Audit(source=source)().findings
        if findings:
            return f"the audit says {findings[0]}", found
        return ("entries that nobody made" if stranger else ""), found

    def _missing(self, found: Told, acknowledged: int) -> str:
        """Everything is as acknowledged, or as the step after it has it."""
        before = self._told[acknowledged]
        after = self._told[min(acknowledged + 1, len(self._told) - 1)]
        for what, here, then, next_ in (
            ("entry", found.facts.entries, before.facts.entries, after.facts.entries),
            ("pack", found.facts.packs, before.facts.packs, after.facts.packs),
            ("charge", found.charges, before.charges, after.charges),
        ):
            for id_ in [*here, *then]:
                if here.get(id_) not in (then.get(id_), next_.get(id_)):
                    return f"{what} {id_} is {here.get(id_)}, not {then.get(id_)}"
        return ""

    def must_be_clean(self, acknowledged: int) -> bool:
        """Say whether the disk must be free of the erased word, whatever the next step did."""
        after = min(acknowledged + 1, len(self._told) - 1)
        return self._told[acknowledged].is_clean and self._told[after].is_clean


def holds_erased_word(content: bytes | bytearray) -> bool:
    """Say whether what was erased can be found in a file's bytes."""
    return ERASED_WORD.encode() in content
