"""How the memory stands, in numbers."""

from pathlib import Path

from tests.application.house import HardOfHearing, House, an_entry, open_house

from remembrancer.application.ports import IndexState
from remembrancer.contracts.embedder import HashingEmbedder


def test_an_empty_memory_says_so(house: House) -> None:
    stands = house.memory.status()

    assert (stands.entries, stands.events, stands.indexes) == (0, 0, ())
    assert (stands.versions_by_words, stands.versions_by_vector) == (0, 0)
    assert stands.dense == "no_vector_index"


def test_versions_are_counted_apart_from_entries(path: Path | None) -> None:
    with open_house(path, embedders=(HardOfHearing(),)) as house:
        first, second, _ = house.memory.remember_many(
            [an_entry(), an_entry(tenant="other"), an_entry("unheard")]
        )
        house.memory.correct(first, text="edited", reason="edited")
        house.memory.erase(second, reason="user_request", tenant="other")

        stands = house.memory.status()

    assert (stands.entries, stands.events) == (2, 5)
    assert (stands.versions_by_words, stands.versions_by_vector) == (3, 2)
    assert stands.dense == "ready"


def test_every_index_is_listed(house: House) -> None:
    house.memory.remember(an_entry())
    house.memory.reindex(embedder=HashingEmbedder(model="second"))

    stands = house.memory.status()

    assert [one.state for one in stands.indexes] == [IndexState.RETIRED, IndexState.ACTIVE]
    assert stands.versions_by_vector == 1
