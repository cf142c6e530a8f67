"""What `make wheel` runs, against the installed wheel, where no sources are."""

import importlib
import importlib.metadata
import os
import pkgutil
import sysconfig
from datetime import timedelta
from pathlib import Path

import pytest

import remembrancer

SOURCES = Path(os.environ["REMEMBRANCER_SOURCES"])
SOURCE_ROOTS = ["domain", "application", "adapters", "composition", "tests/contracts"]
PLACE = Path(sysconfig.get_paths()["purelib"])


def _shipped() -> list[str]:
    return sorted(
        str(path.relative_to(SOURCES / source_root))
        for source_root in SOURCE_ROOTS
        for path in (SOURCES / source_root / "remembrancer").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


def test_the_wheel_is_what_is_tested() -> None:
    assert [Path(place) for place in remembrancer.__path__] == [PLACE / "remembrancer"]


@pytest.mark.parametrize("name", _shipped())
def test_file_is_in_the_wheel_as_it_is_in_the_sources(name: str) -> None:
    (source,) = [
        SOURCES / root / name for root in SOURCE_ROOTS if (SOURCES / root / name).exists()
    ]

    assert (PLACE / name).read_bytes() == source.read_bytes()


def test_nothing_else_is_in_the_wheel() -> None:
    installed = importlib.metadata.files("remembrancer") or []

    names = {str(file) for file in installed if file.parts[0] == "remembrancer"}
    assert {name for name in names if "__pycache__" not in name} == set(_shipped())
    assert {file.parts[0] for file in installed if file.parts[0] != "remembrancer"} <= {
        "..",  # the command
        *(part.parts[0] for part in installed if part.parts[0].endswith(".dist-info")),
    }


def test_every_module_can_be_imported() -> None:
    """With nothing but what the wheel says it depends on, and pytest for the suites."""
    names = [
        module.name
        for module in pkgutil.walk_packages(remembrancer.__path__, "remembrancer.")
        if not module.name.endswith("__main__")
    ]

    for name in names:
        importlib.import_module(name)
    assert {"remembrancer.domain", "remembrancer.contracts"} <= set(names)


def test_memory_remembers(tmp_path: Path) -> None:
    from remembrancer.composition import embedded  # noqa: PLC0415  # after the imports above
    from remembrancer.domain import NewEntry, RecallContext, RecallQuery  # noqa: PLC0415  # as above

    who = {"tenant": "acme", "owner": "ana"}
    entry = NewEntry.parse(
        who | {"scope": "a", "text": "Texts are kept in the vault.", "sensitivity": "public"}
    )
    query = RecallQuery.parse(
        who
        | {
            "principal": "agent-7",
            "scopes": ("a",),
            "read_ceiling": "public",
            "question": "Where are texts kept?",
        }
    )
    context = RecallContext.parse(
        {
            "policy_version": "p1",
            "retrieval_policy_version": "r1",
            "surface": "cli",
            "task_digest": "0",
            "sensitivity_floor": "public",
        }
    )
    with embedded(tmp_path / "memory.db") as memory:
        entry_id = memory.remember(entry)
        found = memory.recall(query, context)

    assert [one.entry_id for one in found.entries] == [entry_id]
    assert found.entries[0].recorded_at.utcoffset() == timedelta(0)
