"""Rules of one surface's cache context (design 4.3): generations, and what may enter them."""

from typing import Final

from remembrancer.application.audit.facts import Facts
from remembrancer.application.audit.finding import Invariant, Place
from remembrancer.application.audit.natural_key import stream_key
from remembrancer.application.audit.reading import State
from remembrancer.domain.bounds import QUERIES_MAX
from remembrancer.domain.cache_context import CacheContext

GENERATIONS = Invariant(
    name="generations",
    sentence="The first context begins generation 1; another context or a withdrawal begins the "
    "next one, and nothing else does.",
    source="seed BSQ; design 4.3",
)
SAME_GENERATION = Invariant(
    name="prepared-in-same-generation",
    sentence="Vectors enter the cache only in the generation in which they were asked for, while "
    "it is bound: one to four of them.",
    source="seed BSQ; design 4.3 and 6, step 8",
)
INVARIANTS: Final = (GENERATIONS, SAME_GENERATION)

BOUND: Final = CacheContext.CacheContextBound.TOPIC
PREPARED: Final = CacheContext.QueryVectorsPrepared.TOPIC
REPLACED: Final = CacheContext.CacheContextReplaced.TOPIC
WITHDRAWN: Final = CacheContext.AdmissionWithdrawn.TOPIC


class CacheRules:
    """Folds one surface."""

    __slots__ = ("_began", "_bound", "_facts", "_generation", "_place", "_whose")

    def __init__(self, place: Place, facts: Facts) -> None:
        self._place = place
        self._facts = facts
        self._whose = ("", "", "")
        self._generation = 0
        self._bound: tuple[str, str] | None = None
        """Digests of context and configuration; None after a withdrawal."""
        self._began = 0
        """Position at which the generation began."""

    def begin(self, topic: str, state: State) -> bytes | None:
        """Take in the first event; return the id its stream must have, None if it begins none."""
        place = self._place
        if topic != BOUND:
            place.report(GENERATIONS, "the stream begins with CacheContextBound", topic)
            return None
        place.tenant, place.owner = state.tenant, state.owner
        self._whose = (state.tenant, state.owner, state.surface)
        self._next(state, 1)
        self._bound = (state.context_digest, state.configuration_digest)
        return stream_key("cache_context", *self._whose)

    def take(self, topic: str, state: State) -> None:
        """Take in a later event."""
        place = self._place
        if (state.tenant, state.owner, state.surface) != self._whose:
            place.report(GENERATIONS, "an event of this surface", "another's")
        if topic == PREPARED:
            self._prepare(state)
        elif topic == REPLACED:
            bound = (state.context_digest, state.configuration_digest)
            if bound == self._bound:
                place.report(GENERATIONS, "another context or configuration", "the current one")
            self._next(state, self._generation + 1)
            self._bound = bound
        elif topic == WITHDRAWN:
            if self._bound is None:
                place.report(GENERATIONS, "a bound context", "none")
            self._next(state, self._generation + 1)
            self._bound = None
        else:
            place.report(GENERATIONS, "an event of a cache context", topic)

    def finish(self) -> None:
        """The stream has ended."""

    def _next(self, state: State, generation: int) -> None:
        if state.generation != generation:
            self._place.report(GENERATIONS, f"generation {generation}", str(state.generation))
        self._generation = state.generation
        self._began = self._place.position

    def _prepare(self, state: State) -> None:
        place = self._place
        if self._bound is None:
            place.report(SAME_GENERATION, "a bound context", "none")
        elif state.generation != self._generation:
            place.report(SAME_GENERATION, f"generation {self._generation}", str(state.generation))
        if not 1 <= state.vectors <= QUERIES_MAX:
            place.report(SAME_GENERATION, f"1 to {QUERIES_MAX} vectors", str(state.vectors))
        configuration = "" if self._bound is None else self._bound[1]
        tenant, owner, _ = self._whose
        self._facts.preparations.want(
            (tenant, owner, state.reservation_id, configuration),
            self._began,
            place.position,
        )
