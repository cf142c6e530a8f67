"""The document with which an operator lowers an unknown charge."""

import hashlib
import json
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.reconciliation import DOCUMENT_BYTES_MAX, reconciliation_evidence

ID = UUID("0190d0f2-0000-7000-8000-000000000001")
GOOD: dict[str, Any] = {
    "reservation_id": str(ID),
    "stated_quanta": 12,
    "provider_statement": "invoice 2030-01, line 7",
}


def document(**changes: Any) -> bytes:
    return json.dumps(GOOD | changes).encode()


def test_a_document_gives_what_it_states_its_digest_and_who_vouches() -> None:
    data = document()

    evidence = reconciliation_evidence(data, reservation_id=ID, by="mia")

    assert evidence.stated_quanta == 12
    assert evidence.digest == hashlib.sha256(data).hexdigest()
    assert evidence.by == "mia"


def test_the_digest_is_of_the_bytes_as_they_are() -> None:
    spaced = json.dumps(GOOD, indent=4).encode() + b"\n"

    evidence = reconciliation_evidence(spaced, reservation_id=ID, by="mia")

    assert evidence.digest == hashlib.sha256(spaced).hexdigest()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{",
        b"[" * 100_000,
        b"\xef\xbb\xbf" + document(),
        document()[:-1] + b', "stated_quanta": 0}',
        document(stated_quanta=True),
        document(stated_quanta="12"),
        document(stated_quanta=12.0),
        document(stated_quanta=-1),
        document(stated_quanta=None),
        document(stated_quanta=10**15),
        document(stated_quanta=float("nan")),
        document(reservation_id="none"),
        document(reservation_id=ID.int),
        document(reservation_id=None),
        document(provider_statement=""),
        document(provider_statement=" \n"),
        document(provider_statement=7),
        document(extra=1),
        json.dumps({"reservation_id": str(ID), "stated_quanta": 1}).encode(),
        document(provider_statement="x" * DOCUMENT_BYTES_MAX),
    ],
    ids=range(24),
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        reconciliation_evidence(data, reservation_id=ID, by="mia")


def test_a_document_about_another_reservation_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="another reservation"):
        reconciliation_evidence(document(), reservation_id=UUID(int=1), by="mia")


@pytest.mark.parametrize("by", ["", " ", "x" * 257, "two\nlines"])
def test_somebody_must_vouch(by: str) -> None:
    with pytest.raises(InvalidInputError):
        reconciliation_evidence(document(), reservation_id=ID, by=by)


def test_what_it_holds_is_in_no_error() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        reconciliation_evidence(document(stated_quanta="canarybird"), reservation_id=ID, by="mia")

    assert "canarybird" not in f"{refusal.value!r} {refusal.value.__context__!r}"
