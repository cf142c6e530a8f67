"""Preparations in a simulated world: many at once, each with its own trouble."""

import random
from typing import TYPE_CHECKING

import anyio
from tests.simulation import vocabulary
from tests.simulation.host import Host
from tests.simulation.provider import expected_reason
from tests.simulation.trouble import CURRENT, Fault, KilledError, Undertaking

from remembrancer.application.cache_contexts import Surface
from remembrancer.application.prepare_queries import PreparationReport
from remembrancer.domain import Sensitivity
from remembrancer.domain.eligibility import QueryOutcome, canonical_query_text
from remembrancer.domain.recall import RecallContext, RecallKind, RecallQuery

if TYPE_CHECKING:
    from tests.simulation.world import World

IN_TIME_S = 13.5
"""Ten seconds, three of cleaning up, and something for what happens at the same moment."""
NEVER_SENT = {"ineligible", "withheld"}


class Preparing:
    """Prepares, and looks at each report."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def prepare(
        self, host: Host, chance: random.Random, name: str, *, troubled: bool
    ) -> None:
        """Let a host prepare some queries."""
        tenant, owner = chance.choice(vocabulary.OWNERS)
        queries = tuple(
            vocabulary.query_by(chance, tenant, owner)
            for _ in range(chance.choice((1, 1, 2, 3, 4)))
        )
        if chance.random() < 0.2:
            queries = (*queries[:3], queries[0])
        context = vocabulary.context_by(chance, chance.choice(vocabulary.SURFACES))
        undertaking = Undertaking(name=f"{name} prepare", host=host, chance=chance)
        if troubled:
            undertaking.draw_faults()
            surface = Surface(tenant=tenant, owner=owner, surface=context.surface)
            undertaking.meanwhile = lambda: self._bind_elsewhere(host, surface)
        await self.carry_out(undertaking, tenant, owner, queries, context)

    def _bind_elsewhere(self, host: Host, surface: Surface) -> None:
        """Let another process begin a generation of its own for a surface."""
        others = [one for one in self._world.hosts if one is not host and not one.dead]
        if others:
            self._world.disturb()
            others[0].preparation.contexts.bind(
                surface, context_digest="0" * 64, configuration_digest=others[0].admitted.digest
            )

    async def carry_out(
        self,
        undertaking: Undertaking,
        tenant: str,
        owner: str,
        queries: tuple[RecallQuery, ...],
        context: RecallContext,
    ) -> None:
        """Prepare, whatever comes, and look at the report."""
        world, host = self._world, undertaking.host
        undertaking.queries, undertaking.context = queries, context
        undertaking.touched = world.store_is_troubled or host.is_frozen
        undertaking.began_s = world.time.elapsed()
        undertaking.withdrawals = world.withdrawals
        before = [host.is_live(query, context) for query in queries]
        world.under_way.append(undertaking)
        world.undertaken.append(undertaking)
        world.asked += [(query, context) for query in queries]
        token = CURRENT.set(undertaking)
        try:
            with anyio.CancelScope() as scope:
                undertaking.cancel = scope.cancel
                undertaking.report = await host.preparation.preparer(
                    queries, context, tenant=tenant, owner=owner
                )
        except KilledError:
            host.kill()
        except BaseExceptionGroup as group:
            if group.split(KilledError)[1] is not None:
                raise
            host.kill()
        except Exception as error:  # noqa: BLE001  # a preparation raises nothing
            world.complain("no_strange_errors", f"{undertaking.name}: {error!r}")
        finally:
            CURRENT.reset(token)
            world.under_way.remove(undertaking)
        if undertaking.report is not None and not host.dead:
            token = CURRENT.set(None)
            self._look_at(undertaking, undertaking.report, owner=(tenant, owner), before=before)
            CURRENT.reset(token)

    def _look_at(
        self,
        undertaking: Undertaking,
        report: PreparationReport,
        *,
        owner: tuple[str, str],
        before: list[bool],
    ) -> None:
        world = self._world
        outcomes = " ".join(f"{one.status}:{one.reason}" for one in report.outcomes)
        world.note(f"  {undertaking.name}: {outcomes} for {report.charged_quanta}")
        for one in report.outcomes:
            world.seen[f"{one.status}:{one.reason}"] += 1
        took_s = world.time.elapsed() - undertaking.began_s
        stopped = {Fault.SUSPEND, Fault.SUSPEND_AFTER, Fault.FREEZE} & undertaking.suffered.keys()
        if took_s > IN_TIME_S and not stopped and not undertaking.touched:
            world.complain("in_time", f"{undertaking.name} took {took_s} s")
        self._look_at_outcomes(undertaking, report, owner)
        self._look_at_charges(undertaking, report)
        if undertaking.undisturbed:
            self._look_at_reasons(undertaking, report)
        for query, one, was in zip(undertaking.queries, report.outcomes, before, strict=True):
            host, context = undertaking.host, undertaking.context
            assert context is not None
            if one.status == "cached" and not was and undertaking.undisturbed:
                world.complain("cached_was_prepared", f"{undertaking.name}: {query!r}")
            if host.is_live(query, context) and world.admitted == host.admitted:
                found = host.lookup.lookup(query, context)
                if found is None and not host.lookup.is_withdrawn:
                    world.complain("prepared_is_found", f"{undertaking.name}: {query!r}")

    def _look_at_outcomes(
        self, undertaking: Undertaking, report: PreparationReport, owner: tuple[str, str]
    ) -> None:
        seen: set[RecallQuery] = set()
        context = undertaking.context
        assert context is not None
        why = [why_it_stays(query, context, owner) for query in undertaking.queries]
        may = {
            canonical_query_text(query)
            for query, stays in zip(undertaking.queries, why, strict=True)
            if stays is None
        }
        requests = [one for one in self._world.requests if one.undertaking == undertaking.name]
        sent = {text for one in requests for text in one.texts}
        if len(report.outcomes) != len(undertaking.queries) or len(requests) > 1:
            self._world.complain("one_outcome_each", undertaking.name)
        if not sent <= may:
            self._world.complain("only_what_may_leave", f"{undertaking.name}: {why}")
        for query, one, stays in zip(undertaking.queries, report.outcomes, why, strict=True):
            if stays is not None and stays not in {one.status, one.reason}:
                failed = one.status in {"refused", "withheld"} and not undertaking.undisturbed
                if not failed and one.reason != "not_admitted":
                    self._world.complain("stays", f"{undertaking.name}: {one} not {stays}")
            if stays is None and one.status in NEVER_SENT and undertaking.undisturbed:
                self._world.complain("eligible", f"{undertaking.name}: {one}")
            if one.status == "duplicate" and query not in seen:
                self._world.complain("duplicate_of_one", f"{undertaking.name}: {query!r}")
            seen.add(query)

    def _look_at_charges(self, undertaking: Undertaking, report: PreparationReport) -> None:
        known = self._world.reservations_of(undertaking.reservations)
        charged = sum(one.charged for one in known.values())
        if len(known) > 1 or report.charged_quanta < charged:
            self._world.complain("report_of_charges", f"{undertaking.name}: {known}")
        if undertaking.undisturbed and report.charged_quanta != charged:
            self._world.complain("report_of_charges", f"{undertaking.name}: {known}")
        for one in known.values():
            if one.state == "pending" and undertaking.undisturbed:
                self._world.complain("nothing_left_pending", f"{undertaking.name}: {one}")
        states = {one.state for one in known.values()}
        for outcome in report.outcomes:
            if outcome.status in {"prepared", "dropped"} and states != {"settled"}:
                self._world.complain("prepared_is_settled", f"{undertaking.name}: {states}")
            if outcome.status == "unknown" and "settled" in states and undertaking.undisturbed:
                self._world.complain("unknown_is_unknown", f"{undertaking.name}: {states}")

    def _look_at_reasons(self, undertaking: Undertaking, report: PreparationReport) -> None:
        requests = [one for one in self._world.requests if one.undertaking == undertaking.name]
        for request in requests:
            reason = expected_reason(request.behaviour)
            told = {one.reason for one in report.outcomes if one.status == "unknown"}
            late = {"timeout", "context_changed", "not_admitted"}
            if reason is not None and (not told or told - late - {reason}):
                self._world.complain("says_what_came", f"{undertaking.name}: {told}, {reason}")
        if self._world.key_is_gone and undertaking.began_s > self._world.key_went_s and requests:
            self._world.complain("nothing_without_a_key", undertaking.name)


def why_it_stays(query: RecallQuery, context: RecallContext, owner: tuple[str, str]) -> str | None:
    """Return why a query may not leave, by the rules as the seed has them."""
    if (query.tenant, query.owner) != owner:
        return "other_owner"
    if query.kind in {RecallKind.CORE, RecallKind.HISTORICAL, RecallKind.PEOPLE}:
        return "kind"
    reasons = {
        "empty_question": not query.question,
        "too_long": len(canonical_query_text(query).encode()) > 4_096,
        "withheld": vocabulary.CREDENTIAL in query.question,
        "classification": context.sensitivity_floor > Sensitivity.INTERNAL,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


__all__ = ["Preparing", "QueryOutcome", "why_it_stays"]
