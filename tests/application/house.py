"""A memory whose parts a test can look at and replace, over either backend."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dependency_injector import providers
from typing_extensions import override

from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.application.embedders import Embedders
from remembrancer.application.ports import AccessPolicy, Embedder
from remembrancer.composition.assembly import wired
from remembrancer.composition.container import Container
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.settings import Settings, StoreSettings
from remembrancer.composition.store import Store, open_store
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.contracts.token_counter import WordCounter
from remembrancer.domain import (
    NewEntry,
    RecallContext,
    RecallQuery,
    Sensitivity,
)
from remembrancer.domain.vector import Vector

BACKENDS = ("memory", "sqlite", "postgres")


class HardOfHearing(HashingEmbedder):
    """Has no vector for a text with the word ``unheard``."""

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> Vector | None:
        return None if "unheard" in text else super().embed_query(text)


class Forbidden:
    """Stands for a part that must not be asked: whatever is asked of it fails the test."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{self._what} was asked for {name}")


@dataclass(frozen=True, slots=True)
class House:
    """The facade, and what lies behind it."""

    memory: Remembrancer
    container: Container
    store: Store
    clock: FixedClock

    def events(self) -> list[Any]:
        """Return every event of the log, oldest first."""
        with self.store.transactions.over_all_tenants():
            return [one.event for one in self.store.log.follow(after_position=0, limit=1_000_000)]


@contextmanager
def open_house(
    path: Path | StoreSettings | None,
    *,
    embedders: tuple[Embedder, ...] | None = None,
    policy: AccessPolicy | None = None,
    clock: FixedClock | None = None,
    altered: Callable[[Store], Store] = lambda store: store,
    tokens: Any = None,
) -> Generator[House]:
    """Open a memory in ``path`` (None: in process) with a hashing embedder and a fixed clock.

    ``altered`` may put other ports in the place of the store's own.  In PostgreSQL calls by an id
    alone act for Ana's tenant, as a host would say.
    """
    place = _place(path)
    container = wired(Settings(store=place))
    clock = clock or FixedClock()
    given = (HashingEmbedder(),) if embedders is None else embedders
    container.embedders.override(providers.Object(Embedders(given)))
    container.tokens.override(providers.Object(tokens or WordCounter()))
    container.clock.override(providers.Object(clock))
    if policy is not None:
        container.policy.override(providers.Object(policy))
    with open_store(place, clock=clock, randomness=SystemRandomness()) as opened:
        store = _cleared(opened, place)
        container.store.override(providers.Object(altered(store)))
        memory = Remembrancer(container, close=lambda: None)
        with store.transactions.acting_for("acme"):
            yield House(memory=memory, container=container, store=store, clock=clock)


def _place(path: Path | StoreSettings | None) -> StoreSettings:
    if isinstance(path, StoreSettings):
        return path
    return StoreSettings(backend="memory") if path is None else StoreSettings(path=path)


def _cleared(store: Store, place: StoreSettings) -> Store:
    """Return a store in PostgreSQL whose erasures are cleared at once, as its owner may."""
    if place.owner_dsn_file is None:
        return store
    # As below.
    from tests.adapters.postgres_named import AtOnceCleared  # noqa: PLC0415

    owner_dsn = place.owner_dsn_file.read_text()
    return replace(store, transactions=AtOnceCleared(store.transactions, owner_dsn))


@contextmanager
def postgres_place(folder: Path) -> Generator[StoreSettings]:
    """Lend an empty PostgreSQL database; ``folder`` keeps the connection strings."""
    # Here, since only these tests need a server.
    from tests.adapters.postgres_named import emptied  # noqa: PLC0415

    with emptied() as fresh:
        for name, dsn in (("app", fresh.app), ("auditor", fresh.auditor), ("owner", fresh.owner)):
            (folder / f"{name}.dsn").write_text(dsn)
        yield place_in(folder).model_copy(update={"owner_dsn_file": folder / "owner.dsn"})


def place_in(folder: Path) -> StoreSettings:
    """Return the place in PostgreSQL whose connection strings a folder keeps."""
    return StoreSettings(
        backend="postgres",
        dsn_file=folder / "app.dsn",
        reader_dsn_file=folder / "auditor.dsn",
        connections=20,
    )


def an_entry(text: str = "The invoice service retries three times.", **changes: Any) -> NewEntry:
    """Return an entry of Ana's."""
    plain: dict[str, Any] = {
        "tenant": "acme",
        "owner": "ana",
        "scope": "project/alpha",
        "text": text,
        "sensitivity": Sensitivity.INTERNAL,
    }
    return NewEntry(**plain | changes)


def a_query(question: str = "invoice", **changes: Any) -> RecallQuery:
    """Return a question to Ana's memory."""
    plain: dict[str, Any] = {
        "tenant": "acme",
        "owner": "ana",
        "principal": "agent-7",
        "scopes": ("project",),
        "read_ceiling": Sensitivity.INTERNAL,
        "question": question,
    }
    return RecallQuery(**plain | changes)


def a_context() -> RecallContext:
    """Return the circumstances of a question."""
    return RecallContext(
        policy_version="p1",
        retrieval_policy_version="r1",
        surface="cli",
        task_digest="t1",
        sensitivity_floor=Sensitivity.INTERNAL,
    )


def replay_of(**changes: Any) -> dict[str, Any]:
    """Return the access with which Ana's packs are replayed."""
    plain: dict[str, Any] = {
        "tenant": "acme",
        "principal": "agent-7",
        "scopes": ("project",),
        "read_ceiling": Sensitivity.INTERNAL,
    }
    return plain | changes
