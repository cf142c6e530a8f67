"""Who may import what, beyond import-linter's rules in pyproject.toml.

It sees only the first names of foreign packages, and forbids only those that it is told of.
"""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RULES = {rule["name"]: rule for rule in PROJECT["tool"]["importlinter"]["contracts"]}
FOREIGN = {
    "domain": {"eventsourcing", "pydantic", "pydantic_core"},  # The last is pydantic's engine.
    "application": {"anyio", "eventsourcing", "pydantic", "typing_extensions"},
    "tests/contracts": {"anyio", "eventsourcing", "hypothesis", "pytest", "typing_extensions"},
}
"""What a ring may import from others; adapters are there to import the rest."""
NOT_IN_THE_CORE = {
    *("asyncio", "concurrent", "ctypes", "http", "importlib", "logging", "multiprocessing", "os"),
    *("pickle", "random", "secrets", "select", "shelve", "shutil", "signal", "socket", "sqlite3"),
    *("ssl", "subprocess", "tempfile", "time"),
}
"""Of the standard library, for domain and application: I/O, processes, clocks and dice."""
LIBRARY_INSIDE = {
    "domain": {"eventsourcing.domain", "eventsourcing.utils"},
    "application": {"eventsourcing.domain"},
    "composition": set[str](),
    "tests/contracts": {"eventsourcing.domain"},
}
"""The event-sourcing library's persistence is the adapters' business."""


def _imported(path: Path) -> set[str]:
    """Return the dotted names of all modules that one imports, wherever it does."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def _imports_of(ring: str) -> list[tuple[str, str]]:
    """Return (file, imported module) for all of a ring."""
    return [
        (str(path.relative_to(ROOT)), name)
        for path in sorted((ROOT / ring).rglob("*.py"))
        for name in sorted(_imported(path))
    ]


def _first(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("ring", FOREIGN)
def test_ring_imports_only_what_it_may_know(ring: str) -> None:
    strangers = [
        (file, name)
        for file, name in _imports_of(ring)
        if _first(name) not in {"remembrancer", *FOREIGN[ring], *sys.stdlib_module_names}
    ]

    assert not strangers


@pytest.mark.parametrize("ring", ["domain", "application"])
def test_core_leaves_the_world_to_adapters(ring: str) -> None:
    found = [(file, name) for file, name in _imports_of(ring) if _first(name) in NOT_IN_THE_CORE]

    assert not found


@pytest.mark.parametrize("ring", LIBRARY_INSIDE)
def test_recorders_and_mappers_are_known_to_adapters_only(ring: str) -> None:
    found = [
        (file, name)
        for file, name in _imports_of(ring)
        if _first(name) == "eventsourcing" and name not in LIBRARY_INSIDE[ring]
    ]

    assert not found


@pytest.mark.parametrize(
    "ring", ["domain", "application", "adapters", "composition", "tests/contracts"]
)
def test_modules_are_imported_by_their_whole_names(ring: str) -> None:
    """A relative import hides which ring it leads to."""
    assert not [(file, name) for file, name in _imports_of(ring) if name.startswith(".")]


def test_every_adapter_package_is_kept_apart() -> None:
    """One that is missing in the rule could import another unseen."""
    packages = {
        f"remembrancer.adapters.{path.parent.name}"
        for path in (ROOT / "adapters/remembrancer/adapters").glob("*/__init__.py")
    }

    listed = RULES["Adapters of different technologies do not meet"]["modules"]
    assert listed == sorted(packages)


def test_what_only_adapters_need_is_forbidden_to_the_core() -> None:
    needed = {
        _first(name)
        for _, name in _imports_of("adapters") + _imports_of("composition")
        if _first(name) not in {"remembrancer", *sys.stdlib_module_names, *FOREIGN["application"]}
    }

    rule = RULES["The core does no I/O, reads no clock and rolls no dice"]
    assert needed <= set(rule["forbidden_modules"])
