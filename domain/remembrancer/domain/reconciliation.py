"""The document with which an operator lowers an unknown charge (design 4.2; adr/0010).

A small JSON file that says which reservation it is about and what the provider states it cost::

    {
      "reservation_id": "0190d0f2-...",
      "stated_quanta": 120,
      "provider_statement": "invoice 2030-01, line 7"
    }

The ledger records the file's SHA-256; the file itself is the operator's to keep.
"""

import hashlib
from typing import Annotated
from uuid import UUID

from pydantic import Field

from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import Quanta
from remembrancer.domain.parsed import FilledText, Parsed
from remembrancer.domain.reservation import ReconciliationEvidence
from remembrancer.domain.strict_json import parse_strict_json

DOCUMENT_BYTES_MAX = 65_536


class ReconciliationDocument(Parsed):
    """What the provider states, as far as the ledger needs it."""

    reservation_id: Annotated[UUID, Field(strict=False)]
    stated_quanta: Quanta
    """What the request cost according to the provider, rounded up to a quantum."""
    provider_statement: FilledText
    """Where that is stated: an invoice, a usage export, a ticket."""


def reconciliation_evidence(
    data: bytes, *, reservation_id: UUID, by: str
) -> ReconciliationEvidence:
    """Read a document about ``reservation_id`` for which ``by`` vouches.

    Raises:
        InvalidInputError: it isn't such a document, or is about another reservation.
    """
    document = _read(data)
    if document.reservation_id != reservation_id:
        raise InvalidInputError(field="evidence", problem="is about another reservation")
    return ReconciliationEvidence(
        digest=hashlib.sha256(data).hexdigest(), stated_quanta=document.stated_quanta, by=by
    )


def _read(data: bytes) -> ReconciliationDocument:
    if len(data) > DOCUMENT_BYTES_MAX:
        raise InvalidInputError(
            field="evidence", problem=f"must not be larger than {DOCUMENT_BYTES_MAX} bytes"
        )
    try:
        values = parse_strict_json(data)
    except ValueError as error:
        raise InvalidInputError(field="evidence", problem=str(error)) from None
    if isinstance(values, dict) and not isinstance(values.get("reservation_id"), str):
        # Not strict about its type, so that text is taken; nothing else is.
        raise InvalidInputError(field="evidence", problem="must name the reservation's id")
    return ReconciliationDocument.parse(values)
