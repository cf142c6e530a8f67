"""Ed25519 by ``cryptography``, and its keys as files that other programs read too (PEM).

The private key is PKCS #8, the public one SubjectPublicKeyInfo, as OpenSSL writes them.
"""

from typing import TYPE_CHECKING, Final

from typing_extensions import override

from remembrancer.application.ports.randomness import Randomness
from remembrancer.application.ports.signer import SignatureCheck, Signer
from remembrancer.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES: Final = 32


class Ed25519Signer(Signer):
    """Signs with one key."""

    def __init__(self, *, key: bytes) -> None:
        """``key`` is the private key's 32 bytes."""
        if len(key) != KEY_BYTES:
            raise InvalidInputError(field="key", problem=f"must be {KEY_BYTES} bytes")
        self._key = key

    @override
    def sign(self, message: bytes) -> bytes:
        return _private(self._key).sign(message)

    @override
    def public_key(self) -> bytes:
        return _private(self._key).public_key().public_bytes_raw()


class Ed25519SignatureCheck(SignatureCheck):
    """Checks anybody's signatures."""

    @override
    def is_genuine(self, message: bytes, *, signature: bytes, public_key: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  # as above
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415  # as above
            Ed25519PublicKey,
        )

        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def new_key(randomness: Randomness) -> bytes:
    """Draw a private key."""
    return randomness.bytes(KEY_BYTES)


def private_pem(key: bytes) -> bytes:
    """Return a private key as a file holds it."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # as above

    return _private(key).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(public_key: bytes) -> bytes:
    """Return a public key as a file holds it."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415  # as above
        Ed25519PublicKey,
    )

    return Ed25519PublicKey.from_public_bytes(public_key).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def private_key_of(pem: bytes) -> bytes:
    """Read a private key's file.

    Raises:
        InvalidInputError: it isn't an Ed25519 private key in PEM, or it needs a password.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # as above
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415  # as above
        Ed25519PrivateKey,
    )

    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, UnsupportedAlgorithm, ValueError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInputError(field="key", problem="isn't an Ed25519 private key in PEM")
    return key.private_bytes_raw()


def public_key_of(pem: bytes) -> bytes:
    """Read a public key's file.

    Raises:
        InvalidInputError: it isn't an Ed25519 public key in PEM.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # as above
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415  # as above
        Ed25519PublicKey,
    )

    try:
        key = serialization.load_pem_public_key(pem)
    except (UnsupportedAlgorithm, ValueError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInputError(field="public-key", problem="isn't an Ed25519 public key in PEM")
    return key.public_bytes_raw()


def _private(key: bytes) -> "Ed25519PrivateKey":
    # Some 30 ms to import, and few processes sign anything.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415  # as above
        Ed25519PrivateKey,
    )

    return Ed25519PrivateKey.from_private_bytes(key)
