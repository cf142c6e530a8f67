"""In which circumstances prepared vectors of one surface may be used (design 4.3).

A context is what the caller states, together with the admitted configuration.  While it stays the
same, a generation lasts; another context, or a withdrawn admission, begins the next one, and what
was prepared or is under way in an older generation is lost to it.  No vector, key or question is
in these events.  Topics and field names are stored format: never rename one.
"""

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from eventsourcing.domain import Aggregate, event

from remembrancer.domain.identity import stream_id
from remembrancer.domain.money import as_utc
from remembrancer.domain.spend_errors import StaleGenerationError


class CacheContext(Aggregate):
    """The generations of one (tenant, owner, surface)."""

    TOPIC = "remembrancer.cache_context"

    # -- Facts, in the order they may first appear -------------------------

    class Event(Aggregate.Event):
        """Base of the facts below; never stored itself."""

        TOPIC = "remembrancer.cache_context.event"
        tenant: str
        owner: str
        surface: str
        generation: int

    class CacheContextBound(Event, Aggregate.Created):
        """The surface's first context: generation 1 began."""

        TOPIC = "remembrancer.cache_context.cache_context_bound"
        context_digest: str
        configuration_digest: str

    class QueryVectorsPrepared(Event):
        """A settled request brought vectors for this generation."""

        TOPIC = "remembrancer.cache_context.query_vectors_prepared"
        reservation_id: UUID
        vectors: int

    class CacheContextReplaced(Event):
        """Another context took over, or one came back after a withdrawal."""

        TOPIC = "remembrancer.cache_context.cache_context_replaced"
        context_digest: str
        configuration_digest: str

    class AdmissionWithdrawn(Event):
        """The configuration may send nothing any more; no vector of it may be used."""

        TOPIC = "remembrancer.cache_context.admission_withdrawn"
        reason: str

    # -- Questions ---------------------------------------------------------

    @staticmethod
    def create_id(tenant: str, owner: str, surface: str) -> UUID:
        """Return the stream of a surface's context."""
        return stream_id("cache_context", tenant, owner, surface)

    def is_bound_to(self, context_digest: str, configuration_digest: str) -> bool:
        """Say whether the current generation is of this context and configuration."""
        return self.context_digest == context_digest and (
            self.configuration_digest == configuration_digest
        )

    def require_current(self, generation: int) -> None:
        """Let work of the current generation pass.

        Raises:
            StaleGenerationError: it began in another one, or the admission was withdrawn.
        """
        if generation != self.generation or self.context_digest is None:
            raise StaleGenerationError(begun=generation, current=self.generation)

    # -- Decisions: check every rule, then record at most one fact ---------

    @classmethod
    def bind(
        cls,
        tenant: str,
        owner: str,
        surface: str,
        *,
        context_digest: str,
        configuration_digest: str,
        at: datetime,
    ) -> Self:
        """Begin a surface's first generation.

        ``context_digest`` is keyed (:meth:`remembrancer.domain.query_key.QueryKeys.context`): what
        the caller states may be short enough to guess.
        """
        return cls(
            tenant=tenant,
            owner=owner,
            surface=surface,
            generation=1,
            context_digest=context_digest,
            configuration_digest=configuration_digest,
            timestamp=as_utc(at),
        )

    def replace(self, *, context_digest: str, configuration_digest: str, at: datetime) -> None:
        """Begin a new generation, unless this context and configuration are the current ones."""
        if not self.is_bound_to(context_digest, configuration_digest):
            self._replaced(
                **self._next(),
                context_digest=context_digest,
                configuration_digest=configuration_digest,
                timestamp=as_utc(at),
            )

    def record_prepared(
        self, generation: int, *, reservation_id: UUID, vectors: int, at: datetime
    ) -> None:
        """Record that vectors of a settled request may enter the cache of ``generation``.

        Raises:
            StaleGenerationError: the context changed meanwhile; drop the vectors.
        """
        self.require_current(generation)
        self._prepared(
            tenant=self.tenant,
            owner=self.owner,
            surface=self.surface,
            generation=generation,
            reservation_id=reservation_id,
            vectors=vectors,
            timestamp=as_utc(at),
        )

    def withdraw(self, *, reason: str, at: datetime) -> None:
        """End the generation and leave none bound.  Withdrawing again records nothing.

        ``reason`` is a code such as ``evidence_revoked``.
        """
        if self.context_digest is not None:
            self._withdrawn(**self._next(), reason=reason, timestamp=as_utc(at))

    def _next(self) -> dict[str, Any]:
        return {
            "tenant": self.tenant,
            "owner": self.owner,
            "surface": self.surface,
            "generation": self.generation + 1,
        }

    # -- Evolution: no rules here, replay must never refuse ----------------

    @event(CacheContextBound)
    def __init__(
        self,
        tenant: str,
        owner: str,
        surface: str,
        generation: int,
        context_digest: str,
        configuration_digest: str,
        timestamp: datetime,
    ) -> None:
        self.tenant = tenant
        self.owner = owner
        self.surface = surface
        self.generation = generation
        self.context_digest: str | None = context_digest
        """Of what the current generation is bound to; None after a withdrawal."""
        self.configuration_digest: str | None = configuration_digest

    @event(QueryVectorsPrepared)
    def _prepared(
        self,
        tenant: str,
        owner: str,
        surface: str,
        generation: int,
        reservation_id: UUID,
        vectors: int,
        timestamp: datetime,
    ) -> None:
        """Change nothing: vectors live in the processes that prepared them."""

    @event(CacheContextReplaced)
    def _replaced(
        self,
        tenant: str,
        owner: str,
        surface: str,
        generation: int,
        context_digest: str,
        configuration_digest: str,
        timestamp: datetime,
    ) -> None:
        self.generation = generation
        self.context_digest = context_digest
        self.configuration_digest = configuration_digest

    @event(AdmissionWithdrawn)
    def _withdrawn(
        self,
        tenant: str,
        owner: str,
        surface: str,
        generation: int,
        reason: str,
        timestamp: datetime,
    ) -> None:
        self.generation = generation
        self.context_digest = None
        self.configuration_digest = None
