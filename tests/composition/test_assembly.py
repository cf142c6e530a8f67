"""Opening a memory, and closing it whatever happens."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from remembrancer.composition import Settings, embedded, production
from remembrancer.composition.assembly import assembled, wired
from remembrancer.contracts.embedder import HashingEmbedder
from remembrancer.domain.errors import StoreCorruptError, StoreReadOnlyError, StoreUnavailableError


def test_wiring_opens_nothing(tmp_path: Path) -> None:
    wired(Settings.parse({"store": {"path": str(tmp_path / "memory.db")}}))

    assert list(tmp_path.iterdir()) == []


def test_a_failed_opening_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"no database" * 100)

    for _ in range(3):
        with pytest.raises(StoreCorruptError):
            embedded(path)

    assert [one.name for one in tmp_path.iterdir()] == ["memory.db"]


def test_an_error_inside_closes_the_memory(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError), embedded(tmp_path / "memory.db") as memory:
        memory.status()
        raise ZeroDivisionError

    assert [one.name for one in tmp_path.iterdir()] == ["memory.db"]


def test_memories_do_not_share_what_was_given_to_one(tmp_path: Path) -> None:
    with (
        embedded(tmp_path / "a.db", embedder=HashingEmbedder()) as one,
        embedded(tmp_path / "b.db") as other,
    ):
        assert one._container.embedders().preferred is not None
        preferred: Any = other._container.embedders().preferred
        assert preferred.embedding_tuple.provider == "wordllama"


def test_a_memory_in_process_needs_no_file(tmp_path: Path) -> None:
    settings = Settings.parse({"store": {"backend": "memory", "path": str(tmp_path / "x.db")}})
    with production(settings) as memory:
        assert memory.status().entries == 0

    assert list(tmp_path.iterdir()) == []


def test_what_is_opened_for_reading_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    embedded(path).close()
    settings = Settings.parse({"store": {"path": str(path), "read_only": True}})
    with assembled(settings) as memory:
        with pytest.raises(StoreReadOnlyError):
            memory.erase_session("s", tenant="acme")

        assert memory.status().entries == 0


def test_what_is_opened_for_reading_must_be_there(tmp_path: Path) -> None:
    settings = Settings.parse({"store": {"path": str(tmp_path / "no.db"), "read_only": True}})

    with pytest.raises(StoreUnavailableError, match="no such file"):
        assembled(settings)

    assert list(tmp_path.iterdir()) == []
