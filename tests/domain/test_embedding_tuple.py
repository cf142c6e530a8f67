from typing import Any

import pytest

from remembrancer.domain.embedding_tuple import EmbeddingTuple, recorded_tuple
from remembrancer.domain.errors import InvalidInputError

STATE: dict[str, Any] = {
    "provider": "wordllama",
    "model": "l2-supercat",
    "model_revision": "0.4.0",
    "dimensions": 256,
    "input_preparation": "plain@1",
}


def test_recorded_digest_stays_what_it_was() -> None:
    """Indexes are named by it."""
    assert EmbeddingTuple(**STATE).digest == (
        "29109002d0b6e83fa9c44f49437074f724c87c8e993e8010dbe36ee9dbdec0c5"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "other"},
        {"model": "other"},
        {"model_revision": "0.4.1"},
        {"dimensions": 255},
        {"input_preparation": "plain@2"},
        {"provider": "wordllama/l2-supercat", "model": ""},
    ],
)
def test_each_part_names_another_space(change: dict[str, Any]) -> None:
    changed = EmbeddingTuple.model_construct(**STATE | change)

    assert changed.digest != EmbeddingTuple(**STATE).digest
    assert changed != EmbeddingTuple(**STATE)


def test_plain_data_makes_the_same_tuple() -> None:
    embedding = EmbeddingTuple(**STATE)
    again = EmbeddingTuple.parse(embedding.model_dump(mode="json"))

    assert (again, hash(again)) == (embedding, hash(embedding))
    assert str(embedding) == "wordllama/l2-supercat@0.4.0 (256 dimensions)"


def test_recorded_tuple_is_made_once_and_checked_as_any() -> None:
    assert recorded_tuple(**STATE) == EmbeddingTuple(**STATE)
    assert recorded_tuple(**STATE) is recorded_tuple(**STATE)
    for impossible in ({"dimensions": 256.0}, {"dimensions": True}, {"provider": ["x"]}):
        with pytest.raises((InvalidInputError, TypeError)):
            recorded_tuple(**STATE | impossible)
