"""One simulated process over the world's store: the product's parts, wired as composition does.

It can be killed (nothing of it runs any more; the next one begins with nothing in memory), be
stopped for a while, and have threads that it abandoned.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio
from dependency_injector import providers
from tests.application.laboratory import RESIDENCY
from tests.simulation.ports import AdmissionPort, GuardsPort, RandomnessPort, ports_of
from tests.simulation.provider import SimulatedProvider, true_vector
from tests.simulation.trouble import InlineWorker, KilledError
from tests.simulation.virtual_time import MachineClock, WatchedClock, chance_of
from tests.simulation.vocabulary import URL
from typing_extensions import override

from remembrancer.adapters.guards import LocalGuards
from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.embedders import Embedders
from remembrancer.application.paid_request import PaidRequest
from remembrancer.application.prepare_queries import PrepareQueries
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.application.remote_indexing import RemoteIndexing
from remembrancer.composition.assembly import wired
from remembrancer.composition.facade import Remembrancer
from remembrancer.composition.preparation import Preparation
from remembrancer.composition.settings import Settings, StoreSettings
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.contracts.randomness import SeededRandomness
from remembrancer.contracts.token_counter import WordCounter
from remembrancer.domain.eligibility import canonical_query_text
from remembrancer.domain.prepared_vectors import PreparedVectors
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.vector import Vector

if TYPE_CHECKING:
    from tests.simulation.world import World

    from remembrancer.domain.release import AdmittedConfiguration

Place = tuple[str, str, str]
"""Tenant, owner and surface."""
Asked = tuple[RecallQuery, RecallContext]
CACHE_LIFETIME_S = 300.0


class WatchedVectors(PreparedVectors):
    """A cache whose insertions the world looks at."""

    def __init__(self, host: "Host", surface: Surface) -> None:
        super().__init__()
        self._host = host
        self._surface = surface

    @override
    def insert(
        self, prepared: Iterable[tuple[bytes, Vector]], *, generation: int, now_s: float
    ) -> bool:
        pairs = list(prepared)
        inserted = super().insert(pairs, generation=generation, now_s=now_s)
        if inserted:
            self._host.world.inserted(self._host, self._surface, generation, pairs)
        return inserted


class WatchedQueries(PreparedQueries):
    """The prepared queries; every hit must be one that was earned."""

    def __init__(self, host: "Host", **parts: Any) -> None:
        super().__init__(**parts)
        self._host = host

    @override
    def bound(self, surface: Surface, context: RecallContext, generation: int) -> PreparedVectors:
        place = (surface.tenant, surface.owner, surface.surface)
        self._host.bind(place, (context, generation))
        found = super().bound(surface, context, generation)
        if not isinstance(found, WatchedVectors):
            found = WatchedVectors(self._host, surface)
            self._caches[place].vectors = found
            if not self._withdrawn:
                found.begin(generation)
        return found

    @override
    def lookup(self, query: RecallQuery, context: RecallContext) -> Vector | None:
        found = super().lookup(query, context)
        if found is not None:
            self._host.world.looked_up(self._host, query, context, found)
        self._host.see((query.tenant, query.owner, context.surface), context)
        return found


class Host:
    """One process."""

    def __init__(self, world: "World", number: int, life: int, admitted: Any) -> None:
        self.world = world
        self.name = f"host {number}.{life}"
        self.dead = False
        self.ghosts: list[tuple[float, Callable[[], object]]] = []
        """Abandoned threads, and when they come to their ends."""
        self.cached: dict[Asked, float] = {}
        """When the vector of each query in its context came into a cache of this process."""
        self._bound: dict[Place, tuple[RecallContext | None, int]] = {}
        self.admitted: AdmittedConfiguration = admitted
        self.frozen_until_s = 0.0
        self._open = ExitStack()
        chance = chance_of("host", world.seed, number, life)
        self.randomness = RandomnessPort(SeededRandomness(chance.getrandbits(60)), self)
        self.machine = MachineClock(world.time, booted_s=chance.uniform(0, 1e5))
        clock = WatchedClock(self.machine, self._alive)
        self.store = ports_of(self._open.enter_context(world.opened_store()), self)
        self._wire(clock)

    def _wire(self, clock: WatchedClock) -> None:
        container = wired(Settings(store=StoreSettings(backend="memory")))
        self.preparation = self._preparation(clock)
        embedders = (HashingEmbedder(dimensions=8),) if self.world.embeds_here else ()
        for name, part in {
            "embedders": Embedders(embedders),
            "tokens": WordCounter(),
            "clock": clock,
            "randomness": self.randomness,
            "store": self.store,
            "preparation": self.preparation,
        }.items():
            getattr(container, name).override(providers.Object(part))
        self.memory = Remembrancer(container, close=lambda: None)

    def _preparation(self, clock: WatchedClock) -> Preparation:
        admission = AdmissionPort(self)
        configuration = self.admitted.configuration
        worker = InlineWorker(self)
        provider = SimulatedProvider(self)
        guards = GuardsPort(LocalGuards(residency=RESIDENCY), self)
        self.lookup = WatchedQueries(
            self,
            clock=clock,
            secret=self.world.secret,
            configuration=configuration,
        )
        paid_request = PaidRequest(
            ledger=self.store.ledger,
            provider=provider,
            clock=clock,
            randomness=self.randomness,
            worker=worker,
        )
        contexts = CacheContexts(
            log=self.store.log, transactions=self.store.transactions, clock=clock
        )
        return Preparation(
            admission=admission,
            contexts=contexts,
            lookup=self.lookup,
            preparer=PrepareQueries(
                admission=admission,
                contexts=contexts,
                prepared=self.lookup,
                guards=guards,
                destination=URL,
                paid_request=paid_request,
                clock=clock,
                worker=worker,
            ),
            documents=RemoteIndexing(
                admission=admission,
                configuration=configuration,
                guards=guards,
                destination=URL,
                keys=self.lookup.keys,
                paid_request=paid_request,
                clock=clock,
            ),
        )

    def kill(self) -> None:
        """Let nothing of this process run any more."""
        if not self.dead:
            self.dead = True
            self.world.note(f"    {self.name} is dead")

    def withdraw(self) -> None:
        """Do what the watch of a real process does once its admission is gone."""
        self.forget()
        try:
            self.preparation.withdraw()
        except KilledError:
            self.kill()

    def close(self) -> None:
        """Give back what a dead process had open; its open transaction was rolled back."""
        self.dead = True
        self._open.close()

    def freeze(self, seconds: float) -> None:
        """Stop this process for a while; the others go on."""
        self.frozen_until_s = max(self.frozen_until_s, self.world.time.elapsed() + seconds)
        self.world.disturb(self)

    @property
    def is_frozen(self) -> bool:
        """True while this process is stopped."""
        return self.frozen_until_s > self.world.time.elapsed()

    async def running(self) -> None:
        """Wait until this process isn't stopped; a stopped one notices no cancellation."""
        while (left_s := self.frozen_until_s - self.world.time.elapsed()) > 0:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(left_s)

    def _alive(self) -> None:
        if self.dead:
            raise KilledError

    # -- What must be in this process's caches, by the rules ----------------

    def bind(self, place: Place, to: tuple[RecallContext, int]) -> None:
        """Another context or generation empties the surface's cache."""
        if self._bound.get(place) != to:
            self.forget(place)
        self._bound[place] = to

    def see(self, place: Place, context: RecallContext) -> None:
        """A lookup in another context empties the surface's cache, too."""
        bound = self._bound.get(place)
        if bound is not None and bound[0] != context:
            self.forget(place)
            self._bound[place] = (None, 0)

    def forget(self, place: Place | None = None) -> None:
        """Take it that a cache (or each) is empty."""
        self.cached = {
            (query, context): at
            for (query, context), at in self.cached.items()
            if place is not None and (query.tenant, query.owner, context.surface) != place
        }

    def is_live(self, query: RecallQuery, context: RecallContext) -> bool:
        """Say whether a lookup of exactly this must hit."""
        at = self.cached.get((query, context))
        return at is not None and self.world.time.elapsed() - at < CACHE_LIFETIME_S


def is_true_vector(query: RecallQuery, vector: Vector) -> bool:
    """Say whether a vector is the one that the provider has for a query's text."""
    true = true_vector(canonical_query_text(query))
    return all(abs(a - b) < 1e-6 for a, b in zip(true, vector, strict=True))
