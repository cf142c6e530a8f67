"""Use case: prepare query vectors, explicitly and at a cost (seed BSQ; design section 6).

At most four queries, one reservation, one request, ten seconds.  Every query gets exactly one
outcome, and no outcome holds any of its text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import anyio

from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.paid_request import Order, Paid, PaidRequest
from remembrancer.application.ports import Clock
from remembrancer.application.ports.admission_source import AdmissionSource
from remembrancer.application.ports.guards import Guards, guarded
from remembrancer.application.ports.worker import Worker
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.domain.bounds import DEADLINE_S, QUERIES_MAX
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.eligibility import (
    QueryOutcome,
    QueryReason,
    QueryStatus,
    canonical_query_text,
    effective_sensitivity,
    ineligibility,
    may_leave,
)
from remembrancer.domain.errors import (
    InvalidInputError,
    NotAdmittedError,
    RemembrancerError,
)
from remembrancer.domain.prepared_vectors import PreparedVectors
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.release import AdmittedConfiguration, require_admitted
from remembrancer.domain.reservation import ReservationKind, UnknownReason
from remembrancer.domain.spend_errors import StaleGenerationError


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationReport:
    """What became of each query, in order, and what it cost."""

    outcomes: tuple[QueryOutcome, ...]
    reservation_id: UUID | None = None
    """Of the one request, if one was reserved."""
    charged_quanta: int = 0
    """What counts against the owner's day because of this call."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """One call on its way."""

    queries: tuple[RecallQuery, ...] = field(repr=False)
    context: RecallContext
    surface: Surface
    began_s: float
    outcomes: dict[int, QueryOutcome] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict, repr=False)
    """Of the queries that go on, by their place in the call."""

    def finish(self, places: Sequence[int], status: QueryStatus, reason: str) -> None:
        for place in places:
            self.outcomes[place] = QueryOutcome(status=status, reason=reason)

    def report(self, paid: Paid | None = None) -> PreparationReport:
        return PreparationReport(
            outcomes=tuple(self.outcomes[place] for place in range(len(self.queries))),
            reservation_id=None if paid is None else paid.reservation_id,
            charged_quanta=0 if paid is None else paid.charged_quanta,
        )


class PrepareQueries:
    """Guards, reserves, asks once, settles, and only then fills the cache."""

    def __init__(
        self,
        *,
        admission: AdmissionSource,
        contexts: CacheContexts,
        prepared: PreparedQueries,
        guards: Guards,
        destination: str,
        paid_request: PaidRequest,
        clock: Clock,
        worker: Worker,
    ) -> None:
        self._admission = admission
        self._contexts = contexts
        self._prepared = prepared
        self._guards = guards
        self._destination = destination
        self._paid_request = paid_request
        self._clock = clock
        self._worker = worker

    async def __call__(
        self, queries: Sequence[RecallQuery], context: RecallContext, *, tenant: str, owner: str
    ) -> PreparationReport:
        """Prepare ``queries`` of (tenant, owner); what a provider does is in the report.

        Raises:
            InvalidInputError: more than four queries; nothing was done.
        """
        if len(queries) > QUERIES_MAX:
            raise InvalidInputError(field="queries", problem=f"must be at most {QUERIES_MAX}")
        run = _Run(
            queries=tuple(queries),
            context=context,
            surface=Surface(tenant=tenant, owner=owner, surface=context.surface),
            began_s=self._clock.monotonic(),
        )
        admitted, refusal = await self._admitted()
        if admitted is None:
            run.finish(range(len(run.queries)), QueryStatus.REFUSED, refusal)
            return run.report()
        await self._judge(run)
        if len(run.outcomes) == len(run.queries):
            return run.report()
        return await self._prepare(run, admitted.configuration)

    async def _admitted(self) -> tuple[AdmittedConfiguration | None, QueryReason]:
        try:
            with anyio.fail_after(DEADLINE_S):
                admitted = require_admitted(await self._worker.run(self._admission.admitted))
        except NotAdmittedError:
            return None, QueryReason.NOT_ADMITTED
        except Exception:  # noqa: BLE001  # an admission that can't be read is none
            return None, QueryReason.NOT_ADMITTED
        if self._prepared.is_withdrawn:
            return None, QueryReason.NOT_ADMITTED
        return admitted, QueryReason.PREPARED

    async def _judge(self, run: _Run) -> None:
        """Give outcomes by the rules that need no context: who, what kind, what text."""
        for place, query in enumerate(run.queries):
            tenant, owner = run.surface.tenant, run.surface.owner
            outcome = ineligibility(query, tenant=tenant, owner=owner)
            if outcome is None:
                reason = await self._worker.run(partial(self._withheld, query, run.context))
                if reason is not None:
                    outcome = QueryOutcome(status=QueryStatus.WITHHELD, reason=reason)
            if outcome is not None:
                run.outcomes[place] = outcome

    def _withheld(self, query: RecallQuery, context: RecallContext) -> str | None:
        """Return why the query's text may not leave, or None; asks about every part of it."""
        floor = context.sensitivity_floor
        for text in (query.question, *query.subjects):
            verdict = guarded(self._guards, text, declared=floor, destination=self._destination)
            if verdict.reason is not None:
                return verdict.reason
            if not may_leave(effective_sensitivity(floor, verdict.sensitivity)):
                return QueryReason.CLASSIFICATION
        return None

    async def _prepare(self, run: _Run, configuration: Configuration) -> PreparationReport:
        left = [place for place in range(len(run.queries)) if place not in run.outcomes]
        try:
            with anyio.fail_after(self._left_s(run)):
                generation = await self._worker.run(lambda: self._bind(run, configuration))
        except TimeoutError:
            run.finish(left, QueryStatus.REFUSED, UnknownReason.TIMEOUT)
            return run.report()
        except RemembrancerError:
            run.finish(left, QueryStatus.REFUSED, QueryReason.STORE_UNAVAILABLE)
            return run.report()
        cache = self._prepared.bound(run.surface, run.context, generation)
        self._skip_known(run, left, cache)
        if not run.keys:
            return run.report()
        places = tuple(run.keys)
        paid = await self._paid_request(self._order(run, configuration, generation))
        if paid.status is not QueryStatus.PREPARED:
            run.finish(places, paid.status, paid.reason)
            return run.report(paid)
        usable = await self._worker.run(
            lambda: self._may_enter(run, configuration, generation, paid)
        )
        entered = usable and cache.insert(
            zip(run.keys.values(), paid.vectors, strict=True),
            generation=generation,
            now_s=self._clock.monotonic(),
        )
        if entered:
            run.finish(places, QueryStatus.PREPARED, QueryReason.PREPARED)
        else:
            run.finish(places, QueryStatus.DROPPED, QueryReason.CONTEXT_CHANGED)
        return run.report(paid)

    def _bind(self, run: _Run, configuration: Configuration) -> int:
        return self._contexts.bind(
            run.surface,
            context_digest=self._prepared.keys.context(run.context),
            configuration_digest=configuration.digest,
        )

    def _skip_known(self, run: _Run, left: Sequence[int], cache: PreparedVectors) -> None:
        taken: set[bytes] = set()
        for place in left:
            key = self._prepared.keys.key(run.queries[place], run.context)
            if cache.lookup(key, now_s=self._clock.monotonic()) is not None:
                run.finish([place], QueryStatus.CACHED, QueryReason.CACHED)
            elif key in taken:
                run.finish([place], QueryStatus.DUPLICATE, QueryReason.DUPLICATE)
            else:
                taken.add(key)
                run.keys[place] = key

    def _order(self, run: _Run, configuration: Configuration, generation: int) -> Order:
        return Order(
            tenant=run.surface.tenant,
            owner=run.surface.owner,
            kind=ReservationKind.QUERY,
            texts=tuple(canonical_query_text(run.queries[place]) for place in run.keys),
            request_digest=self._prepared.keys.request(tuple(run.keys.values())),
            configuration=configuration,
            began_s=run.began_s,
            obstacle=lambda: self._obstacle(run.surface, configuration, generation),
        )

    def _obstacle(
        self, surface: Surface, configuration: Configuration, generation: int
    ) -> QueryReason | None:
        """Say why the request may not be out: admission or context aren't what they were."""
        try:
            admitted = require_admitted(self._admission.admitted())
        except NotAdmittedError:
            return QueryReason.NOT_ADMITTED
        if self._prepared.is_withdrawn or admitted.digest != configuration.digest:
            return QueryReason.NOT_ADMITTED
        if self._contexts.generation(surface) != generation:
            return QueryReason.CONTEXT_CHANGED
        return None

    def _may_enter(
        self, run: _Run, configuration: Configuration, generation: int, paid: Paid
    ) -> bool:
        """Look at admission and context again, and record that the vectors may be used."""
        if paid.reservation_id is None:
            return False
        try:
            if self._obstacle(run.surface, configuration, generation) is not None:
                return False
            self._contexts.record_prepared(
                run.surface,
                generation,
                reservation_id=paid.reservation_id,
                vectors=len(paid.vectors),
            )
        except (NotAdmittedError, StaleGenerationError):
            return False
        except RemembrancerError:
            # Paid for, but not on record: the log must show each use of a vector.
            return False
        return True

    def _left_s(self, run: _Run) -> float:
        return max(0.0, DEADLINE_S - (self._clock.monotonic() - run.began_s))
