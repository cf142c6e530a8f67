import hmac

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remembrancer.domain.keyed_digest import keyed_digest


@given(st.binary(max_size=140), st.binary(max_size=300))
@example(b"k" * 64, b"").via("a whole block")
@example(b"k" * 65, b"").via("a key that is hashed first")
def test_digest_is_the_standard_librarys(key: bytes, data: bytes) -> None:
    assert keyed_digest(key, data) == hmac.digest(key, data, "sha256").hex()


def test_digest_is_that_of_the_standards_own_example() -> None:
    """RFC 4231, test case 2."""
    digest = keyed_digest(b"Jefe", b"what do ya want for nothing?")

    assert digest == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"


def test_text_is_not_taken_for_bytes() -> None:
    with pytest.raises(TypeError):
        keyed_digest(b"key", "text")  # type: ignore[arg-type]  # the point
