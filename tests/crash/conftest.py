"""A folder in memory, where there is such a place: what is cut or killed was never on a disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # a folder of its own is made in it


@pytest.fixture
def folder() -> Iterator[Path]:
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        yield Path(name)
