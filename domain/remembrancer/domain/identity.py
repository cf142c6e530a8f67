"""Ids: of entries, and of the streams their events live in.

Stream ids are UUIDv5 of the natural key as canonical JSON, so two processes that mean the same
stream write the same one, and ("a", "b_c") never meets ("a_b", "c") (design section 4).
"""

import re
from collections.abc import Sequence
from hashlib import sha1
from typing import NewType, cast
from uuid import UUID, uuid5

from pydantic import TypeAdapter, ValidationError

from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import InvalidInputError

EntryId = NewType("EntryId", UUID)
"""Names one L3 memory item for good."""

NAMESPACE = UUID("6f0b5f9e-8d0c-5f6b-9b57-2c1d5b7e4a10")
"""Of all stream ids."""
_NAMESPACE = NAMESPACE.bytes
_FREE_BITS, _VERSION_5 = ~(0xF000 << 64 | 0xC000 << 48), 5 << 76 | 1 << 63
"""Of a UUID's number: those that its version and variant leave, and what these are."""
_UUIDS = TypeAdapter(list[EntryId])
_STRINGS = frozenset({str})
_UUID = re.compile(r"(?i:urn:uuid:)?\{?[0-9A-Fa-f-]{32,36}\}?")


def stream_id(aggregate: str, *natural_key: str) -> UUID:
    """Return the id of the stream of ``aggregate`` with this natural key."""
    named = sha1(_NAMESPACE + canonical_json([aggregate, *natural_key]), usedforsecurity=False)
    # As uuid5, which takes twice as long to come to the same.
    bits = int.from_bytes(named.digest()[:16], "big") & _FREE_BITS | _VERSION_5
    return UUID(int=bits)


def entry_id_for_key(tenant: str, owner: str, idempotency_key: str) -> EntryId:
    """Return the one entry id that an owner's idempotency key stands for."""
    return EntryId(stream_id("idempotency", tenant, owner, idempotency_key))


def version_id(entry_id: EntryId, version: int) -> EntryId:
    """Return the id under which a superseded version stands in an index.

    The current version stands under the entry's own id; corrected ones stay findable for
    historical recall under these ids, which can be computed without a look-up.
    """
    return EntryId(uuid5(entry_id, str(version)))


def entry_ids(recorded: Sequence[str]) -> list[EntryId]:
    """Return ids of the spellings in which a record holds them.

    Raises:
        TypeError: one isn't a string: a UUID that was recorded as such isn't how we record it.
        ValueError: one isn't a UUID.
    """
    if not _STRINGS.issuperset(map(type, recorded)):
        raise TypeError("an entry's id is recorded as a string")
    try:
        # Ten in the time in which UUID() makes two.
        return cast("list[EntryId]", _UUIDS.validator.validate_python(recorded))
    except ValidationError:
        return [EntryId(UUID(one)) for one in recorded]


def spelt(ids: list[EntryId]) -> list[str]:
    """Return the usual spelling of each: as ``str`` does, in a quarter of the time."""
    return cast("list[str]", _UUIDS.serializer.to_python(ids, mode="json"))


def parse_entry_id(text: str) -> EntryId:
    """Read an entry id in any spelling of a UUID.

    Raises:
        InvalidInputError: it isn't one.
    """
    # UUID() alone also takes digits of other scripts and underscores.
    if _UUID.fullmatch(text.strip()):
        try:
            return EntryId(UUID(text.strip()))
        except ValueError:
            pass
    raise InvalidInputError(field="entry id", problem="is not a UUID")
