"""The cache contexts of the surfaces: which generation is current, in the log."""

import threading
from dataclasses import dataclass
from uuid import UUID

from remembrancer.application.load import append, load
from remembrancer.application.ports import Clock, EventLog, Transactions
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.errors import StaleStreamError

_ATTEMPTS = 16
_KEPT_MAX = 1_024
"""Contexts kept in this process, so that a stream is read only from where it was left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Whose cache, and where the question comes from."""

    tenant: str
    owner: str
    surface: str

    @property
    def stream_id(self) -> UUID:
        """The stream of the surface's context."""
        return CacheContext.create_id(self.tenant, self.owner, self.surface)


class CacheContexts:
    """Binds surfaces to contexts; every change is an event.  Calls block.

    Safe with threads: an aggregate is in one thread's hands at a time, and what is kept is only
    what the log says.
    """

    def __init__(self, *, log: EventLog, transactions: Transactions, clock: Clock) -> None:
        self._log = log
        self._transactions = transactions
        self._clock = clock
        self._kept: dict[UUID, CacheContext] = {}
        self._lock = threading.Lock()

    def bind(self, surface: Surface, *, context_digest: str, configuration_digest: str) -> int:
        """Return the generation of this context, begun now unless it is the current one."""
        for _ in range(_ATTEMPTS):
            known = self._taken(surface)
            if known is None:
                known = CacheContext.bind(
                    surface.tenant,
                    surface.owner,
                    surface.surface,
                    context_digest=context_digest,
                    configuration_digest=configuration_digest,
                    at=self._clock.now(),
                )
            else:
                known.replace(
                    context_digest=context_digest,
                    configuration_digest=configuration_digest,
                    at=max(self._clock.now(), known.modified_on),
                )
            if self._committed(surface, known):
                return known.generation
        raise StaleStreamError(surface.stream_id)

    def generation(self, surface: Surface) -> int:
        """Return the current generation; 0 where none was ever bound or it was withdrawn."""
        known = self._taken(surface)
        if known is None:
            return 0
        generation = 0 if known.context_digest is None else known.generation
        self._keep(known)
        return generation

    def record_prepared(
        self, surface: Surface, generation: int, *, reservation_id: UUID, vectors: int
    ) -> None:
        """Record that vectors may enter the cache of ``generation``.

        Raises:
            StaleGenerationError: the context changed meanwhile; drop the vectors.
        """
        for _ in range(_ATTEMPTS):
            known = self._taken(surface)
            if known is None:
                break
            known.record_prepared(
                generation,
                reservation_id=reservation_id,
                vectors=vectors,
                at=max(self._clock.now(), known.modified_on),
            )
            if self._committed(surface, known):
                return
        raise StaleStreamError(surface.stream_id)

    def withdraw(self, surface: Surface, *, reason: str) -> None:
        """Leave the surface without a context; ``reason`` is a code."""
        for _ in range(_ATTEMPTS):
            known = self._taken(surface)
            if known is None:
                return
            known.withdraw(reason=reason, at=max(self._clock.now(), known.modified_on))
            if self._committed(surface, known):
                return
        raise StaleStreamError(surface.stream_id)

    def _taken(self, surface: Surface) -> CacheContext | None:
        """Return the context as the log has it, for the caller alone."""
        stream = surface.stream_id
        with self._lock:
            kept = self._kept.pop(stream, None)
        with self._transactions.acting_for(surface.tenant, surface.owner):
            if kept is None:
                return load(self._log, CacheContext, stream)
            for event in self._log.read(stream, after_version=kept.version):
                event.mutate(kept)
            return kept

    def _committed(self, surface: Surface, known: CacheContext) -> bool:
        try:
            with self._transactions.acting_for(surface.tenant, surface.owner):
                append(self._log, known)
        except StaleStreamError:
            return False
        self._keep(known)
        return True

    def _keep(self, known: CacheContext) -> None:
        """Keep what was committed, and give it out of hand."""
        with self._lock:
            self._kept[known.id] = known
            while len(self._kept) > _KEPT_MAX:
                self._kept.pop(next(iter(self._kept)))
