"""That no text can keep the guards busy: patterns, views and lookalikes have their bounds."""

import re
import unicodedata
from collections.abc import Iterator
from re import _parser as parser  # type: ignore[attr-defined] # how CPython reads a pattern
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.local_guards import local, verdict

from remembrancer.adapters.guards import classification, credentials, injection, views
from remembrancer.adapters.guards.confusables import CONFUSABLES
from remembrancer.adapters.guards.rule import Pattern, RuleSet
from remembrancer.application.ports.guards import guarded
from remembrancer.contracts.guards import ALLOWED, access_key
from remembrancer.domain.sensitivity import Sensitivity

NESTED_REPEATS_MAX = 40_000


def patterns(module: ModuleType) -> Iterator[re.Pattern[str]]:
    for value in vars(module).values():
        if isinstance(value, re.Pattern) and value.pattern not in BOUNDED_INPUT:
            yield value
        if isinstance(value, RuleSet):
            yield from (rule.pattern for rule in value.rules if isinstance(rule, Pattern))


BOUNDED_INPUT = {credentials._PLACEHOLDER.pattern, credentials._CODE.pattern}
"""These only judge a match of at most 255 characters."""
MODULES = (classification, credentials, injection, views)
PATTERNS = sorted(
    {found for module in MODULES for found in patterns(module)},
    key=lambda pattern: pattern.pattern,
)


def backtracking(parsed: Any) -> int:
    """Return the product of nested repeats that can be taken back; infinity counts as 10^9."""
    worst = 1
    for operation, argument in parsed:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            _, most, inner = argument
            most = 10**9 if most is parser.MAXREPEAT else int(most)
            worst = max(worst, most * backtracking(inner))
        elif name == "POSSESSIVE_REPEAT":
            worst = max(worst, backtracking(argument[2]))
        elif name == "SUBPATTERN":
            worst = max(worst, backtracking(argument[3]))
        elif name == "BRANCH":
            worst = max([worst, *map(backtracking, argument[1])])
        elif name in {"ASSERT", "ASSERT_NOT"}:
            worst = max(worst, backtracking(argument[1]))
        elif name == "ATOMIC_GROUP":
            worst = max(worst, backtracking(argument))
    return worst


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:40])
def test_no_pattern_can_be_made_to_try_without_end(pattern: re.Pattern[str]) -> None:
    assert backtracking(parser.parse(pattern.pattern, pattern.flags)) <= NESTED_REPEATS_MAX


def test_the_measure_of_backtracking_sees_what_is_unbounded() -> None:
    assert backtracking(parser.parse("(a+)+b")) > NESTED_REPEATS_MAX
    assert backtracking(parser.parse("://[^@]*@")) > NESTED_REPEATS_MAX
    assert backtracking(parser.parse("(?:a{1,9}b)*+c")) == 9


def test_towers_of_marks_are_cut_before_they_are_sorted() -> None:
    """Sorting a run of combining marks takes quadratic time; thirty of them no time at all."""
    tower = "a" + "\u0301\u0327" * 10_000

    shown = views.normal(tower)

    assert max(len(run) for run in re.findall("[\u0300-\u036f]+", shown)) <= 30


def test_views_never_grow_past_their_bound() -> None:
    with pytest.raises(views.UnfoldsTooFarError):
        list(views.views("\ufdfa" * 20_000))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    found = verdict(text)

    assert found.sensitivity >= Sensitivity.PUBLIC


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_credential_is_found_between_any_two_texts(before: str, after: str) -> None:
    text = f"{before} {access_key()} {after}"

    assert not guarded(local(), text, declared=Sensitivity.PUBLIC, destination=ALLOWED).may_leave


def test_lookalikes_fold_to_one_ascii_character_each() -> None:
    assert all(len(latin) == 1 and latin.isascii() for latin in CONFUSABLES.values())
    assert not any(chr(code).isascii() for code in CONFUSABLES)
    assert all(unicodedata.name(chr(code), "") for code in CONFUSABLES)
