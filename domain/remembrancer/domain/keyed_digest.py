"""HMAC-SHA-256, as RFC 2104 says it: two hashes over the key and what it keys.

Spelt out because every text that is shown is checked by one.  OpenSSL 3, which ``hmac.digest``
asks, looks its algorithm up anew each time, and that takes longer than hashing a usual text.
"""

import hmac
from hashlib import sha256

_BLOCK_BYTES = 64
"""Of SHA-256; a key is made as long with zero bytes."""
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))
"""What each byte of a key becomes before either hash."""


def keyed_digest(key: bytes, data: bytes) -> str:
    """Return the digest of ``data``, 64 hexadecimal digits."""
    if len(key) > _BLOCK_BYTES:  # To be hashed first; no key of ours is.
        return hmac.digest(key, data, "sha256").hex()
    block = key.ljust(_BLOCK_BYTES, b"\0")
    inner = sha256(block.translate(_INNER) + data).digest()
    return sha256(block.translate(_OUTER) + inner).hexdigest()
