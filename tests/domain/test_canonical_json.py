import json
import math
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.canonical_json import canonical_json, parse_canonical_json, proven_json

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(values)
def test_what_was_written_is_read_back(value: object) -> None:
    written = canonical_json(value)

    assert parse_canonical_json(written) == value
    assert proven_json(written) == value
    assert canonical_json(parse_canonical_json(written)) == written


@given(st.dictionaries(texts, st.integers(), min_size=2))
def test_order_of_insertion_does_not_show(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))

    assert canonical_json(turned) == canonical_json(value)


def _spelt_exactly(value: object) -> bytes:
    """By the standard library alone, whatever spells it faster."""
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return encoder.encode(value).encode()


@given(values)
def test_spelling_is_the_standard_librarys(value: object) -> None:
    assert canonical_json(value) == _spelt_exactly(value)
    assert canonical_json((value, value)) == _spelt_exactly([value, value])


def test_every_character_is_spelt_as_the_standard_library_does() -> None:
    for first in range(0, 0x110000, 0x800):
        if first != 0xD800:  # Surrogates, which are none.
            text = "".join(map(chr, range(first, first + 0x800)))

            assert canonical_json({text: [text]}) == _spelt_exactly({text: [text]})


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, -(2**63), 2**64, 10**4_000], ids=range(5))
def test_whole_numbers_of_any_length_are_spelt_out(number: int) -> None:
    assert canonical_json({"n": number, "l": [-number]}) == _spelt_exactly(
        {"n": number, "l": [-number]}
    )


@pytest.mark.parametrize("value", [10**5_000, [10**5_000], {"n": 10**5_000}], ids=range(3))
def test_number_that_python_would_not_read_back_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="Exceeds the limit"):
        canonical_json(value)


def test_deep_nesting_is_spelt_as_far_as_the_standard_library_goes() -> None:
    nested: list[object] = []
    for _ in range(300):
        nested = [nested]

    assert canonical_json(nested) == b"[" * 301 + b"]" * 301


class _Level(StrEnum):
    LOW = "low"


def test_string_of_another_class_is_spelt_as_its_text() -> None:
    assert canonical_json({"level": _Level.LOW, _Level.LOW: 1}) == b'{"level":"low","low":1}'


def test_spelling_is_fixed() -> None:
    value = {"é": [1, 1.0, -0.0, True, None], "a": "ü\n\u2028", "Z": {}}

    assert canonical_json(value) == (
        '{"Z":{},"a":"ü\\n\u2028","é":[1,1.0,-0.0,true,null]}'.encode()
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"score": [number]})


def test_lone_surrogate_is_not_written() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        canonical_json("\ud800")


@pytest.mark.parametrize("key", [1, 1.5, True, None, b"a"])
def test_only_strings_are_keys(key: object) -> None:
    """The encoder alone would write 1 and "1" alike."""
    with pytest.raises(TypeError):
        canonical_json([({"outer": {key: 1}},)])


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), 1j])
def test_what_json_cannot_hold_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":1,"a":2}',
        b'{"a":1,"a":1}',
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1}\n',
        b'"\\u00e9"',
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b"1.50",
        b"01",
        b"{'a':1}",
        b"",
        b"\xef\xbb\xbf1",
        '{"a":1}'.encode("utf-16"),
        b"9" * 5000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=range(20),
)
def test_any_other_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # json words some of them, and it may change
        parse_canonical_json(data)


@given(st.binary(max_size=40) | texts.map(str.encode))
def test_whatever_is_read_was_canonical(data: bytes) -> None:
    try:
        value = parse_canonical_json(data)
    except ValueError:
        return

    assert canonical_json(value) == data


@given(values)
def test_every_json_reader_reads_it_alike(value: object) -> None:
    assert json.loads(canonical_json(value)) == value
