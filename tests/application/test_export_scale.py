"""Exporting and restoring much: the memory that it takes doesn't grow with the store."""

import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.application.exported import store_of
from tests.application.house import House, an_entry

from remembrancer.application.export import ExportRequest
from remembrancer.composition.export_file import created, lines_of

AT_ONCE = 1_000
BYTES_MAX = 16 * 2**20
"""Python's own, over what there was before; a batch of lines takes some 4 MiB."""


@pytest.mark.parametrize(
    "entries",
    [2_000, pytest.param(100_000, marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_memory_does_not_grow_with_the_store(tmp_path: Path, entries: int) -> None:
    file = tmp_path / "all.jsonl.gz"
    with store_of("sqlite", tmp_path / "lived") as lived:
        for start in range(0, entries, AT_ONCE):
            lived.memory.remember_many(
                [an_entry(f"invoice {number}") for number in range(start, start + AT_ONCE)]
            )
        with store_of("sqlite", tmp_path / "empty") as empty:
            exporting = peak_of(lambda: export(lived, file))
            restoring = peak_of(lambda: restore(empty, file))

            assert empty.store.vault.count() == empty.store.log.position() == entries
            assert empty.store.sparse.count() == entries
    assert exporting < BYTES_MAX
    assert restoring < BYTES_MAX


def export(house: House, file: Path) -> None:
    with created(file) as write:
        house.container.export()(ExportRequest(), write)


def restore(house: House, file: Path) -> None:
    house.container.restore()(partial(lines_of, file))


def peak_of(work: Callable[[], None]) -> int:
    with traced():
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before


@contextmanager
def traced() -> Generator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
