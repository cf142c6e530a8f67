import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.strict_json import parse_strict_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)  # fmt: skip


@given(values, st.sampled_from([None, 2]))
def test_reads_what_json_writes_however_it_is_spaced(value: Any, indent: int | None) -> None:
    assert parse_strict_json(json.dumps(value, indent=indent).encode()) == value


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"NaN", b"[Infinity]", b'{"a":-Infinity}', b"\xff", b"\xef\xbb\xbf1", b"'a'",
     "1".encode("utf-16"), b"1 2", b"9" * 5_000],
    ids=range(11),
)  # fmt: skip
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^isn't JSON in UTF-8$"):
        parse_strict_json(data)


@pytest.mark.parametrize("data", [b'{"a":1,"a":1}', b'[{"b":{"a":1,"c":2,"\\u0061":3}}]'])
def test_a_key_that_stands_twice_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^says something twice$"):
        parse_strict_json(data)


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^is nested too deeply$"):
        parse_strict_json(b"[" * 100_000)


@pytest.mark.parametrize("data", [b'{"canary', b"canary \xff", b'{"canary":1,"canary":2}'])
def test_a_refusal_quotes_nothing(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^(isn't|says) ") as refusal:
        parse_strict_json(data)

    assert "canary" not in f"{refusal.value!r}{refusal.value.__cause__!r}"
    assert refusal.value.__suppress_context__
