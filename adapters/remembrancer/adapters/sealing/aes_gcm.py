"""AES-256-GCM by ``cryptography``.

The sealed form is the 12-byte nonce, the ciphertext and the 16-byte tag, in this order.
"""

from typing_extensions import override

from remembrancer.application.ports.randomness import Randomness
from remembrancer.application.ports.sealer import Sealer
from remembrancer.domain.errors import SealBrokenError

KEY_BYTES = 32
NONCE_BYTES = 12


class AesGcmSealer(Sealer):
    """A fresh random nonce for each seal; each key seals few records, so none repeats."""

    def __init__(self, *, randomness: Randomness) -> None:
        self._randomness = randomness

    @override
    def seal(self, plaintext: bytes, *, key: bytes, identity: bytes) -> bytes:
        # Some 30 ms to import, and most processes seal nothing.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        nonce = self._randomness.bytes(NONCE_BYTES)
        return nonce + AESGCM(_checked(key)).encrypt(nonce, plaintext, identity)

    @override
    def open(self, sealed: bytes, *, key: bytes, identity: bytes) -> bytes:
        # As above.
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        if len(nonce) < NONCE_BYTES:
            raise SealBrokenError
        try:
            return AESGCM(_checked(key)).decrypt(nonce, ciphertext, identity)
        except InvalidTag as error:
            raise SealBrokenError from error


def _checked(key: bytes) -> bytes:
    # The library would also take 16 bytes, and quietly seal with AES-128.
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
    return key
