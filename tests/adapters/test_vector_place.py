"""Collections: one for each index, of this memory alone."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from tests.adapters.qdrant_servers import (
    URL,
    fresh_secret,
    in_folder,
    on_server,
    place_at,
    remove_what_was_left,
)
from typing_extensions import override

from remembrancer.application.ports import VectorPlace
from remembrancer.contracts.vector_examples import EAST, FIRST, put
from remembrancer.contracts.vector_indexes import SPACE
from remembrancer.contracts.vector_place import INDEX, VectorPlaceContract
from remembrancer.domain.errors import StoreCorruptError


@pytest.fixture(scope="module", autouse=True)
def _tidy_server() -> Iterator[None]:
    yield
    remove_what_was_left()


class TestQdrantFolder(VectorPlaceContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[VectorPlace]:
        with place_at(in_folder(folder)) as place:
            yield place

    def test_a_memory_neither_sees_nor_sweeps_anothers(self, tmp_path: Path) -> None:
        with place_at(in_folder(tmp_path)) as place:
            place.make(INDEX)
            put(place.store(INDEX), {FIRST: EAST})

        with place_at(in_folder(tmp_path), fresh_secret()) as other:
            with pytest.raises(StoreCorruptError):
                other.make(replace(INDEX, position=1))
            other.sweep(())

        with place_at(in_folder(tmp_path)) as place:
            assert place.store(INDEX).count() == 1

    def test_what_isnt_as_it_was_made_is_refused(self, tmp_path: Path) -> None:
        with place_at(in_folder(tmp_path)) as place:
            place.make(INDEX)
        meta = tmp_path / "qdrant" / "meta.json"
        meta.write_text(meta.read_text().replace(f'"{SPACE.model}"', '"another"'))

        with place_at(in_folder(tmp_path)) as place, pytest.raises(StoreCorruptError):
            place.store(INDEX).query(EAST, 5)

    def test_names_no_tenant_and_shows_no_secret(self, tmp_path: Path) -> None:
        with place_at(in_folder(tmp_path)) as place:
            place.make(INDEX)
            name = next((tmp_path / "qdrant" / "collection").iterdir()).name

            assert name.startswith("remembrancer_")
            assert name.endswith(f"_1_{SPACE.digest}")
            assert "0102030405" not in f"{name} {place!r} {place.store(INDEX)!r}"


class QdrantServerContract(VectorPlaceContract):
    grpc: ClassVar[bool]

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[VectorPlace]:
        with place_at(on_server(grpc=self.grpc), fresh_secret(), swept=True) as place:
            yield place


if URL is not None:

    class TestQdrantServerByHttp(QdrantServerContract):
        grpc = False

    class TestQdrantServerByGrpc(QdrantServerContract):
        grpc = True
