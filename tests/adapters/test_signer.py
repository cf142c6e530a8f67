import pytest
from typing_extensions import override

from remembrancer.adapters.randomness.randomness import SystemRandomness
from remembrancer.adapters.sealing.signer import (
    Ed25519SignatureCheck,
    Ed25519Signer,
    new_key,
    private_key_of,
    private_pem,
    public_key_of,
    public_pem,
)
from remembrancer.application.ports.signer import SignatureCheck, Signer
from remembrancer.contracts.signer import KNOWN_KEY, KNOWN_PUBLIC_KEY, SignerContract
from remembrancer.domain.errors import InvalidInputError


class TestEd25519Signer(SignerContract):
    @override
    def signer(self, key: bytes) -> Signer:
        return Ed25519Signer(key=key)

    @override
    def check(self) -> SignatureCheck:
        return Ed25519SignatureCheck()


def test_keys_are_read_back_from_their_files() -> None:
    private, public = private_pem(KNOWN_KEY), public_pem(KNOWN_PUBLIC_KEY)

    assert private_key_of(private) == KNOWN_KEY
    assert public_key_of(public) == KNOWN_PUBLIC_KEY


def test_new_keys_differ() -> None:
    assert new_key(SystemRandomness()) != new_key(SystemRandomness())


@pytest.mark.parametrize("pem", [b"", b"nothing", public_pem(KNOWN_PUBLIC_KEY)])
def test_what_is_no_private_key_is_refused(pem: bytes) -> None:
    with pytest.raises(InvalidInputError, match="private key"):
        private_key_of(pem)


@pytest.mark.parametrize("pem", [b"", b"nothing", private_pem(KNOWN_KEY)])
def test_what_is_no_public_key_is_refused(pem: bytes) -> None:
    with pytest.raises(InvalidInputError, match="public key"):
        public_key_of(pem)


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        Ed25519Signer(key=b"short")
