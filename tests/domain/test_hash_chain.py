import hashlib

from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.hash_chain import GENESIS, event_hash

hashes = st.binary(min_size=32, max_size=32)
topics = st.text("abc._", min_size=1, max_size=8)
links = st.tuples(hashes, topics, st.binary(max_size=12))


def test_recorded_hash_stays_what_it_was() -> None:
    first = event_hash(GENESIS, "a.topic", b'{"a":1}')
    second = event_hash(first, "a.topic", b'{"a":1}')

    assert first == hashlib.sha256(bytes(32) + b'a.topic\0{"a":1}').digest()
    assert second.hex() == "742dee93742431d9d902e02196dabe75a1085b2bb1f1b3094d3bba571279d431"


@given(links, links)
def test_only_the_same_link_has_the_same_hash(
    one: tuple[bytes, str, bytes], other: tuple[bytes, str, bytes]
) -> None:
    assert (event_hash(*one) == event_hash(*other)) is (one == other)


def test_bytes_do_not_wander_between_topic_and_state() -> None:
    assert event_hash(GENESIS, "ab", b"c") != event_hash(GENESIS, "a", b"bc")


@given(st.lists(st.tuples(topics, st.binary(max_size=8)), min_size=1, max_size=5), st.data())
def test_any_change_in_the_past_shows_at_the_end(
    stream: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(stream) - 1))
    forged = [*stream]
    forged[at] = (forged[at][0], forged[at][1] + b" ")

    assert _end(forged) != _end(stream)


def _end(stream: list[tuple[str, bytes]]) -> bytes:
    last = GENESIS
    for topic, state in stream:
        last = event_hash(last, topic, state)
    return last
