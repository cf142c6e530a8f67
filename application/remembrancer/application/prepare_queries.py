"""Use case: prepare query vectors, explicitly and at a cost (seed BSQ; design section 6).

At most four queries, one reservation, one request, ten seconds.  Every query gets exactly one
outcome, and no outcome holds any of its text.
"""

from collections.abc import Iterable, Sequence
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
from remembrancer.domain.errors import InvalidInputError, NotAdmittedError
from remembrancer.domain.parsed import parsed_name
from remembrancer.domain.prepared_vectors import PreparedVectors
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.release import require_admitted
from remembrancer.domain.reservation import ReservationKind, UnknownReason
from remembrancer.domain.spend_errors import StaleGenerationError

_NOTHING_SENT = QueryOutcome(status=QueryStatus.REFUSED, reason=UnknownReason.FAILURE)
_TOO_LATE = QueryOutcome(status=QueryStatus.DROPPED, reason=UnknownReason.FAILURE)


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
    began_s: float = 0.0
    last_resort: QueryOutcome = _NOTHING_SENT
    """The outcome of queries that have none when something fails that nobody expects to."""
    paid: Paid | None = None
    outcomes: dict[int, QueryOutcome] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict, repr=False)
    """Of the queries that go on, by their place in the call."""

    @property
    def open(self) -> list[int]:
        """Places of the queries that have no outcome yet."""
        return [place for place in range(len(self.queries)) if place not in self.outcomes]

    def finish(self, places: Iterable[int], status: QueryStatus, reason: str) -> None:
        for place in places:
            self.outcomes[place] = QueryOutcome(status=status, reason=reason)

    def report(self) -> PreparationReport:
        return PreparationReport(
            outcomes=tuple(self.outcomes[place] for place in range(len(self.queries))),
            reservation_id=None if self.paid is None else self.paid.reservation_id,
            charged_quanta=0 if self.paid is None else self.paid.charged_quanta,
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
            InvalidInputError: more than four queries, or a name breaks its bounds; nothing was
                done.
        """
        tenant = parsed_name(tenant, field="tenant")
        owner = parsed_name(owner, field="owner")
        if len(queries) > QUERIES_MAX:
            raise InvalidInputError(field="queries", problem=f"must be at most {QUERIES_MAX}")
        run = _Run(
            queries=tuple(queries),
            context=context,
            surface=Surface(tenant=tenant, owner=owner, surface=context.surface),
        )
        try:
            await self._carry_out(run)
        except Exception:  # noqa: BLE001  # a port that fails is no reason to fail the host
            run.finish(run.open, run.last_resort.status, run.last_resort.reason)
        return run.report()

    async def _carry_out(self, run: _Run) -> None:
        """Give every query an outcome."""
        run.began_s = self._clock.monotonic()
        configuration = await self._admitted()
        if configuration is None:
            run.finish(run.open, QueryStatus.REFUSED, QueryReason.NOT_ADMITTED)
            return
        await self._judge(run)
        if run.open:
            await self._prepare(run, configuration)

    async def _admitted(self) -> Configuration | None:
        try:
            with anyio.fail_after(DEADLINE_S):
                admitted = require_admitted(await self._worker.run(self._admission.admitted))
        except Exception:  # noqa: BLE001  # an admission that can't be read is none
            return None
        # Under another configuration, these keys would stand for another model's vectors.
        if self._prepared.is_withdrawn or admitted.digest != self._prepared.configuration_digest:
            return None
        return admitted.configuration

    async def _judge(self, run: _Run) -> None:
        """Give outcomes by the rules that need no context: who, what kind, what text."""
        for place, query in enumerate(run.queries):
            outcome = ineligibility(query, tenant=run.surface.tenant, owner=run.surface.owner)
            if outcome is not None:
                run.outcomes[place] = outcome
                continue
            try:
                with anyio.fail_after(self._left_s(run)):
                    reason = await self._worker.run(partial(self._withheld, query, run.context))
            except TimeoutError:
                run.finish([place], QueryStatus.REFUSED, UnknownReason.TIMEOUT)
                continue
            except Exception:  # noqa: BLE001  # what could not be checked stays here
                reason = QueryReason.GUARD_FAILED
            if reason is not None:
                run.finish([place], QueryStatus.WITHHELD, reason)

    def _withheld(self, query: RecallQuery, context: RecallContext) -> str | None:
        """Return why the query's text may not leave, or None.

        Asks about every part of it, and about the parts put together: they leave in one request,
        and what is split over them arrives whole.
        """
        floor = context.sensitivity_floor
        parts = (query.question, *query.subjects)
        together = (" ".join(parts), "".join(parts)) if query.subjects else ()
        for text in (*parts, *together):
            verdict = guarded(self._guards, text, declared=floor, destination=self._destination)
            if verdict.reason is not None:
                return verdict.reason
            if not may_leave(effective_sensitivity(floor, verdict.sensitivity)):
                return QueryReason.CLASSIFICATION
        return None

    async def _prepare(self, run: _Run, configuration: Configuration) -> None:
        try:
            with anyio.fail_after(self._left_s(run)):
                generation = await self._worker.run(lambda: self._bind(run, configuration))
        except TimeoutError:
            run.finish(run.open, QueryStatus.REFUSED, UnknownReason.TIMEOUT)
            return
        except Exception:  # noqa: BLE001  # nothing was reserved yet
            run.finish(run.open, QueryStatus.REFUSED, QueryReason.STORE_UNAVAILABLE)
            return
        cache = self._prepared.bound(run.surface, run.context, generation)
        self._skip_known(run, cache)
        if not run.open:
            return
        order = self._order(run, configuration, generation)
        run.paid = paid = await self._paid_request(order)
        if paid.status is not QueryStatus.PREPARED:
            run.finish(run.open, paid.status, paid.reason)
            return
        run.last_resort = _TOO_LATE
        reason = await self._kept_out(run, order, generation)
        if reason is None and not cache.insert(
            zip(run.keys.values(), paid.vectors, strict=True),
            generation=generation,
            now_s=self._clock.monotonic(),
        ):
            reason = QueryReason.CONTEXT_CHANGED
        if reason is None:
            run.finish(run.open, QueryStatus.PREPARED, QueryReason.PREPARED)
        else:
            run.finish(run.open, QueryStatus.DROPPED, reason)

    def _bind(self, run: _Run, configuration: Configuration) -> int:
        return self._contexts.bind(
            run.surface,
            context_digest=self._prepared.keys.context(run.context),
            configuration_digest=configuration.digest,
        )

    def _skip_known(self, run: _Run, cache: PreparedVectors) -> None:
        taken: set[bytes] = set()
        for place in run.open:
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

    async def _kept_out(self, run: _Run, order: Order, generation: int) -> str | None:
        """Say why the vectors may not enter the cache, or put on record that they may."""
        try:
            with anyio.fail_after(self._left_s(run)):
                return await self._worker.run(lambda: self._recorded(run, order, generation))
        except TimeoutError:
            return UnknownReason.TIMEOUT
        except StaleGenerationError:
            return QueryReason.CONTEXT_CHANGED
        except Exception:  # noqa: BLE001  # the log must show each use of a vector
            return QueryReason.STORE_UNAVAILABLE

    def _recorded(self, run: _Run, order: Order, generation: int) -> QueryReason | None:
        obstacle = order.obstacle()
        if obstacle is None and run.paid is not None and run.paid.reservation_id is not None:
            self._contexts.record_prepared(
                run.surface,
                generation,
                reservation_id=run.paid.reservation_id,
                vectors=len(run.paid.vectors),
            )
        return obstacle

    def _left_s(self, run: _Run) -> float:
        return max(0.0, DEADLINE_S - (self._clock.monotonic() - run.began_s))
