"""What a point carries, and what filters say about it.

The labels that recall filters by are fields of their own, so that each can have an index.  Any
other metadata (which entry is about whom) becomes one field of many marks, keyed hashes of key
and value: a key may hold any character, which Qdrant's paths don't take, and no name of a person
stands in another service in plain text.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remembrancer.application.ports.vector_store import Filter
from remembrancer.domain.canonical_json import canonical_json

if TYPE_CHECKING:
    from array import array

TENANT = "tenant"
LABELS = (TENANT, "owner", "scope", "kind", "sensitivity", "state")
"""Metadata with fields of the same names; the tenant's marks where its points lie."""
MARKS = "marks"
FIELDS = (*LABELS, MARKS)
"""All that filters name, and so all that is indexed: a strict server asks for that."""
NUMBERS, NORM, VERSION = "numbers", "norm", "version"
READ_FIELDS = (NUMBERS, NORM, VERSION)
"""What is read of a payload: all else only filters."""
_MARK_BYTES = 16


class Marks:
    """Hashes metadata with a key of the memory's own."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "Marks()"

    def payload(self, metadata: Mapping[str, str]) -> dict[str, Any]:
        """Return the fields that stand for ``metadata``."""
        fields: dict[str, Any] = {key: metadata[key] for key in LABELS if key in metadata}
        marks = [self._mark(key, metadata[key]) for key in metadata if key not in LABELS]
        if marks:
            fields[MARKS] = marks
        return fields

    def conditions(self, wanted: Filter) -> list[tuple[str, tuple[str, ...]]]:
        """Return a filter as (field, any of these values)."""
        found = []
        for key, value in wanted.items():
            values = (value,) if isinstance(value, str) else value
            if key in LABELS:
                found.append((key, tuple(dict.fromkeys(values))))
            else:
                found.append((MARKS, tuple(self._mark(key, one) for one in values)))
        return found

    def _mark(self, key: str, value: str) -> str:
        spelt = canonical_json([key, value])
        return hashlib.blake2b(spelt, key=self._key, digest_size=_MARK_BYTES).hexdigest()


def spelt(vector: "array[float]") -> str:
    """Return the float32 numbers as they are, in text: half as long as JSON's decimals."""
    return base64.b64encode(vector.tobytes()).decode("ascii")


def read(spelt: str) -> bytes:
    """Return the float32 numbers that :func:`spelt` wrote."""
    return binascii.a2b_base64(spelt)
