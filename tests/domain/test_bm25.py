"""Weights of words."""

import math

import pytest

from remembrancer.domain.bm25 import (
    MATCHES_MIN,
    affordable,
    in_steps,
    inverse_document_frequency,
    literal_score,
    term_weight,
)


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    rare = inverse_document_frequency(documents=100, holding=1)
    common = inverse_document_frequency(documents=100, holding=60)

    assert rare > common > 0.0


def test_a_word_that_all_hold_still_weighs_something() -> None:
    weight = inverse_document_frequency(documents=1_000_000, holding=1_000_000)

    assert in_steps(weight) > 1


def test_the_weight_of_a_word_of_one_in_ten() -> None:
    assert inverse_document_frequency(documents=10, holding=1) == pytest.approx(math.log(22 / 3))


def test_once_in_a_document_of_mean_length_counts_one() -> None:
    assert term_weight(occurrences=1, length=60, mean_length=60.0) == pytest.approx(1.0)


def test_longer_documents_count_less() -> None:
    short = term_weight(occurrences=1, length=10, mean_length=60.0)

    assert short > term_weight(occurrences=1, length=100, mean_length=60.0)


def test_more_punctuation_scores_higher() -> None:
    assert literal_score(2) > literal_score(1) > 0.0


def test_a_score_is_at_least_one_step() -> None:
    assert in_steps(0.0) == 1


def test_all_words_of_an_ordinary_question_are_looked_for() -> None:
    assert affordable([5, 0, 90_000, 7], documents=100_000) == [0, 1, 2, 3]


def test_the_commonest_words_of_a_long_question_are_left_out() -> None:
    assert affordable([90_000, 10, 90_000, 90_000, 20], documents=100_000) == [0, 1, 2, 4]


def test_one_word_is_always_looked_for() -> None:
    assert affordable([MATCHES_MIN * 9, MATCHES_MIN * 8], documents=1) == [1]


def test_no_words_are_affordable() -> None:
    assert affordable([], documents=0) == []
