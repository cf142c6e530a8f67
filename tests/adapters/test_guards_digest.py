"""Where a text may go, and that another rule, table or bound is another digest."""

import re
from dataclasses import replace
from types import ModuleType

import pytest
from tests.adapters.local_guards import local

from remembrancer.adapters.guards import (
    KingfisherEngine,
    LocalGuards,
    ResidencyRules,
    classification,
    credentials,
    injection,
    views,
)
from remembrancer.adapters.guards import guards as guards_module
from remembrancer.adapters.guards.rule import RuleSet
from remembrancer.contracts.guards import ALLOWED, ALLOWED_HOST
from remembrancer.domain.errors import InvalidInputError

JUDGED_BY = {
    "credentials": (
        "_ENTROPY_BITS_MIN", "_DRAWN_CHARACTERS_MIN", "_DIGITS_MIN", "_EXAMPLE", "_PLACEHOLDER",
        "_CODE", "_UUID", "_LONG_WORD", "_MANUAL_PASSWORDS",
    ),
    "classification": (
        "_CARD_LENGTHS", "_GROUP_MIN", "_GROUPS_MAX", "_PHONE_LENGTHS", "_NATIONAL_DIGITS",
        "RAISES_TO", "_IBAN_LENGTHS", "_DIGIT_RUNS", "_IBAN", "_EMAIL", "_PHONE",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "entry", ["http://api.example.com", "api.example.com/v1", "user@api.example.com", "", "a b"]
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(InvalidInputError):
        ResidencyRules(region="eu", allowed=[entry])


def test_http_needs_an_entry_that_says_so() -> None:
    url = "http://127.0.0.1:11434/v1/embeddings"

    assert ResidencyRules(region="here", allowed=["127.0.0.1:11434"]).findings(url)
    assert not ResidencyRules(region="here", allowed=["http://127.0.0.1:11434"]).findings(url)


def test_a_region_without_hosts_allows_nothing() -> None:
    assert ResidencyRules(region="eu", allowed=[]).findings(ALLOWED)


def test_a_host_may_be_written_in_its_own_letters() -> None:
    rules = ResidencyRules(region="eu", allowed=["bücher.example"])

    assert not rules.findings("https://xn--bcher-kva.example/v1/embeddings")


def test_the_digest_tells_regions_hosts_and_engines_apart() -> None:
    residency = ResidencyRules(region="eu", allowed=[ALLOWED_HOST])
    digests = {
        local().digest,
        local(region="us").digest,
        local(ALLOWED_HOST, "other.example.com").digest,
        LocalGuards(residency=residency, engines=[KingfisherEngine()]).digest,
    }

    assert len(digests) == 4


@pytest.mark.parametrize(
    "changed",
    [
        replace(credentials.CREDENTIALS, rules=credentials.CREDENTIALS.rules[1:]),
        replace(credentials.CREDENTIALS, judged_by=()),
        replace(injection.INJECTION, rules=injection.INJECTION.rules[1:]),
        replace(classification.CLASSIFICATION, judged_by=()),
    ],
)
def test_another_rule_set_is_another_digest(
    changed: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_it_was = local().digest
    others = [one for one in guards_module._RULE_SETS if one.name != changed.name]

    monkeypatch.setattr(guards_module, "_RULE_SETS", (changed, *others))

    assert local().digest != as_it_was


@pytest.mark.parametrize(
    ("name", "value"),
    [("CONFUSABLES", {}), ("_BASE64", re.compile("never")), ("VIEW_CHARACTERS_MAX", 7)],
)
def test_another_view_is_another_digest(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_it_was = local().digest

    monkeypatch.setattr(views, name, value)

    assert local().digest != as_it_was


@pytest.mark.parametrize("module", [credentials, classification])
def test_every_bound_and_table_of_a_judge_is_in_the_digest(module: ModuleType) -> None:
    """A threshold that was moved is another rule."""
    [rules] = [one for one in vars(module).values() if isinstance(one, RuleSet)]
    sources = [text for rule in rules.rules for text in rule.source]
    covered = "\n".join((*sources, *rules.judged_by))

    for name in JUDGED_BY[module.__name__.rpartition(".")[2]]:
        value = getattr(module, name)
        for one in value if isinstance(value, set | dict) else [value]:
            shown = one.pattern if isinstance(one, re.Pattern) else str(one)
            assert shown in covered, name
