from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from remembrancer.domain.bounds import MECHANISM_VERSION
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.errors import InvalidInputError

VALUES: dict[str, Any] = {
    "provider": {"url": "https://eu.example.com/v1/embeddings", "region": "eu"},
    "embedding_tuple": {
        "provider": "example",
        "model": "small",
        "model_revision": "1",
        "dimensions": 768,
        "input_preparation": "plain@1",
    },
    "pricing": {"usd_per_million_tokens": "0.02", "input_overhead_tokens": 8},
    "ceilings": {"quanta_per_day": 1_000_000, "requests_per_day": 500},
    "egress": {
        "allowed_regions": ["eu", "ch"],
        "allowed_hosts": ["eu.example.com", "ch.example.com"],
        "guard_rule_sets": ["credentials@1", "injection@1"],
        "guards_digest": "9" * 64,
    },
}
CHANGES: list[dict[str, Any]] = [
    {"provider": {"url": "https://eu.example.com/v2/embeddings"}},
    {"provider": {"url": "https://ch.example.com/v1/embeddings"}},
    {"provider": {"region": "ch"}},
    {"provider": {"proxy_url": "http://proxy.example.com:3128"}},
    {"provider": {"authorities_digest": "7" * 64}},
    {"provider": {"asks_for_dimensions": True}},
    {"embedding_tuple": {"model": "large"}},
    {"embedding_tuple": {"model_revision": "2"}},
    {"embedding_tuple": {"dimensions": 512}},
    {"pricing": {"usd_per_million_tokens": "0.03"}},
    {"pricing": {"input_overhead_tokens": 9}},
    {"ceilings": {"quanta_per_day": 1_000_001}},
    {"ceilings": {"requests_per_day": 0}},
    {"egress": {"allowed_regions": ["eu"]}},
    {"egress": {"allowed_hosts": ["eu.example.com"]}},
    {"egress": {"guard_rule_sets": ["credentials@2", "injection@1"]}},
    {"egress": {"guards_digest": "8" * 64}},
]


def configuration(change: dict[str, Any] | None = None) -> Configuration:
    values = {name: dict(fields) for name, fields in VALUES.items()}
    for name, fields in (change or {}).items():
        values[name] |= fields
    return Configuration.parse(values)


def test_the_same_values_have_the_same_digest() -> None:
    assert configuration().digest == configuration().digest
    assert len(configuration().digest) == 64


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_part_changes_the_digest(change: dict[str, Any]) -> None:
    assert configuration(change).digest != configuration().digest


@pytest.mark.parametrize(
    "change",
    [
        {"provider": {"url": "https://EU.example.com:443/v1/embeddings"}},
        {"egress": {"allowed_regions": ["ch", "eu", "eu"]}},
        {"pricing": {"usd_per_million_tokens": "0.0200"}},
    ],
    ids=str,
)
def test_another_spelling_is_the_same_configuration(change: dict[str, Any]) -> None:
    assert configuration(change).digest == configuration().digest


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_what_a_vector_is_prepared_under_is_all_but_the_ceilings(change: dict[str, Any]) -> None:
    same = configuration(change).key_conditions == configuration().key_conditions

    assert same == ("ceilings" in change)


def test_terms_of_spending_name_what_they_were_taken_from() -> None:
    one = configuration()

    terms = one.spend_terms

    assert terms.ceilings == one.ceilings
    assert terms.mechanism_version == MECHANISM_VERSION
    assert terms.configuration_digest == one.digest
    assert terms.embedding_tuple_digest == one.embedding_tuple.digest
    assert terms.pricing_digest == one.pricing.digest


@pytest.mark.parametrize(
    "change",
    [
        {"provider": {"region": "us"}},
        {"provider": {"url": "https://us.example.com/v1/embeddings"}},
        {"provider": {"url": "http://eu.example.com/v1/embeddings"}},
        {"provider": {"url": "https://key@eu.example.com/v1/embeddings"}},
        {"provider": {"url": "https://eu.example.com/v1/embeddings?key=1"}},
        {"provider": {"url": "ftp://eu.example.com/"}},
        {"provider": {"proxy_url": "http://key@proxy.example.com:3128"}},
        {"egress": {"allowed_regions": []}},
        {"egress": {"guard_rule_sets": []}},
        {"egress": {"guards_digest": ""}},
        {"egress": {"bypass": True}},
        {"ceilings": {"quanta_per_day": -1}},
        {"ceilings": {"quanta_per_day": 1.5}},
        {"ceilings": {"requests_per_day": True}},
    ],
    ids=str,
)
def test_what_residency_or_bounds_forbid_is_no_configuration(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        configuration(change)


def test_another_mechanism_version_is_no_configuration_of_this_release() -> None:
    with pytest.raises(InvalidInputError):
        Configuration.parse(VALUES | {"mechanism_version": "semantic-query@2"})


def test_a_server_on_this_machine_may_speak_plain_http() -> None:
    local = configuration(
        {
            "provider": {"url": "http://localhost:11434/v1/embeddings"},
            "egress": {"allowed_hosts": ["localhost"]},
        }
    )

    assert local.provider.destination.is_loopback


@pytest.mark.parametrize(
    ("proxy_url", "expected"),
    [
        ("http://[::1]:3128", nullcontext()),
        ("https://proxy.example.com", pytest.raises(InvalidInputError)),
    ],
)
def test_what_may_speak_plain_http_on_this_machine_has_no_proxy_elsewhere(
    proxy_url: str, expected: AbstractContextManager[object]
) -> None:
    """The proxy would read the texts, wherever it is."""
    change = {
        "provider": {"url": "http://localhost:11434/v1/embeddings", "proxy_url": proxy_url},
        "egress": {"allowed_hosts": ["localhost"]},
    }

    with expected:
        assert configuration(change).provider.proxy_url == proxy_url


def test_a_credential_in_a_url_is_not_repeated() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        configuration({"provider": {"url": "https://canary@eu.example.com/"}})

    assert "canary" not in str(refusal.value)
