"""Sealing content that has to stand in the log."""

from typing import Protocol


class Sealer(Protocol):
    """Authenticated encryption: AES-256-GCM, a fresh nonce for each seal (design section 4)."""

    def seal(self, plaintext: bytes, *, key: bytes, identity: bytes) -> bytes:
        """Return the ciphertext of ``plaintext``, bound to ``identity`` as associated data.

        ``key`` has 32 bytes.
        """
        ...

    def open(self, sealed: bytes, *, key: bytes, identity: bytes) -> bytes:
        """Return the plaintext.

        Raises:
            SealBrokenError: another key or identity, or the bytes were altered.
        """
        ...
