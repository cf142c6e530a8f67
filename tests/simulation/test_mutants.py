"""The simulation can fail: a rule that is broken on purpose is caught."""

import pytest
from tests.simulation.mutants import fate_of
from tests.simulation.mutation import Mutation, StaleMutationError
from tests.simulation.mutations import MUTATIONS

from remembrancer.domain import money

SLICE = (
    "round down",
    "release on timeout",
    "one request more than the ceiling",
    "settle never",
    "erase and leave the index",
)
LEAST = 30


@pytest.mark.parametrize(
    "mutation", [one for one in MUTATIONS if one.name in SLICE], ids=lambda one: one.name
)
def test_a_broken_rule_is_caught(mutation: Mutation) -> None:
    fate = fate_of(mutation)

    assert fate.caught, fate.how


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutation", [one for one in MUTATIONS if one.name not in SLICE], ids=lambda one: one.name
)
def test_every_broken_rule_is_caught(mutation: Mutation) -> None:
    fate = fate_of(mutation)

    assert fate.caught, fate.how


def test_there_are_enough_of_them() -> None:
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS) >= LEAST
    assert {one.name for one in MUTATIONS} >= set(SLICE)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_each_finds_the_text_that_it_replaces(mutation: Mutation) -> None:
    import importlib.util  # noqa: PLC0415  # only here

    found = importlib.util.find_spec(mutation.full_module)
    assert found is not None
    assert found.origin is not None
    with open(found.origin, encoding="utf-8") as file:  # noqa: PTH123  # a spec's origin is text
        source = file.read()

    compile(mutation.applied(source), found.origin, "exec")


@pytest.mark.parametrize(
    ("place", "old"), [("_ceiling", "not there"), ("nowhere", "amount"), ("_ceiling", "amount.")]
)
def test_a_mutation_whose_text_is_gone_fails_loudly(place: str, old: str) -> None:
    mutation = Mutation("stale", "domain.money", place, old, "")
    with open(money.__file__, encoding="utf-8") as file:  # noqa: PTH123  # as above
        source = file.read()

    with pytest.raises(StaleMutationError):
        mutation.applied(source)
