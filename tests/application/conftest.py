"""Memories for the tests of use cases: in process, and in one SQLite file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.application.agreement import assert_agreement
from tests.application.far_house import FarHouse, open_far_house
from tests.application.house import BACKENDS, House, open_house


@pytest.fixture(params=BACKENDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Return where the memory is kept: None for one in process."""
    return None if request.param == "memory" else tmp_path / "memory.db"


@pytest.fixture
def house(path: Path | None) -> Iterator[House]:
    """Open a memory, and see at the end that all its parts agree."""
    with open_house(path) as house:
        yield house

        assert_agreement(house.store, all_have_vectors=False)


@pytest.fixture
def far(path: Path | None, tmp_path: Path) -> Iterator[FarHouse]:
    """Open a memory whose vectors are in Qdrant, and see at the end that all agree."""
    with open_far_house(path, tmp_path) as house:
        yield house

        house.way.open()
        house.memory.project()
        assert_agreement(house.agreeing(), all_have_vectors=False)
