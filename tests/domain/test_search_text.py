"""How texts are prepared and questions taken apart."""

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.search_text import (
    PHRASE_WORDS_MAX,
    TERMS_MAX,
    parsed_question,
    prepared,
    words,
)

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pre-edit GB/s v1.2.3", ["pre", "edit", "gb", "s", "v1", "2", "3"]),
        ("naïve CAFÉ", ["naive", "cafe"]),
        ("Straße ΣΟΦΟΣ", ["strasse", "σοφοσ"]),
        ("Łódź Øre", ["lodz", "ore"]),
        ("東京へ", ["東", "京", "へ"]),
        ("ｶﾞ が", ["ガ", "が"]),
        ("한국", ["한", "국"]),
        ("हिन्दी", ["हिन्दी"]),
        ("٣٤ \uff12", ["34", "2"]),
        ("it🔥❤️", ["it", "🔥", "❤"]),
        ("5㎏ Brand™", ["5", "kg", "brand", "tm"]),
        ("½", ["1", "2"]),
        ("so\u00adft a\u200bb", ["soft", "a", "b"]),
        ("a\0b", ["a", "b"]),
        ("\ud800x", ["x"]),
        ("« don\u2019t », ok…", ["don", "t", "ok"]),
        ("\u202eabc\U000e0041", ["abc"]),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert words(prepared(text)) == expected


@given(st.text())
def test_a_prepared_text_keeps_its_words_when_prepared_again(text: str) -> None:
    once = prepared(text)

    assert words(prepared(once)) == words(once)


@given(st.text())
def test_normal_forms_have_the_same_words(text: str) -> None:
    composed = words(prepared(unicodedata.normalize("NFC", text)))

    assert words(prepared(unicodedata.normalize("NFD", text))) == composed


@given(st.text())
def test_a_prepared_text_can_be_stored(text: str) -> None:
    assert "\0" not in prepared(text).encode().decode()


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("pre-edit hook", [("pre", "edit"), ("hook",)]),
        ("what is the matter", [("matter",)]),
        ("to be or not to be", [("to",), ("be",), ("or",), ("not",)]),
        ("東京都", [("東", "京"), ("京", "都")]),
        ("京", [("京",)]),
        ("東京、大阪", [("東", "京"), ("大", "阪")]),
        ("v1.2.3を使う", [("v1", "2", "3"), ("を", "使"), ("使", "う")]),
        ("one\u2014two three--four", [("one",), ("two",), ("three",), ("four",)]),
        ("same Same same", [("same",)]),
        ('"quoted" (words)', [("quoted",), ("words",)]),
    ],
)
def test_words_and_phrases_of_a_question(text: str, phrases: list[tuple[str, ...]]) -> None:
    assert list(parsed_question(text).phrases) == phrases


def test_no_character_has_case_beyond_ascii_once_it_is_prepared() -> None:
    every = [chr(point) for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000]

    cased = [one for one in every if (spelt := prepared(one)).lower() != spelt.translate(_LOWER)]

    assert cased == []


def test_a_question_of_punctuation_looks_for_it() -> None:
    question = parsed_question('=> "')

    assert (question.phrases, question.literals) == ((), ("=>", '"'))


def test_punctuation_beside_words_is_not_looked_for() -> None:
    assert parsed_question("a => zebra").literals == ()


@pytest.mark.parametrize("text", ["", " \n", "\0", "\u200d", "\ud800"])
def test_nothing_to_look_for(text: str) -> None:
    assert parsed_question(text) == parsed_question("")


@given(st.text(max_size=200))
def test_bounds_hold(text: str) -> None:
    question = parsed_question(text * 3)

    assert len(question.phrases) <= TERMS_MAX
    assert all(1 <= len(phrase) <= PHRASE_WORDS_MAX for phrase in question.phrases)


def test_a_long_question_keeps_its_first_telling_words() -> None:
    text = "the " + " ".join(f"w{number}" for number in range(1_000))

    assert parsed_question(text).phrases == tuple((f"w{number}",) for number in range(TERMS_MAX))
