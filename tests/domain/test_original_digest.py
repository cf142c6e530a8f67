import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.original_digest import SALT_BYTES, original_digest

salts = st.binary(min_size=SALT_BYTES, max_size=SALT_BYTES)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def test_recorded_digest_stays_what_it_was() -> None:
    digest = original_digest(bytes(range(32)), "Zoë said 4711.")

    assert digest == hmac.digest(bytes(range(32)), "Zoë said 4711.".encode(), "sha256").hex()
    assert digest == "6c2777df521021dd7e369a23c8d2c6fac76c0c16c76f0dd7544870cc16829a13"


def test_salt_hides_a_text_that_could_be_guessed() -> None:
    one, other = original_digest(b"a" * 32, "4711"), original_digest(b"b" * 32, "4711")

    assert one != other
    assert hashlib.sha256(b"4711").hexdigest() not in {one, other}


@given(salts, texts, texts)
def test_digest_tells_texts_apart(salt: bytes, one: str, other: str) -> None:
    assert (original_digest(salt, one) == original_digest(salt, other)) is (one == other)


@given(salts, texts)
def test_digest_is_64_hexadecimal_digits(salt: bytes, text: str) -> None:
    digest = original_digest(salt, text)

    assert len(digest) == 64
    assert int(digest, 16) >= 0
    assert digest == digest.lower()


def test_lone_surrogate_has_no_digest() -> None:
    with pytest.raises(UnicodeEncodeError):
        original_digest(bytes(32), "\ud800")
