"""A configuration for the suites, and evidence that would admit it."""

from datetime import datetime, timedelta
from typing import Any

from remembrancer.contracts.clock import NOON
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.gate import GATES, Gate
from remembrancer.domain.release import Evidence


def a_configuration(*, dimensions: int = 8, **changes: Any) -> Configuration:
    """Return a configuration; ``changes`` replace whole parts of it."""
    values: dict[str, Any] = {
        "provider": {"url": "https://eu.example.com/v1/embeddings", "region": "eu"},
        "embedding_tuple": {
            "provider": "example",
            "model": "small",
            "model_revision": "1",
            "dimensions": dimensions,
            "input_preparation": "plain@1",
        },
        "pricing": {"usd_per_million_tokens": "0.02", "input_overhead_tokens": 8},
        "ceilings": {"quanta_per_day": 1_000_000, "requests_per_day": 500},
        "egress": {
            "allowed_regions": ["eu", "ch"],
            "allowed_hosts": ["eu.example.com"],
            "guard_rule_sets": ["credentials@1"],
            "guards_digest": "9" * 64,
        },
    }
    return Configuration.parse(values | changes)


CONFIGURATION = a_configuration()
FEWER_REQUESTS = a_configuration(ceilings={"quanta_per_day": 1_000_000, "requests_per_day": 499})


def evidence_of(
    gate: Gate,
    configuration: Configuration = CONFIGURATION,
    /,
    *,
    at: datetime = NOON - timedelta(hours=1),
    **changes: Any,
) -> Evidence:
    """Return a document that meets ``gate``; nothing ran, so it is for tests only."""
    values: dict[str, Any] = {
        "gate": gate,
        "configuration_digest": configuration.digest,
        "mechanism_version": configuration.mechanism_version,
        "ran": "a contract suite",
        "by": "a test",
        "at": at,
        "figures": {demand.figure: demand.least for demand in GATES[gate].demands},
        "artefact_digests": {"report.json": "5" * 64},
    }
    return Evidence(**values | changes)
