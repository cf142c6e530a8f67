"""Which embedder is asked follows from the space of the index."""

from remembrancer.application.embedders import Embedders
from remembrancer.contracts.embedder import HashingEmbedder

ONE, OTHER = HashingEmbedder(model="one"), HashingEmbedder(model="other")


def test_the_first_is_preferred() -> None:
    assert Embedders([ONE, OTHER]).preferred is ONE
    assert Embedders([]).preferred is None


def test_exactly_the_space_is_answered_for() -> None:
    embedders = Embedders([ONE])

    assert embedders.of(HashingEmbedder(model="one").embedding_tuple) is ONE
    assert embedders.of(OTHER.embedding_tuple) is None
    assert embedders.of(HashingEmbedder(model="one", revision="2").embedding_tuple) is None
    assert embedders.of(HashingEmbedder(model="one", dimensions=65).embedding_tuple) is None


def test_one_more_can_be_made_known_and_changes_no_preference() -> None:
    embedders = Embedders([ONE])

    embedders.add(OTHER)
    embedders.add(HashingEmbedder(model="one"))

    assert embedders.of(OTHER.embedding_tuple) is OTHER
    assert embedders.of(ONE.embedding_tuple) is ONE
    assert embedders.preferred is ONE
