"""Counting with the static model's own tokenizer."""

from collections.abc import Sequence

from typing_extensions import override

from remembrancer.adapters.wordllama.static_model import ID_BYTES, StaticModel
from remembrancer.application.ports.token_counter import TokenCounter

NAME = "wordllama-l2-supercat@1"


class WordLlamaTokenCounter(TokenCounter):
    """Tokens of the vocabulary that the model's vectors are made from (Llama 2's)."""

    def __init__(self, *, model: StaticModel) -> None:
        self._model = model

    @property
    @override
    def name(self) -> str:
        return NAME

    @override
    def count(self, text: str) -> int:
        return len(self._model.token_ids(text)) // ID_BYTES

    @override
    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]
