"""A document to fill in, for evidence that no check can produce."""

from typing import Any

from remembrancer.domain.configuration import Configuration
from remembrancer.domain.gate import GATES, Gate

HOW: dict[Gate, str] = {
    Gate.RETRIEVAL_QUALITY: (
        "Let people who didn't build the system write at least 50 questions with the entries that "
        "answer them; remember the entries, recall each question without and with a prepared "
        "vector, and count how many permille of the expected entries are found."
    ),
    Gate.OPERATIONAL_MEASUREMENT: (
        "Run the preparation for a day or more, against the provider in a trial installation or a "
        "copy of real load; take latencies from your own monitoring, and spend, requests and "
        "refusals from `remembrancer spend --json`."
    ),
}
"""How the evidence from outside is come by."""


def evidence_template(configuration: Configuration, gate: Gate) -> dict[str, Any]:
    """Return a document that is evidence once each null and empty field is filled in."""
    return {
        "gate": gate.value,
        "configuration_digest": configuration.digest,
        "mechanism_version": configuration.mechanism_version,
        "ran": None,
        "by": None,
        "at": None,
        "figures": {demand.figure: None for demand in GATES[gate].demands},
        "artefact_digests": {},
    }


def demands_on(gate: Gate) -> list[str]:
    """Return what each figure must satisfy, in words."""
    said = []
    for demand in GATES[gate].demands:
        words = f"{demand.figure} at least {demand.least}"
        if demand.most is not None:
            words += f", at most {demand.most}"
        if demand.most_of is not None:
            words += ", at most the configured ceiling"
        if demand.not_below is not None:
            words += f", not below {demand.not_below}"
        said.append(words)
    return said
