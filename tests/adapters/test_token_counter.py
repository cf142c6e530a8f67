"""Token counters keep the contract; the default counts what the model's tokenizer counts."""

from array import array
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from typing_extensions import override

from remembrancer.adapters.wordllama import static_model
from remembrancer.adapters.wordllama.static_model import StaticModel
from remembrancer.adapters.wordllama.token_counter import WordLlamaTokenCounter
from remembrancer.application.ports.token_counter import TokenCounter
from remembrancer.contracts.token_counter import TokenCounterContract, WordCounter

MODEL = StaticModel()

# What the rules for cutting a text could get wrong, drawn again and again.
PIECES = st.sampled_from(
    [" ", "  ", "\n", "\r", "\t", "▁", "<s>", "</s>", "<unk>", "<", "s>", "{\r", ">\r", "a", "the"]
)
TRICKY = st.lists(PIECES | st.text(max_size=6), max_size=30).map("".join)


@cache
def reference() -> Tokenizer:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return Tokenizer.from_file(str(file))


def tokenized(text: str) -> list[int]:
    ids: list[int] = reference().encode(text, add_special_tokens=False).ids
    return ids


class TestWordLlamaTokenCounter(TokenCounterContract):
    @override
    def token_counter(self) -> TokenCounter:
        return WordLlamaTokenCounter(model=MODEL)


class TestWordCounter(TokenCounterContract):
    @override
    def token_counter(self) -> TokenCounter:
        return WordCounter()


@given(TRICKY)
def test_tokens_are_those_of_the_tokenizer_itself(text: str) -> None:
    assert array("i", MODEL.token_ids(text)).tolist() == tokenized(text)


def test_no_token_crosses_where_texts_are_cut() -> None:
    words = [token.lstrip("▁") for token in reference().get_vocab()]

    assert not [word for word in words if "▁" in word or "\n" in word]


def test_tokens_stay_the_same_when_the_memory_of_words_starts_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "one two three four five six seven two one " * 3
    model = StaticModel()
    monkeypatch.setattr(static_model, "WORDS_MAX", 3)

    assert array("i", model.token_ids(text)).tolist() == tokenized(text)


def test_a_run_without_spaces_is_read_in_bounded_pieces() -> None:
    run = "ab" * static_model.RUN_CHARACTERS_MAX

    counted = WordLlamaTokenCounter(model=MODEL).count(run)

    assert abs(counted - len(tokenized(run))) <= 2
