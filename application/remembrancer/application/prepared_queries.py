"""The prepared query vectors of this process, and the lookup that uses them (design 4.3).

A lookup does no I/O, starts no task and reserves nothing.  It uses a vector only for exactly the
query and context that it was prepared for, under the admitted configuration; seeing another
context, it empties the surface's cache.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from typing_extensions import override

from remembrancer.application.cache_contexts import Surface
from remembrancer.application.ports import Clock, SemanticQueryLookup
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.prepared_vectors import PreparedVectors
from remembrancer.domain.query_key import QueryKeys
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.vector import Vector

SURFACES_MAX = 1_024
"""Surfaces with a cache in this process; the one bound longest ago goes first."""


@dataclass(slots=True, eq=False)
class SurfaceCache:
    """One surface's vectors, and the context that they were prepared in."""

    context: RecallContext | None
    """None once another context was seen: what is still on its way can't get in."""
    vectors: PreparedVectors = field(default_factory=PreparedVectors)


class PreparedQueries(SemanticQueryLookup):
    """The caches of all surfaces under one configuration.  Safe with threads; no lookup waits."""

    def __init__(self, *, clock: Clock, secret: bytes, configuration: Configuration) -> None:
        self._clock = clock
        self._space = configuration.embedding_tuple
        self._caches: OrderedDict[tuple[str, str, str], SurfaceCache] = OrderedDict()
        self._withdrawn = False
        self._lock = threading.Lock()
        self.configuration_digest = configuration.digest
        """Of the only configuration that vectors may be prepared under."""
        self.keys = QueryKeys(secret=secret, conditions=configuration.key_conditions)

    @property
    @override
    def embedding_tuple(self) -> EmbeddingTuple:
        return self._space

    @override
    def lookup(self, query: RecallQuery, context: RecallContext) -> Vector | None:
        cache = self._caches.get((query.tenant, query.owner, context.surface))
        if cache is None or self._withdrawn:
            return None
        known = cache.context
        if known is None or (known is not context and known != context):
            cache.context = None
            cache.vectors.clear()
            return None
        # The cache's own object: the keys know it again without comparing all of it.
        return cache.vectors.lookup(self.keys.key(query, known), now_s=self._clock.monotonic())

    def bound(self, surface: Surface, context: RecallContext, generation: int) -> PreparedVectors:
        """Return the surface's cache, begun anew if context or generation is another."""
        place = (surface.tenant, surface.owner, surface.surface)
        with self._lock:
            cache = self._caches.get(place)
            if cache is None or cache.context != context:
                if cache is not None:
                    cache.vectors.clear()  # Somebody may be about to fill it.
                cache = self._caches[place] = SurfaceCache(context)
            self._caches.move_to_end(place)
            while len(self._caches) > SURFACES_MAX:
                self._caches.popitem(last=False)[1].vectors.clear()
            if not self._withdrawn:
                cache.vectors.begin(generation)
            return cache.vectors

    def withdraw(self) -> list[Surface]:
        """Empty every cache for good; return the surfaces that had one."""
        with self._lock:
            self._withdrawn = True
            for cache in self._caches.values():
                cache.vectors.clear()
            surfaces = [Surface(tenant=a, owner=b, surface=c) for a, b, c in self._caches]
            self._caches.clear()
        return surfaces

    @property
    def is_withdrawn(self) -> bool:
        """True once the configuration may not be used any more."""
        return self._withdrawn
