"""What every signer promises.

Enrol an adapter by subclassing :class:`SignerContract`::

    class TestMySigner(SignerContract):
        def signer(self, key: bytes) -> Signer:
            return MySigner(key)

        def check(self) -> SignatureCheck:
            return MySignatureCheck()
"""

from abc import ABC, abstractmethod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.application.ports.signer import SignatureCheck, Signer

# The first of RFC 8032's own examples (section 7.1, TEST 2).
KNOWN_KEY = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
KNOWN_PUBLIC_KEY = bytes.fromhex(
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
)
KNOWN_SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
MESSAGE = b"what was there"


class SignerContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make a signer and a check."""

    @abstractmethod
    def signer(self, key: bytes) -> Signer:
        """Make a signer of this private key, 32 bytes."""

    @abstractmethod
    def check(self) -> SignatureCheck:
        """Make a check."""

    def test_it_signs_as_the_standard_says(self) -> None:
        signer = self.signer(KNOWN_KEY)

        assert signer.public_key() == KNOWN_PUBLIC_KEY
        assert signer.sign(b"\x72") == KNOWN_SIGNATURE

    @given(key=st.binary(min_size=32, max_size=32), message=st.binary())
    def test_its_own_signature_is_genuine(self, key: bytes, message: bytes) -> None:
        signer = self.signer(key)

        signature = signer.sign(message)

        public_key = signer.public_key()
        assert self.check().is_genuine(message, signature=signature, public_key=public_key)

    @pytest.mark.parametrize(
        ("message", "signature", "public_key"),
        [
            (b"\x73", KNOWN_SIGNATURE, KNOWN_PUBLIC_KEY),
            (b"\x72", KNOWN_SIGNATURE[:-1] + b"\x01", KNOWN_PUBLIC_KEY),
            (b"\x72", KNOWN_SIGNATURE, bytes(32)),
            (b"\x72", b"", KNOWN_PUBLIC_KEY),
            (b"\x72", KNOWN_SIGNATURE, b"short"),
        ],
        ids=["message", "signature", "key", "no signature", "no key"],
    )
    def test_anything_else_is_not(
        self, message: bytes, signature: bytes, public_key: bytes
    ) -> None:
        assert not self.check().is_genuine(message, signature=signature, public_key=public_key)

    def test_shows_nothing_of_its_key(self) -> None:
        signer = self.signer(KNOWN_KEY)

        assert KNOWN_KEY.hex() not in repr(signer)
        assert repr(KNOWN_KEY) not in repr(signer)
