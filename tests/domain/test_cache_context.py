from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.prepared_vectors import NO_GENERATION, PreparedVectors
from remembrancer.domain.spend_errors import StaleGenerationError

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
A, B, CONFIGURATION = "a" * 64, "b" * 64, "c" * 64


def bound(context_digest: str = A) -> CacheContext:
    return CacheContext.bind(
        "acme",
        "ana",
        "cli",
        context_digest=context_digest,
        configuration_digest=CONFIGURATION,
        at=AT,
    )


def replace(context: CacheContext, digest: str, configuration: str = CONFIGURATION) -> None:
    context.replace(context_digest=digest, configuration_digest=configuration, at=AT)


def test_the_first_context_begins_generation_one() -> None:
    context = bound()

    assert context.generation == 1
    assert context.is_bound_to(A, CONFIGURATION)


def test_the_same_context_goes_on() -> None:
    context = bound()

    replace(context, A)

    assert (context.generation, len(context.pending_events)) == (1, 1)


@pytest.mark.parametrize(("digest", "configuration"), [(B, CONFIGURATION), (A, "d" * 64)])
def test_another_context_or_configuration_begins_a_new_generation(
    digest: str, configuration: str
) -> None:
    context = bound()

    replace(context, digest, configuration)

    assert context.generation == 2
    assert context.is_bound_to(digest, configuration)


def test_a_context_that_comes_back_is_a_new_generation() -> None:
    context = bound(A)
    replace(context, B)

    replace(context, A)

    assert context.generation == 3


def test_a_withdrawal_leaves_nothing_bound() -> None:
    context = bound()

    context.withdraw(reason="evidence_revoked", at=AT)

    assert context.generation == 2
    assert not context.is_bound_to(A, CONFIGURATION)
    with pytest.raises(StaleGenerationError):
        context.require_current(2)


def test_withdrawing_again_records_nothing() -> None:
    context = bound()
    context.withdraw(reason="evidence_revoked", at=AT)

    context.withdraw(reason="evidence_revoked", at=AT)

    assert len(context.pending_events) == 2


def test_after_a_withdrawal_the_same_context_begins_anew() -> None:
    context = bound()
    context.withdraw(reason="evidence_revoked", at=AT)

    replace(context, A)

    assert context.generation == 3


def test_vectors_of_the_current_generation_are_recorded_without_themselves() -> None:
    context = bound()

    context.record_prepared(1, reservation_id=UUID(int=7), vectors=3, at=AT)

    event = context.pending_events[-1]
    assert isinstance(event, CacheContext.QueryVectorsPrepared)
    assert (event.generation, event.reservation_id, event.vectors) == (1, UUID(int=7), 3)


def test_vectors_of_an_older_generation_are_refused() -> None:
    context = bound()
    replace(context, B)

    with pytest.raises(StaleGenerationError) as refusal:
        context.record_prepared(1, reservation_id=UUID(int=7), vectors=3, at=AT)

    assert (refusal.value.begun, refusal.value.current) == (1, 2)


def test_surfaces_and_owners_that_look_alike_have_contexts_of_their_own() -> None:
    create_id = CacheContext.create_id

    alike = {create_id("a", "b_c", "d"), create_id("a_b", "c", "d"), create_id("a", "b", "c_d")}
    assert len(alike) == 3
    assert create_id("acme", "ana", "cli") != create_id("acme-corp", "ana", "cli")


class ContextMachine(RuleBasedStateMachine):
    """Whatever order binding, withdrawing and late answers come in, none gets in too late."""

    contexts = st.sampled_from([A, B])

    @initialize(digest=contexts)
    def open(self, digest: str) -> None:
        self.context = bound(digest)
        self.current: str | None = digest
        self.facts = list(self.context.collect_events())
        self.cache = PreparedVectors()
        self.cache.begin(1)
        self.flights: list[tuple[int, int]] = []
        self.begun = 0

    @rule(digest=contexts)
    def bind(self, digest: str) -> None:
        changes = digest != self.current
        before = self.context.generation
        replace(self.context, digest)
        self.current = digest
        assert self.context.generation == before + changes
        self.cache.begin(self.context.generation)

    @rule()
    def withdraw(self) -> None:
        self.context.withdraw(reason="ceiling_zero", at=AT)
        self.current = None
        self.cache.clear()

    @rule()
    def send(self) -> None:
        if self.current is not None:
            self.begun += 1
            self.flights.append((self.context.generation, self.begun))

    @rule(data=st.data())
    def land(self, data: st.DataObject) -> None:
        if not self.flights:
            return
        generation, number = data.draw(st.sampled_from(self.flights))
        key = number.to_bytes(8, "big")
        entered = self.cache.insert([(key, [1.0])], generation=generation, now_s=0.0)
        assert entered == (self.current is not None and generation == self.context.generation)
        if entered:
            self.context.record_prepared(
                generation, reservation_id=UUID(int=number), vectors=1, at=AT
            )
        else:
            with pytest.raises(StaleGenerationError):
                self.context.record_prepared(
                    generation, reservation_id=UUID(int=number), vectors=1, at=AT
                )

    @invariant()
    def the_cache_is_of_the_current_generation(self) -> None:
        expected = NO_GENERATION if self.current is None else self.context.generation
        assert self.cache.generation == expected
        for generation, number in self.flights:
            if generation != expected:
                assert self.cache.lookup(number.to_bytes(8, "big"), now_s=0.0) is None

    @invariant()
    def replay_equals_live(self) -> None:
        self.facts += self.context.collect_events()
        replayed = None
        for fact in self.facts:
            replayed = fact.mutate(replayed)
        assert replayed == self.context


TestContextMachine = ContextMachine.TestCase
TestContextMachine.settings = settings(max_examples=50, stateful_step_count=30)
