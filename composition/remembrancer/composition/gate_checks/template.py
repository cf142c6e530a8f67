"""A document to fill in, for evidence that no check can produce."""

from typing import Any

from remembrancer.domain.configuration import Configuration
from remembrancer.domain.gate import GATES, Gate

HOW: dict[Gate, str] = {
    Gate.RETRIEVAL_QUALITY: (
        "Let people who didn't build the system write at least 50 questions with the entries that "
        "answer them. Nothing leaves here before admission, so have the vectors of both made in a "
        "trial apart from production, by a client of your own and from texts that may leave. Give "
        "`embedded(path, embedder=...)` an embedder that looks them up, recall each question with "
        "it and by keywords alone, and count how many permille of the expected entries are found "
        "each way."
    ),
    Gate.OPERATIONAL_MEASUREMENT: (
        "Let a client of your own ask the provider for a day or more, in a trial apart from "
        "production, with a copy of real load: as many questions, of the same lengths, of texts "
        "that may leave. Take latencies from that client, spend from the usage that the provider "
        "states at the configured price, requests and refusals from your count. Nothing of "
        "this can come from here before admission; once admitted, `remembrancer spend --json` "
        "and your monitoring tell whether it was true, and newer evidence takes its place."
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
