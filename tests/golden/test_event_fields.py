"""The fields of stored events are a public format: which there are, and in which order.

The order is that of the class, which is how a reader meets them; the stored bytes are sorted.
"""

from dataclasses import fields

import pytest

from remembrancer.domain.stored_format import EVENTS

FORMAT = {
    "remembrancer.memory_entry.entry_remembered": [
        "originator_topic",
        "tenant",
        "owner",
        "entry_id",
        "digest",
        "length",
        "scope",
        "kind",
        "sensitivity",
    ],
    "remembrancer.memory_entry.entry_corrected": [
        "entry_id",
        "digest",
        "length",
        "scope",
        "kind",
        "sensitivity",
        "reason",
    ],
    "remembrancer.memory_entry.entry_erased": [
        "entry_id",
        "reason",
    ],
    "remembrancer.l3_selection.l3_entries_selected": [
        "originator_topic",
        "tenant",
        "owner",
        "principal",
        "session",
        "stage",
        "kind",
        "entries",
        "mode",
        "mode_reason",
        "left_out",
        "left_out_count",
        "k",
        "filter",
        "embedding_tuple",
        "query_embedding",
    ],
    "remembrancer.l3_selection.context_pack_assembled": [
        "number",
        "digest",
        "label",
        "format_version",
        "included",
        "omitted",
        "token_budget",
        "tokens",
        "token_counter",
        "items_digest",
    ],
    "remembrancer.reservation_ledger.reservation_admitted": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "request_digest",
        "reserved_quanta",
        "lease_s",
        "day_quanta_before",
        "day_requests_before",
        "ceiling_quanta",
        "ceiling_requests",
        "mechanism_version",
        "configuration_digest",
        "embedding_tuple_digest",
        "pricing_digest",
        "kind",
        "deadline",
    ],
    "remembrancer.reservation_ledger.reservation_settled": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "reserved_quanta",
        "charged_quanta",
        "usage_tokens",
    ],
    "remembrancer.reservation_ledger.reservation_became_unknown": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "charged_quanta",
        "reason",
    ],
    "remembrancer.reservation_ledger.reservation_reconciled": [
        "tenant",
        "owner",
        "reservation_id",
        "day",
        "unknown_quanta",
        "charged_quanta",
        "stated_quanta",
        "evidence_digest",
        "reconciled_by",
    ],
    "remembrancer.cache_context.cache_context_bound": [
        "originator_topic",
        "tenant",
        "owner",
        "surface",
        "generation",
        "context_digest",
        "configuration_digest",
    ],
    "remembrancer.cache_context.cache_context_replaced": [
        "tenant",
        "owner",
        "surface",
        "generation",
        "context_digest",
        "configuration_digest",
    ],
    "remembrancer.cache_context.query_vectors_prepared": [
        "tenant",
        "owner",
        "surface",
        "generation",
        "reservation_id",
        "vectors",
    ],
    "remembrancer.cache_context.admission_withdrawn": [
        "tenant",
        "owner",
        "surface",
        "generation",
        "reason",
    ],
}


@pytest.mark.parametrize("topic", EVENTS)
def test_fields_of_an_event_are_a_public_format(topic: str) -> None:
    """A new field needs a default or an upcast, a file of its own, and a line here."""
    common = {"originator_id", "originator_version", "timestamp"}

    assert [one.name for one in fields(EVENTS[topic]) if one.name not in common] == FORMAT[topic]
