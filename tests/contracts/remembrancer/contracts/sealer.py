"""What every sealer promises.

Enrol an adapter by subclassing :class:`SealerContract`::

    class TestMySealer(SealerContract):
        def sealer(self) -> Sealer:
            return MySealer()
"""

from abc import ABC, abstractmethod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.application.ports.sealer import Sealer
from remembrancer.domain.errors import SealBrokenError

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))
IDENTITY = b"selection 7"
PLAINTEXT = b"canarybird " * 20


class SealerContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to make the sealer."""

    @abstractmethod
    def sealer(self) -> Sealer:
        """Make a sealer."""

    @given(plaintext=st.binary(), key=st.binary(min_size=32, max_size=32), identity=st.binary())
    def test_opens_what_was_sealed(self, plaintext: bytes, key: bytes, identity: bytes) -> None:
        sealed = self.sealer().seal(plaintext, key=key, identity=identity)

        assert self.sealer().open(sealed, key=key, identity=identity) == plaintext

    def test_sealed_bytes_do_not_show_the_plaintext(self) -> None:
        sealed = self.sealer().seal(PLAINTEXT, key=KEY, identity=IDENTITY)

        assert b"canarybird" not in sealed

    def test_seals_the_same_bytes_differently_each_time(self) -> None:
        sealer = self.sealer()

        sealed = {sealer.seal(PLAINTEXT, key=KEY, identity=IDENTITY) for _ in range(100)}

        assert len(sealed) == 100

    def test_another_key_does_not_open(self) -> None:
        sealed = self.sealer().seal(PLAINTEXT, key=KEY, identity=IDENTITY)

        with pytest.raises(SealBrokenError):
            self.sealer().open(sealed, key=OTHER_KEY, identity=IDENTITY)

    def test_another_identity_does_not_open(self) -> None:
        sealed = self.sealer().seal(PLAINTEXT, key=KEY, identity=IDENTITY)

        with pytest.raises(SealBrokenError):
            self.sealer().open(sealed, key=KEY, identity=b"selection 8")

    def test_no_altered_byte_opens(self) -> None:
        sealed = self.sealer().seal(PLAINTEXT, key=KEY, identity=IDENTITY)

        for place in range(len(sealed)):
            altered = bytearray(sealed)
            altered[place] ^= 1
            with pytest.raises(SealBrokenError):
                self.sealer().open(bytes(altered), key=KEY, identity=IDENTITY)

    def test_no_shortened_seal_opens(self) -> None:
        sealed = self.sealer().seal(PLAINTEXT, key=KEY, identity=IDENTITY)

        for length in range(len(sealed)):
            with pytest.raises(SealBrokenError):
                self.sealer().open(sealed[:length], key=KEY, identity=IDENTITY)

    @pytest.mark.parametrize("length", [0, 16, 24, 31, 33])
    def test_a_key_of_another_length_is_refused(self, length: int) -> None:
        with pytest.raises(ValueError, match="32 bytes"):
            self.sealer().seal(PLAINTEXT, key=bytes(length), identity=IDENTITY)

    def test_a_broken_seal_tells_nothing_of_what_is_in_it(self) -> None:
        sealed = self.sealer().seal(PLAINTEXT, key=KEY, identity=IDENTITY)

        with pytest.raises(SealBrokenError) as caught:
            self.sealer().open(sealed, key=OTHER_KEY, identity=IDENTITY)

        shown = str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)
        assert "canarybird" not in shown
        assert OTHER_KEY.hex() not in shown
