"""A new index is looked at while others write, as they always do: it answers nevertheless."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.application.agreement import assert_agreement
from tests.application.far_house import open_far_house
from tests.application.house import House, an_entry, open_house, postgres_place

from remembrancer.application.index_check import IndexCheck
from remembrancer.application.ports import IndexState, VectorIndex
from remembrancer.application.reindex import LOOKS_MAX
from remembrancer.composition.settings import StoreSettings
from remembrancer.composition.store import Store
from remembrancer.domain import EntryId

DEEDS = ("remember", "correct", "erase")
TEXTS = [f"invoice service {number}" for number in range(30)]


class Asked:
    """A port of which a test is told before and after one of its methods is called."""

    def __init__(self, port: Any, method: str) -> None:
        self._port = port
        self._method = method
        self.deed: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._told(found) if name == self._method else found

    def _told(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def told(*args: Any, **named: Any) -> Any:
            self.deed()
            result = call(*args, **named)
            self.deed()
            return result

        return told


class Watched:
    """A store whose log and vault tell when an index is looked at."""

    def __init__(self) -> None:
        self.ports: list[Asked] = []

    def __call__(self, store: Store) -> Store:
        log, vault = Asked(store.log, "position"), Asked(store.vault, "versions")
        self.ports = [log, vault]
        ports: dict[str, Any] = {"log": log, "vault": vault}
        return replace(store, **ports)

    def each_time(self, deed: Callable[[], object]) -> None:
        """Let somebody else do it, who is done before the looking goes on."""

        def by_another() -> None:
            self.each_time_nothing()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(deed).result(60)
            for port in self.ports:
                port.deed = by_another

        for port in self.ports:
            port.deed = by_another

    def each_time_nothing(self) -> None:
        for port in self.ports:
            port.deed = lambda: None


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | StoreSettings]:
    """Return where others can write while somebody reads."""
    if request.param == "postgres":
        with postgres_place(tmp_path) as place:
            yield place
    else:
        yield tmp_path / "memory.db"


@pytest.mark.parametrize("deed", DEEDS)
def test_what_others_write_during_the_look_makes_no_index_unfit(
    shared: Path | StoreSettings, deed: str
) -> None:
    if deed == "erase" and isinstance(shared, StoreSettings):
        deed = "correct"  # Clearing what was erased waits there for whoever reads, as here.
    watched = Watched()
    with open_house(shared, altered=watched) as house:
        ids = house.memory.remember_many([an_entry(text) for text in TEXTS])
        watched.each_time(lambda: done(house, deed, ids))

        reindexed = house.memory.reindex()

        watched.each_time_nothing()
        assert reindexed.index.state is IndexState.ACTIVE
        assert_agreement(house.store, common_word="invoice")


@pytest.mark.parametrize("deed", DEEDS)
def test_nor_where_the_index_is_kept_elsewhere(tmp_path: Path, deed: str) -> None:
    with open_far_house(tmp_path / "memory.db", tmp_path, preferred="local") as house:
        ids = house.memory.remember_many([an_entry(text) for text in TEXTS])
        looked: list[str] = []

        def write(name: str, _number: int) -> None:
            if name == "count":
                looked.append(name)
                done(house, deed, ids)

        house.way.before = write

        reindexed = house.memory.reindex(place="qdrant")

        house.way.open()
        assert reindexed.index.state is IndexState.ACTIVE
        assert looked


def test_an_index_that_others_switched_to_meanwhile_is_not_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(range(LOOKS_MAX))

    def another_switches(_check: IndexCheck, index: VectorIndex) -> str:
        if next(looks) == LOOKS_MAX - 1:
            house.store.indexes.activate(index)
        return "it keeps changing"

    with open_house(tmp_path / "memory.db") as house:
        house.memory.remember(an_entry())
        monkeypatch.setattr(IndexCheck, "problem", another_switches)

        reindexed = house.memory.reindex()

        assert reindexed.index.state is IndexState.ACTIVE
        assert_agreement(house.store, common_word="invoice")


def test_a_memory_is_reindexed_while_four_threads_write(tmp_path: Path) -> None:
    over = Event()

    def write(number: int) -> None:
        chance, mine = random.Random(number), list[EntryId]()  # noqa: S311 -- guards nothing
        while not over.is_set():
            mine.append(house.memory.remember(an_entry(f"invoice {number}")))
            done(house, chance.choice(DEEDS), mine)

    with open_house(tmp_path / "memory.db") as house, ThreadPoolExecutor(4) as pool:
        house.memory.remember_many([an_entry(text) for text in TEXTS])
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            reindexed = [house.memory.reindex() for _ in range(3)]
        finally:
            over.set()
        assert [one.result(60) for one in writers] == [None] * 4
        assert [one.index.number for one in reindexed] == [2, 3, 4]
        assert_agreement(house.store, common_word="invoice")


# -- Helpers -----------------------------------------------------------------


def done(house: House, deed: str, ids: list[EntryId]) -> None:
    """Write something, of the entries that are left."""
    with house.store.transactions.acting_for("acme"):
        if deed == "remember" or not ids:
            house.memory.remember(an_entry("another invoice"))
        elif deed == "correct":
            house.memory.correct(ids[-1], text="corrected invoice", reason="edited")
        else:
            house.memory.erase(ids.pop(), reason="asked")
