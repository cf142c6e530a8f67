"""The digest of an original that the log may keep.

HMAC-SHA-256 of the text under a random salt of its own: a bare hash of a short text can be guessed
back. The salt is kept in the vault and goes with the text, and then nothing of it can be confirmed
(design section 4).
"""

from remembrancer.domain.keyed_digest import keyed_digest

SALT_BYTES = 32


def original_digest(salt: bytes, text: str) -> str:
    """Return the digest, 64 hexadecimal digits."""
    return keyed_digest(salt, text.encode())
