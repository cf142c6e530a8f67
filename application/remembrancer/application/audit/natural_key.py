"""Ids of streams and versions from their natural keys, as bytes and fast.

The same ids as :mod:`remembrancer.domain.identity` gives (a test proves it); an audit computes
one for each stream and each superseded version.
"""

from functools import lru_cache
from hashlib import sha1
from json.encoder import encode_basestring
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.identity import NAMESPACE

_BEGINNINGS_KEPT = 1_024
_NAMESPACE = NAMESPACE.bytes
_MARKS = UUID("00000000-0000-5000-8000-000000000000").int
"""What says of a UUID that it is one of version 5 (RFC 9562)."""
_NUMBER = UUID("ffffffff-ffff-0fff-3fff-ffffffffffff").int
"""All the rest of it."""


def stream_key(aggregate: str, *natural_key: str) -> bytes:
    """Return the 16 bytes of a stream's id."""
    spelt = f"[{','.join(map(encode_basestring, (aggregate, *natural_key)))}]"
    return _uuid5(sha1(_NAMESPACE + spelt.encode(), usedforsecurity=False).digest())


def entry_stream_key(tenant: str, entry_id: str) -> bytes:
    """Return the 16 bytes of an entry's stream; ``entry_id`` spelt with dashes."""
    hashed = _entries_of(tenant).copy()
    hashed.update(f'"{entry_id}"]'.encode())
    return _uuid5(hashed.digest())


def version_key(entry_id: bytes, version: int) -> bytes:
    """Return the 16 bytes under which a superseded version stands in an index."""
    return _uuid5(sha1(entry_id + str(version).encode(), usedforsecurity=False).digest())


def dashed(hexadecimal: str) -> str:
    """Return a UUID's usual spelling."""
    one = hexadecimal
    return f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}"


@lru_cache(maxsize=_BEGINNINGS_KEPT)
def _entries_of(tenant: str) -> Any:
    """Return what is hashed before an entry's own id; every use takes a copy."""
    beginning = canonical_json(["memory_entry", tenant])[:-1] + b","
    return sha1(_NAMESPACE + beginning, usedforsecurity=False)


def _uuid5(digest: bytes) -> bytes:
    return (int.from_bytes(digest[:16]) & _NUMBER | _MARKS).to_bytes(16)
