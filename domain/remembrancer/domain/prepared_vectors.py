"""The cache of prepared query vectors: keys and vectors, nothing else (design 4.3).

At most 128 vectors, five minutes each, least recently used goes first; none outlives its
generation.  Nothing here locks or waits.  Each generation has a dictionary of its own, and a
vector that was prepared for an older one goes into that one's, which nobody reads any more: a
change of context can't be overtaken by an insertion in another thread.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from remembrancer.domain.bounds import CACHE_LIFETIME_S, CACHE_VECTORS_MAX
from remembrancer.domain.vector import Vector

NO_GENERATION = 0
"""Before the first context and after a withdrawal; a context's generations begin at 1."""


@dataclass(frozen=True, slots=True)
class _Generation:
    number: int
    vectors: "OrderedDict[bytes, tuple[float, Vector]]" = field(default_factory=OrderedDict)
    """By key: the monotonic second at which the vector dies, and the vector."""


class PreparedVectors:
    """What one process has prepared for one cache context.

    Times are seconds on a monotonic clock.  Safe with threads.
    """

    def __init__(self) -> None:
        self._current = _Generation(NO_GENERATION)

    @property
    def generation(self) -> int:
        """Number of the generation whose vectors are found."""
        return self._current.number

    def __len__(self) -> int:
        return len(self._current.vectors)

    def __repr__(self) -> str:
        return f"PreparedVectors(generation={self.generation}, vectors={len(self)})"

    def begin(self, generation: int) -> None:
        """Empty the cache and take vectors of ``generation`` only.  The current one goes on."""
        if generation != self._current.number:
            self._current = _Generation(generation)

    def clear(self) -> None:
        """Empty the cache and take no vectors until a generation begins."""
        self._current = _Generation(NO_GENERATION)

    def lookup(self, key: bytes, *, now_s: float) -> Vector | None:
        """Return the vector prepared under ``key``, if it is alive; it counts as used."""
        vectors = self._current.vectors
        found = vectors.get(key)
        if found is None:
            return None
        if found[0] <= now_s:
            vectors.pop(key, None)
            return None
        try:  # Not ``suppress``: this is the hot path.
            vectors.move_to_end(key)
        except KeyError:
            return found[1]  # Pushed out by another thread just now; alive when asked for.
        return found[1]

    def insert(
        self, prepared: Iterable[tuple[bytes, Vector]], *, generation: int, now_s: float
    ) -> bool:
        """Put vectors of ``generation`` in; if that isn't the current one, return False."""
        current = self._current
        if generation != current.number or generation == NO_GENERATION:
            return False
        for key, vector in prepared:
            current.vectors.pop(key, None)  # So that it comes in again as the last used.
            current.vectors[key] = (now_s + CACHE_LIFETIME_S, vector)
        while len(current.vectors) > CACHE_VECTORS_MAX:
            current.vectors.popitem(last=False)
        return True
