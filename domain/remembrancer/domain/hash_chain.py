"""The chain that makes a stream's alteration visible.

Each stored event is recorded with the hash of its predecessor in its stream; the first with 32
zero bytes.  The hash of an event is SHA-256 over the predecessor's hash, the topic, one zero byte
(which no topic holds) and the stored bytes (design section 4, adr/0006).
"""

import hashlib

GENESIS = bytes(32)
"""Predecessor of the first event of every stream."""


def event_hash(predecessor: bytes, topic: str, state: bytes) -> bytes:
    """Return the hash of a stored event, 32 bytes."""
    return hashlib.sha256(b"".join((predecessor, topic.encode(), b"\0", state))).digest()
