"""Gates ``scope_and_context_identity`` and ``cache_bounds``: whose vector, and for how long."""

from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from remembrancer.application.cache_contexts import Surface
from remembrancer.application.ports import Clock
from remembrancer.application.prepared_queries import PreparedQueries
from remembrancer.composition.gate_checks.counting_provider import CountingProvider
from remembrancer.composition.gate_checks.measured import Measured, require
from remembrancer.composition.gate_checks.rehearsal import (
    TENANT,
    Rehearsal,
    asked,
    context,
    query,
)
from remembrancer.domain.bounds import CACHE_LIFETIME_S, CACHE_VECTORS_MAX
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.gate import Gate
from remembrancer.domain.recall import CandidateSelection, RecallContext, RecallKind, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity

_OWNER = "owner"
_QUESTION = "Which rule binds this release?"
_ALIKE = ((("acme", "ana"), ("acme-corp", "ana")), (("a", "b_c"), ("a_b", "c")))
"""Tenants and owners that a careless key would take for each other."""
_INSERTED = 4 * CACHE_VECTORS_MAX
_SECRET = bytes(range(32))
_VECTOR = array("f", [1.0])


class HandClock(Clock):
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @override
    def now(self) -> datetime:
        return datetime(2030, 1, 1, 12, tzinfo=UTC)

    @override
    def monotonic(self) -> float:
        return self.seconds


def check(rehearsal: Rehearsal) -> dict[Gate, Measured]:
    """Change each part of a key; overfill a cache, let it age, and come too late."""
    return {
        Gate.SCOPE_AND_CONTEXT_IDENTITY: _identity(rehearsal),
        Gate.CACHE_BOUNDS: _bounds(rehearsal.configuration),
    }


def _identity(rehearsal: Rehearsal) -> Measured:
    provider = CountingProvider(rehearsal.configuration)
    ours, within = query(_OWNER, _QUESTION), context()
    hits: list[str] = []
    same = parts = 0
    with rehearsal.store("identity") as store:
        preparation = rehearsal.preparation(store, provider)
        lookup = preparation.lookup
        for name, other, around in (*_other_queries(ours), *_other_contexts(ours)):
            # Anew each time: meeting another context empties the cache, as it must.
            asked(preparation, _OWNER, ours, within=within)
            same += lookup.lookup(ours, within) is not None
            parts += 1
            if lookup.lookup(other, around) is not None:
                hits.append(name)
        for name, configuration in _other_configurations(rehearsal.configuration):
            parts += 1
            other_lookup = _filled_with_the_keys_of(
                rehearsal.configuration, configuration, ours, within
            )
            if other_lookup.lookup(ours, within) is not None:
                hits.append(name)
    require(same, "what was prepared was not found: see ceilings and guards")
    return Measured(
        figures={
            "parts_changed": parts,
            "hits_of_others": len(hits),
            "hits_of_the_same": same,
        },
        raw={"hits_of_others": hits},
    )


def _other_queries(ours: RecallQuery) -> Iterator[tuple[str, RecallQuery, RecallContext]]:
    changes: dict[str, Any] = {
        "tenant": "rehearsal-2",
        "owner": "owner-2",
        "principal": "another",
        "scopes": ("rehearsal", "rehearsal/more"),
        "read_ceiling": Sensitivity.PUBLIC,
        "question": _QUESTION + " ",
        "subjects": ("release",),
        "kind": RecallKind.AUTOMATIC,
        "limit": ours.limit + 1,
        "candidate_selection": CandidateSelection.LEGACY,
    }
    plain = {name: getattr(ours, name) for name in type(ours).model_fields}
    for name, value in changes.items():
        yield name, RecallQuery(**plain | {name: value}), context()
    for (tenant, owner), (other_tenant, other_owner) in _ALIKE:
        mine = {**plain, "tenant": tenant, "owner": owner}
        theirs = {**plain, "tenant": other_tenant, "owner": other_owner}
        yield f"{tenant}/{owner}", RecallQuery(**mine), context()
        yield f"{other_tenant}/{other_owner}", RecallQuery(**theirs), context()


def _other_contexts(ours: RecallQuery) -> Iterator[tuple[str, RecallQuery, RecallContext]]:
    changes: dict[str, Any] = {
        "policy_version": "rehearsal@2",
        "retrieval_policy_version": "rehearsal@2",
        "surface": "another",
        "task_digest": "another",
        "sensitivity_floor": Sensitivity.PUBLIC,
    }
    for name, value in changes.items():
        yield name, ours, context(**{name: value})


def _other_configurations(ours: Configuration) -> Iterator[tuple[str, Configuration]]:
    changes: dict[str, dict[str, Any]] = {
        "provider": {"url": "https://rehearsal.invalid/v2/embeddings"},
        "embedding_tuple": {"model_revision": "another"},
        "pricing": {"usd_per_million_tokens": "0.123"},
        "egress": {"guards_digest": "f" * 64},
    }
    for section, values in changes.items():
        plain: dict[str, Any] = ours.model_dump(mode="json")
        plain[section] |= values
        yield section, Configuration.parse(plain)
    plain = ours.model_dump(mode="json")
    plain["embedding_tuple"]["dimensions"] += 1
    yield "dimensions", Configuration.parse(plain)


def _filled_with_the_keys_of(
    standing: Configuration,
    configuration: Configuration,
    one: RecallQuery,
    within: RecallContext,
) -> PreparedQueries:
    """Return a lookup under another configuration whose cache holds our key, of one secret."""
    other = PreparedQueries(clock=HandClock(), secret=_SECRET, configuration=configuration)
    ours = PreparedQueries(clock=HandClock(), secret=_SECRET, configuration=standing)
    surface = Surface(tenant=one.tenant, owner=one.owner, surface=within.surface)
    other.bound(surface, within, 1).insert(
        [(ours.keys.key(one, within), _VECTOR)], generation=1, now_s=0.0
    )
    return other


def _bounds(configuration: Configuration) -> Measured:
    clock = HandClock()
    lookup = PreparedQueries(clock=clock, secret=_SECRET, configuration=configuration)
    within = context()
    surface = Surface(tenant=TENANT, owner=_OWNER, surface=within.surface)
    cache = lookup.bound(surface, within, 1)
    highest = 0
    queries = [query(_OWNER, f"Which rule binds release {n}?") for n in range(_INSERTED)]
    for one in queries:
        key = lookup.keys.key(one, within)
        cache.insert([(key, _VECTOR)], generation=1, now_s=clock.monotonic())
        highest = max(highest, len(cache))
    oldest_age_s = -1
    for age_s in range(2 * CACHE_LIFETIME_S):
        clock.seconds = float(age_s)
        if lookup.lookup(queries[-1], within) is not None:
            oldest_age_s = age_s
    require(oldest_age_s >= 0, "the cache kept nothing")
    late = _late(lookup, surface, within, clock)
    return Measured(
        figures={
            "inserted": len(queries),
            "vectors_highest": highest,
            "age_s_highest": oldest_age_s,
            "vectors_of_older_generations": late,
        },
        raw={"lifetime_s": CACHE_LIFETIME_S, "vectors_max": CACHE_VECTORS_MAX},
    )


def _late(
    lookup: PreparedQueries, surface: Surface, within: RecallContext, clock: HandClock
) -> int:
    """Return how many vectors of an ended generation got in, by each way it can end."""
    got_in = 0
    one = query(_OWNER, _QUESTION)
    key = lookup.keys.key(one, within)
    ends = (
        lambda: lookup.bound(surface, within, 8),
        lambda: lookup.bound(surface, context(task_digest="another"), 9),
        lambda: lookup.lookup(one, context(task_digest="a third")),
        lookup.withdraw,
    )
    for number, end in enumerate(ends):
        cache = lookup.bound(surface, within, 100 + number)
        end()
        cache.insert([(key, _VECTOR)], generation=100 + number, now_s=clock.monotonic())
        got_in += lookup.lookup(one, within) is not None
    return got_in
