"""Memories for the tests of use cases: in process, in one SQLite file, in PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.application.agreement import assert_agreement
from tests.application.far_house import FarHouse, open_far_house
from tests.application.house import BACKENDS, House, open_house, postgres_place

from remembrancer.composition.settings import StoreSettings


@pytest.fixture(params=BACKENDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | StoreSettings | None]:
    """Return where the memory is kept: None for one in process."""
    if request.param == "postgres":
        with postgres_place(tmp_path) as place:
            yield place
    else:
        yield None if request.param == "memory" else tmp_path / "memory.db"


@pytest.fixture
def house(path: Path | StoreSettings | None) -> Iterator[House]:
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
