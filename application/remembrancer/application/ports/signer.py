"""Signatures under statements about a log."""

from typing import Protocol


class Signer(Protocol):
    """Ed25519 with one private key (adr/0022).  ``repr`` shows nothing of it."""

    def sign(self, message: bytes) -> bytes:
        """Return the signature of ``message``, 64 bytes; the same each time."""
        ...

    def public_key(self) -> bytes:
        """Return the public key, 32 bytes."""
        ...


class SignatureCheck(Protocol):
    """Says whether somebody's signature is genuine."""

    def is_genuine(self, message: bytes, *, signature: bytes, public_key: bytes) -> bool:
        """Say whether ``signature`` is that of ``message`` by the owner of ``public_key``.

        False also for what is no signature or no key.
        """
        ...
