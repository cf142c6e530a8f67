"""What every lookup of prepared query vectors promises.

Enrol an adapter by subclassing :class:`SemanticQueryLookupContract`::

    class TestMyLookup(SemanticQueryLookupContract):
        def prepared(self, *, query, context, vector, clock) -> SemanticQueryLookup:
            return MyLookup(clock=clock, vectors=[(query, context, vector)])
"""

import builtins
import socket
import threading
from abc import ABC, abstractmethod
from array import array
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from remembrancer.application.ports import Clock, SemanticQueryLookup
from remembrancer.contracts.clock import FixedClock
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.sensitivity import Sensitivity
from remembrancer.domain.vector import Vector

DIMENSIONS = 8
VECTOR = array("f", [0.5, -1.0, 0.25, 0.0, 2.0, 0.125, -0.5, 1.0])
LIFETIME = timedelta(seconds=300)
TICK = timedelta(milliseconds=1)

QUERY = RecallQuery(
    tenant="acme",
    owner="ana",
    principal="agent-7",
    scopes=("project/alpha", "project/beta"),
    read_ceiling=Sensitivity.INTERNAL,
    question="Where does the canarybird sleep?",
    subjects=("Ana",),
)
CONTEXT = RecallContext(
    policy_version="p1",
    retrieval_policy_version="r1",
    surface="cli",
    task_digest="t1",
    sensitivity_floor=Sensitivity.INTERNAL,
)
OTHER_QUERIES: dict[str, dict[str, Any]] = {
    "tenant": {"tenant": "acme-corp"},
    "owner": {"owner": "bob"},
    "principal": {"principal": "agent-8"},
    "scopes": {"scopes": ("project/alpha",)},
    "order of scopes": {"scopes": ("project/beta", "project/alpha")},
    "read ceiling": {"read_ceiling": Sensitivity.PUBLIC},
    "question": {"question": "Where does the canarybird sleep"},
    "case": {"question": "where does the canarybird sleep?"},
    "subjects": {"subjects": ()},
    "subjects joined": {"question": QUERY.question + '","Ana', "subjects": ()},
    "kind": {"kind": "automatic"},
    "limit": {"limit": 11},
    "candidate selection": {"candidate_selection": "legacy"},
}
OTHER_CONTEXTS: dict[str, dict[str, Any]] = {
    "policy": {"policy_version": "p2"},
    "retrieval policy": {"retrieval_policy_version": "r2"},
    "task": {"task_digest": "t2"},
    "sensitivity floor": {"sensitivity_floor": Sensitivity.PUBLIC},
}


class SemanticQueryLookupContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to prepare a vector."""

    @abstractmethod
    def prepared(
        self, *, query: RecallQuery, context: RecallContext, vector: Vector, clock: Clock
    ) -> SemanticQueryLookup:
        """Return a lookup in whose cache ``vector`` (8 dimensions) has just been put."""

    @pytest.fixture
    def clock(self) -> FixedClock:
        return FixedClock()

    @pytest.fixture
    def lookup(self, clock: FixedClock) -> SemanticQueryLookup:
        return self.prepared(query=QUERY, context=CONTEXT, vector=VECTOR, clock=clock)

    def test_finds_what_was_prepared(self, lookup: SemanticQueryLookup) -> None:
        found = lookup.lookup(QUERY, CONTEXT)

        assert found is not None
        assert list(found) == list(VECTOR)

    def test_finds_it_for_an_equal_query_and_context(self, lookup: SemanticQueryLookup) -> None:
        query = RecallQuery(**QUERY.model_dump())
        context = RecallContext(**CONTEXT.model_dump())

        assert lookup.lookup(query, context) is not None

    def test_finds_it_again(self, lookup: SemanticQueryLookup) -> None:
        assert all(lookup.lookup(QUERY, CONTEXT) is not None for _ in range(3))

    def test_names_the_space_of_its_vectors(self, lookup: SemanticQueryLookup) -> None:
        assert lookup.embedding_tuple.dimensions == DIMENSIONS

    @pytest.mark.parametrize("part", OTHER_QUERIES)
    def test_another_query_is_a_miss(self, part: str, lookup: SemanticQueryLookup) -> None:
        other = RecallQuery(**QUERY.model_dump() | OTHER_QUERIES[part])

        assert lookup.lookup(other, CONTEXT) is None
        assert lookup.lookup(QUERY, CONTEXT) is not None

    @pytest.mark.parametrize("part", OTHER_CONTEXTS)
    def test_another_context_is_a_miss_and_empties_the_cache(
        self, part: str, lookup: SemanticQueryLookup
    ) -> None:
        other = RecallContext(**CONTEXT.model_dump() | OTHER_CONTEXTS[part])

        assert lookup.lookup(QUERY, other) is None
        assert lookup.lookup(QUERY, CONTEXT) is None

    def test_another_surface_is_a_miss_and_leaves_the_first_alone(
        self, lookup: SemanticQueryLookup
    ) -> None:
        other = RecallContext(**CONTEXT.model_dump() | {"surface": "chat"})

        assert lookup.lookup(QUERY, other) is None
        assert lookup.lookup(QUERY, CONTEXT) is not None

    def test_a_vector_lives_for_five_minutes(
        self, lookup: SemanticQueryLookup, clock: FixedClock
    ) -> None:
        clock.advance(LIFETIME - TICK)
        before = lookup.lookup(QUERY, CONTEXT)
        clock.advance(TICK)

        assert before is not None
        assert lookup.lookup(QUERY, CONTEXT) is None

    def test_being_used_does_not_make_it_live_longer(
        self, lookup: SemanticQueryLookup, clock: FixedClock
    ) -> None:
        for _ in range(5):
            clock.advance(LIFETIME / 5)
            lookup.lookup(QUERY, CONTEXT)

        assert lookup.lookup(QUERY, CONTEXT) is None

    def test_a_machines_clock_that_is_set_changes_nothing(
        self, lookup: SemanticQueryLookup, clock: FixedClock
    ) -> None:
        clock.set(clock.now() + timedelta(days=400))

        assert lookup.lookup(QUERY, CONTEXT) is not None

    def test_opens_nothing_and_starts_nothing(
        self, lookup: SemanticQueryLookup, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> NoReturn:
            raise AssertionError("a lookup is local and free")

        other = RecallQuery(**QUERY.model_dump() | {"question": "Another?"})
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", refuse)
            patched.setattr(threading.Thread, "start", refuse)
            patched.setattr(builtins, "open", refuse)
            hit, miss = lookup.lookup(QUERY, CONTEXT), lookup.lookup(other, CONTEXT)

        assert hit is not None
        assert miss is None

    def test_shows_neither_question_nor_vector(self, lookup: SemanticQueryLookup) -> None:
        shown = f"{lookup!r} {lookup} {vars(lookup)!r}"

        assert "canarybird" not in shown
        assert "0.125" not in shown
