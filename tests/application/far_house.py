"""A memory whose vectors are kept in Qdrant, in a folder, and whose way there can fail."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.adapters.qdrant_servers import SECRET, in_folder
from tests.application.house import House, open_house
from typing_extensions import override

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.qdrant.link import QdrantLink
from remembrancer.adapters.qdrant.vector_place import QdrantVectorPlace
from remembrancer.application.placed_indexes import PlacedIndexes
from remembrancer.application.ports import (
    Filter,
    KeptVector,
    VectorIndex,
    VectorMatch,
    VectorPlace,
    VectorPoint,
    VectorStore,
)
from remembrancer.composition.store import Store
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector

AWAY = StoreUnavailableError(store="qdrant", problem="is away")


class Crashed(BaseException):
    """Ends a process halfway; nothing catches it."""


@dataclass
class Way:
    """What happens on the way to Qdrant; counts calls."""

    calls: list[str] = field(default_factory=list)
    before: Callable[[str, int], None] = lambda _name, _number: None
    """Called with a call's name and number before it, and may raise."""
    after: Callable[[str, int], None] = lambda _name, _number: None
    """The same once it has taken effect."""

    def go(self, name: str, call: Callable[[], Any]) -> Any:
        """Make a call."""
        self.calls.append(name)
        number = len(self.calls)
        self.before(name, number)
        result = call()
        self.after(name, number)
        return result

    def close(self) -> None:
        """Let nothing through any more."""

        def away(_name: str, _number: int) -> None:
            raise AWAY

        self.before = away

    def open(self) -> None:
        """Let all through again."""
        self.before = self.after = lambda _name, _number: None


class FarStore(VectorStore):
    """A store behind the way."""

    def __init__(self, store: VectorStore, way: Way) -> None:
        self._store = store
        self._way = way

    @override
    def upsert(self, id: EntryId, vector: Vector, metadata: Mapping[str, str]) -> None:
        self._way.go("upsert", lambda: self._store.upsert(id, vector, metadata))

    @override
    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        self._way.go("upsert_many", lambda: self._store.upsert_many(points))

    @override
    def query(self, vector: Vector, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        found: list[VectorMatch] = self._way.go(
            "query", lambda: self._store.query(vector, top_k, filter)
        )
        return found

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        found: dict[EntryId, Vector] = self._way.go("vectors", lambda: self._store.vectors(ids))
        return found

    @override
    def kept(self, ids: Sequence[EntryId]) -> dict[EntryId, KeptVector]:
        found: dict[EntryId, KeptVector] = self._way.go("kept", lambda: self._store.kept(ids))
        return found

    @override
    def present(self, ids: Sequence[EntryId]) -> set[EntryId]:
        found: set[EntryId] = self._way.go("present", lambda: self._store.present(ids))
        return found

    @override
    def delete(self, id: EntryId) -> None:
        self._way.go("delete", lambda: self._store.delete(id))

    @override
    def delete_many(self, ids: Sequence[EntryId]) -> None:
        self._way.go("delete_many", lambda: self._store.delete_many(ids))

    @override
    def clear(self) -> None:
        self._way.go("clear", self._store.clear)

    @override
    def count(self) -> int:
        number: int = self._way.go("count", self._store.count)
        return number


class FarPlace(VectorPlace):
    """A place behind the way."""

    def __init__(self, place: VectorPlace, way: Way) -> None:
        self._place = place
        self._way = way

    @override
    def make(self, index: VectorIndex) -> None:
        self._way.go("make", lambda: self._place.make(index))

    @override
    def holds(self, index: VectorIndex) -> bool:
        there: bool = self._way.go("holds", lambda: self._place.holds(index))
        return there

    @override
    def store(self, index: VectorIndex) -> VectorStore:
        return FarStore(self._place.store(index), self._way)

    @override
    def sweep(self, numbers: Collection[int]) -> None:
        self._way.go("sweep", lambda: self._place.sweep(numbers))


@dataclass(frozen=True, slots=True)
class FarHouse(House):
    """A house, and the way to where its vectors are."""

    way: Way
    place: VectorPlace
    """Without the way: for tests that look."""

    def there(self) -> VectorStore:
        """Return the vectors of the index that answers, past the way."""
        index = self.store.indexes.active()
        assert index is not None
        return self.place.store(index) if index.follows else self.store.indexes.store(index)

    def agreeing(self) -> Store:
        """Return the store as one whose vectors lie beside it, to see whether all agrees."""
        registry = self.store.indexes
        return replace(
            self.store,
            indexes=PlacedIndexes(registry=registry, places={"qdrant": self.place}),
        )


@contextmanager
def open_far_house(
    path: Path | None,
    folder: Path,
    *,
    way: Way | None = None,
    preferred: str = "qdrant",
    **more: Any,
) -> Generator[FarHouse]:
    """Open a memory as :func:`open_house` does, with its vectors in ``folder``."""
    way = way or Way()
    link = QdrantLink(options=in_folder(folder), clock=SystemClock())
    place = QdrantVectorPlace(link=link, secret=lambda: SECRET)
    placed: list[PlacedIndexes] = []

    def joined(store: Store) -> Store:
        placed.append(
            PlacedIndexes(
                registry=store.indexes,
                places={"qdrant": FarPlace(place, way)},
                preferred=preferred,
            )
        )
        return replace(store, indexes=placed[0])

    try:
        with open_house(path, altered=joined, **more) as house:
            yield FarHouse(
                memory=house.memory,
                container=house.container,
                store=replace(house.store, indexes=placed[0]),
                clock=house.clock,
                way=way,
                place=place,
            )
    finally:
        link.close()


class Counting(HashingEmbedder):
    """Counts the texts that it has made vectors of."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        self.texts += len(texts)
        return super().embed_documents(texts)
